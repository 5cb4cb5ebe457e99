// The load role's part for dependent operands, which other tasks write: KeptPages holds their places in the ring of pages
// and fills them once the task's predecessors have ended. load.cuh includes it.
#pragma once

#include "../../runtime/dynamic/task_list.hpp"
#include "page.cuh"

namespace flywheel::detail {

/// The pages kept for the dependent operands of one task.
template <class List>
class KeptPages {
  using P = ThreadPlatform;

 public:
  __device__ bool any() const { return kept_.pages != 0; }
  /// The slot of the first kept page, and the parity of the phase in which it lands.
  __device__ std::uint32_t slot() const { return kept_.slot; }
  __device__ std::uint32_t parity() const { return kept_.parity; }

  /// Keeps the page at `place` for instruction `number` of the run.
  __device__ void add(std::uint32_t number, const RingCursor& place) {
    if (kept_.pages == 0) kept_ = {number, place.slot(), place.parity(), 0, false};
    ++kept_.pages;
  }
  /// All pages that the task needs are kept.
  __device__ void close() { kept_.all = true; }

  /// Whether the task has its command, so that the pages may be filled. The count of a long run wraps, hence the
  /// difference.
  __device__ bool are_announced() const {
    // Acquire, block scope: pairs with the release in ControlRole::command(); covers the slot and the task's predecessors.
    return kept_.all && static_cast<std::int32_t>(P::block(roles_shared().announced).load(Order::acquire) - kept_.number) > 0;
  }

  /// Fills the kept pages. If `runs` is false, the task is skipped or it names too few pages, pages that get no copy
  /// complete their phase with undefined bytes, so that no compute warp waits without end.
  __device__ void fill(bool runs, bool bulk) {
    const Kept kept = kept_;
    kept_ = {};
    RolesShared& roles = roles_shared();
    RoleSlot& task = roles.slots[kept.number % kRoleSlots];
    std::uint32_t slot = kept.slot, left = kept.pages;
    const std::uint64_t policy = ptx::read_once_policy();
    const auto advance = [&] {
      --left;
      slot = slot + 1 == roles.dev->page_count ? 0 : slot + 1;
    };
    const auto fill_next = [&](const unsigned char* from, std::uint32_t bytes) {
      // Release, block scope: pairs with PageOperands::consumer_wait().
      if (bulk) ptx::expect_bytes(roles.page_full[slot], bytes);
      copy_to_page(slot, 0, from, bytes, bulk, policy);
      advance();
    };
    // are_announced() has acquired the same command.
    if (runs) all_see(roles.ready[kept.number % kRoleSlots], kept.number / kRoleSlots & 1);
    if (runs && task.command == RoleCommand::run) {
      check_names(task, kept.pages);
      // Proxy fence for the bytes: a producer's release in signal_done() was acquired by the control thread in wait_before()
      // and passed on by command() to are_announced().
      ptx::fence_global_for_bulk_copies();
      // The copy is one page behind the naming: after the last page lands, the task may end and another may get its slot.
      const unsigned char* last = nullptr;
      std::uint32_t last_bytes = 0;
      for_each_named(task, [&](const unsigned char* from, std::uint32_t bytes) {
        if (last && left > 1) fill_next(last, last_bytes);
        last = from, last_bytes = bytes;
      });
      if (last) fill_next(last, last_bytes);
    }
    while (left) {
      // Completes the phase of a page that gets no copy: pairs with PageOperands::consumer_wait(). Its order covers no bytes.
      if (!bulk || lane() == 0) ptx::mbarrier_arrive(roles.page_full[slot]);
      advance();
    }
  }

 private:
  /// Pages kept for instruction `number` of the run: the first one's slot and parity, and how many.
  struct Kept {
    std::uint32_t number, slot, parity, pages;
    bool all;  // all that the task needs are kept
  };

  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }

  /// Fails a task that names more or fewer pages than it declared. The fault is noted before any page lands, because after
  /// that the task may have ended.
  __device__ void check_names(RoleSlot& task, std::uint32_t pages) const {
    std::uint32_t named = 0;
    for_each_named(task, [&](const unsigned char*, std::uint32_t) { ++named; });
    // Relaxed: the first fault stands. Pairs with the store role's read of `code` after `computed`; the landing of the
    // pages, for which the compute warps wait, releases it.
    if (named != pages && lane() == 0)
      P::block(task.context.outcome.code)
          .compare_exchange(0, static_cast<std::uint32_t>(Status::operands_misnamed), Order::relaxed);
  }
  /// Calls use(from, bytes) for each page that the task names.
  template <class Use>
  __device__ static void for_each_named(const RoleSlot& task, Use&& use) {
    List::dependents(task.instruction.record, [&](const void* from, std::uint32_t bytes) {
      for (std::uint32_t at = 0; at < bytes; at += kPageBytes)
        use(static_cast<const unsigned char*>(from) + at, bytes - at < kPageBytes ? bytes - at : kPageBytes);
    });
  }

  Kept kept_{};
};

}  // namespace flywheel::detail
