// Pages: how compute parts take operands from shared memory. load.cuh brings them there.
#pragma once

#include "roles.cuh"

namespace flywheel {

/// One compute warp's view of its task's operands. All compute warps go through the same pages. Where many pages are
/// taken in a row, take a copy and write it back at the end: then this stays in registers.
class PageOperands {
 public:
  __device__ PageOperands(std::uint32_t page_count, std::uint32_t take, std::uint32_t parity)
      : page_count_(page_count), take_(take), parity_(parity) {}
  __device__ std::uint32_t slot() const { return take_; }
  __device__ std::uint32_t parity() const { return parity_; }

  /// The next page: kPageBytes of the task's operands, or what is left of them. Waits until it has landed (or the runtime
  /// was aborted: then it does not matter what is read). Null after the task's last page.
  __device__ const unsigned char* next() {
    if (left_ == 0) return nullptr;
    ++held_;
    return take();
  }

  /// The same for those who know how many pages there are and hold one at a time: drop() gives it back.
  __device__ const unsigned char* take() {
    const std::uint32_t slot = take_;
    // Pairs with the load role's copy: complete_tx (or the copying threads' arrivals) releases the bytes.
    wait_phase_in_compute(roles_shared().landed[slot], parity_);
    const bool wraps = slot + 1 == page_count_;
    take_ = wraps ? 0 : slot + 1;
    parity_ ^= wraps;
    --left_;
    return page_memory() + slot * kPageBytes;
  }
  __device__ void drop() {
    return_page(take_ ? take_ - 1 : page_count_ - 1);
  }

  /// This warp has read the page that next() gave first, of those it holds.
  __device__ void give_back() {
    const std::uint32_t first = take_ >= held_ ? take_ - held_ : take_ + page_count_ - held_;
    --held_;
    return_page(first);
  }

  /// As at the task's begin, for a part that has taken nothing: what it would keep over a long call comes back from L2, as acquires
  /// empty L1.
  __device__ void renew() { *this = of_warp<PageOperands>(); }
  template <class Operands>
  __device__ static Operands of_warp() {
    RolesShared& roles = roles_shared();
    const WarpCursor place = roles.places[ptx::thread_of_block() / 32 - kFirstComputeWarp];
    Operands operands(roles.dev->page_count, place.page, place.parity);
    operands.begin(roles.slots[place.number % kRoleSlots]);
    return operands;
  }

  // Library use: around each task. What next() gave and a body left is given back.
  __device__ void begin(const RoleSlot& slot) {
    left_ = pages_of(slot.instruction.operand_bytes) + slot.instruction.dependent_pages;
  }
  __device__ void end() {
    while (held_) give_back();
    while (next()) give_back();
  }
  __device__ static void return_page(std::uint32_t slot) {
    __syncwarp();
    if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles_shared().returned[slot]);  // pairs with LoadRole::make_room()
  }

 private:
  std::uint32_t page_count_;
  std::uint32_t take_;    // slot of the next page
  std::uint32_t parity_;  // of the phase in which it lands
  std::uint32_t held_ = 0;    // pages taken and not given back; may be all there are
  std::uint32_t left_ = 0;    // pages of the task not taken yet
};

}  // namespace flywheel
