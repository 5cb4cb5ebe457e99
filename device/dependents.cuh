// Dependent operands in the load role: their pages keep a place in the ring, and are filled once the task's predecessors are done.
#pragma once

#include "roles.cuh"
#include "../runtime/dynamic/task_list.hpp"

namespace flywheel {

/// To byte `place` of a page: by one thread if `bulk`, else by a warp.
__device__ __forceinline__ void copy_to_page(std::uint32_t slot, std::uint32_t place, const void* from, std::uint32_t bytes, bool bulk,
                                             std::uint64_t policy) {
  unsigned char* to = page_memory() + slot * kPageBytes + place;
  std::uint64_t& barrier = roles_shared().landed[slot];
  if (bulk) {
    ptx::bulk_copy(to, from, bytes, barrier, policy);
  } else {
    for (std::uint32_t at = threadIdx.x % 32 * 16; at < bytes; at += 32 * 16)
      ptx::copy16(to + at, static_cast<const unsigned char*>(from) + at);
    ptx::arrive_when_copied(barrier);
  }
}

/// The pages kept for one task's dependent operands.
template <class List>
class KeptPages {
  using P = ThreadPlatform;

 public:
  __device__ bool any() const { return kept_.pages != 0; }
  /// Of the first.
  __device__ std::uint32_t slot() const { return kept_.slot; }
  __device__ std::uint32_t parity() const { return kept_.parity; }

  /// The next page, for instruction `number` of the run.
  __device__ void add(std::uint32_t number, const RingCursor& place) {
    if (kept_.pages == 0) kept_ = {number, place.slot(), place.parity(), 0, false};
    ++kept_.pages;
  }
  /// There are as many as the task needs.
  __device__ void close() { kept_.all = true; }

  /// That they may be filled. As a difference: the count of a long run wraps.
  __device__ bool are_announced() const {
    // Acquire: pairs with the release in ControlRole::command().
    return kept_.all && static_cast<std::int32_t>(P::block(roles_shared().announced).load(Order::acquire) - kept_.number) > 0;
  }

  /// Without copies (the task is not run, or names too few pages), the pages land as they are.
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
      if (bulk) ptx::expect_bytes(roles.landed[slot], bytes);
      copy_to_page(slot, 0, from, bytes, bulk, policy);
      advance();
    };
    if (runs) all_see(roles.ready[kept.number % kRoleSlots], kept.number / kRoleSlots & 1);  // as they know by are_announced()
    if (runs && task.command == RoleCommand::run) {
      check_names(task, kept.pages);
      ptx::fence_global_for_bulk_copies();  // pairs with the release in settle(), by way of LoadRole::look()
      // One behind: once the last page has landed the task may settle, and another have its slot.
      const unsigned char* last = nullptr;
      std::uint32_t last_bytes = 0;
      for_each_named(task, [&](const unsigned char* from, std::uint32_t bytes) {
        if (last && left > 1) fill_next(last, last_bytes);
        last = from, last_bytes = bytes;
      });
      if (last) fill_next(last, last_bytes);
    }
    while (left) {
      if (!bulk || lane() == 0) ptx::mbarrier_arrive(roles.landed[slot]);  // pairs with who waits for the page: it is empty
      advance();
    }
  }

 private:
  /// Pages for instruction `number` of the run.
  struct Kept {
    std::uint32_t number, slot, parity, pages;
    bool all;  // there are as many as the task needs
  };

  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }

  /// A task that names more or fewer pages than it has fails. That is noted before any page lands: later it might have
  /// settled.
  __device__ void check_names(RoleSlot& task, std::uint32_t pages) const {
    std::uint32_t named = 0;
    for_each_named(task, [&](const unsigned char*, std::uint32_t) { ++named; });
    // Relaxed: the first fault stands, and the landing of the pages releases it.
    if (named != pages && lane() == 0)
      P::block(task.context.outcome.code).compare_exchange(0, static_cast<std::uint32_t>(Status::operands_misnamed), Order::relaxed);
  }
  /// use(from, bytes) for each page that the task names.
  template <class Use>
  __device__ static void for_each_named(const RoleSlot& task, Use&& use) {
    List::dependents(task.instruction.record, [&](const void* from, std::uint32_t bytes) {
      for (std::uint32_t at = 0; at < bytes; at += kPageBytes)
        use(static_cast<const unsigned char*>(from) + at, bytes - at < kPageBytes ? bytes - at : kPageBytes);
    });
  }

  Kept kept_{};
};

}  // namespace flywheel
