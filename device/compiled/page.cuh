// A page's two ends: copy_to_page(), with which the load role fills it (load.cuh, dependents.cuh), and PageOperands, with which
// compute parts take it (parts.cuh, checked.cuh).
#pragma once

#include "roles.cuh"

namespace flywheel::detail {

/// Starts the copy of `bytes` bytes to byte `place` of the page in `slot`. Called by one thread if `bulk`, else by a warp.
/// Bytes and their completion: see ptx::bulk_copy() and ptx::arrive_when_copied(); pairs with PageOperands::consumer_wait().
__device__ __forceinline__ void copy_to_page(std::uint32_t slot, std::uint32_t place, const void* from, std::uint32_t bytes,
                                             bool bulk, std::uint64_t policy) {
  unsigned char* to = page_memory() + slot * kPageBytes + place;
  std::uint64_t& barrier = roles_shared().page_full[slot];
  if (bulk) {
    ptx::bulk_copy(to, from, bytes, barrier, policy);
  } else {
    for (std::uint32_t at = threadIdx.x % 32 * 16; at < bytes; at += 32 * 16)
      ptx::copy16(to + at, static_cast<const unsigned char*>(from) + at);
    ptx::arrive_when_copied(barrier);
  }
}

/// One compute warp's view of its task's operands. All compute warps take the same pages in the same order, and the load
/// role fills a page again once all of them have returned it. A body that takes many pages in a row copies the view and
/// writes the copy back at the end: then the compiler keeps it in registers.
class PageOperands {
 public:
  __device__ PageOperands(std::uint32_t page_count, std::uint32_t take, std::uint32_t parity)
      : page_count_(page_count),
        take_(take),
        parity_(parity) {}
  /// The slot of the next page, and the parity of the mbarrier phase in which that page lands.
  __device__ std::uint32_t slot() const { return take_; }
  __device__ std::uint32_t parity() const { return parity_; }

  /// The next page: kPageBytes of the task's operands, or the rest of them or of a dependent piece. Waits until it has
  /// landed. Null after the task's last page. If the runtime was aborted, it returns at once and the bytes are undefined:
  /// the results of the run are not used.
  __device__ const unsigned char* consumer_wait() {
    if (left_ == 0) return nullptr;
    const std::uint32_t slot = take_;
    // Acquire, block scope: pairs with the load role's copies, complete_tx of ptx::bulk_copy() or the arrivals of
    // ptx::arrive_when_copied(), and covers the bytes of the page.
    wait_phase_in_compute(roles_shared().page_full[slot], parity_);
    const bool wraps = slot + 1 == page_count_;
    take_ = wraps ? 0 : slot + 1;
    parity_ ^= wraps;
    --left_;
    ++held_;
    return page_memory() + slot * kPageBytes;
  }

  /// Returns the first page that consumer_wait() gave, of those that this warp holds. All lanes have read it.
  __device__ void consumer_release() {
    const std::uint32_t first = take_ >= held_ ? take_ - held_ : take_ + page_count_ - held_;
    --held_;
    return_page(first);
  }

  /// The view of a part that knows that there are more pages, and holds one at a time: the same two calls with nothing to count
  /// but the pages that are left. Afterwards the part's own view goes on from there.
  class Known {
   public:
    __device__ explicit Known(const PageOperands& from)
        : page_count_(from.page_count_),
          take_(from.take_),
          parity_(from.parity_),
          left_(from.left_) {}
    __device__ const unsigned char* consumer_wait() {
      const std::uint32_t slot = take_;
      wait_phase_in_compute(roles_shared().page_full[slot], parity_);  // acquire: as in PageOperands::consumer_wait()
      const bool wraps = slot + 1 == page_count_;
      take_ = wraps ? 0 : slot + 1;
      parity_ ^= wraps;
      --left_;
      return page_memory() + slot * kPageBytes;
    }
    __device__ void consumer_release() const { return_page(take_ ? take_ - 1 : page_count_ - 1); }

   private:
    friend class PageOperands;
    std::uint32_t page_count_, take_, parity_, left_;  // as in PageOperands
  };
  __device__ void go_on_from(const Known& known) {
    take_ = known.take_;
    parity_ = known.parity_;
    left_ = known.left_;
  }

  /// Resets the view to the begin of the task, for a part that has taken nothing yet. A part that calls it after a long call
  /// need not keep the view across the call: the compiler would put it into local memory, and that is read from L2, because
  /// acquires empty L1.
  __device__ void renew() { *this = of_warp<PageOperands>(); }
  /// Library use: the view at the begin of the calling warp's current task.
  template <class Operands>
  __device__ static Operands of_warp() {
    RolesShared& roles = roles_shared();
    const WarpCursor place = roles.places[ptx::thread_of_block() / 32 - kFirstComputeWarp];
    Operands operands(roles.dev->page_count, place.page, place.parity);
    operands.begin(roles.slots[place.number % kRoleSlots]);
    return operands;
  }

  // Library use: called around each task. end() returns the pages that consumer_wait() gave and the body kept, and takes and
  // returns the rest.
  __device__ void begin(const RoleSlot& slot) {
    left_ = pages_of(slot.instruction.operand_bytes) + slot.instruction.dependent_pages;
  }
  __device__ void end() {
    while (held_) consumer_release();
    while (consumer_wait()) consumer_release();
  }
  /// Library use: returns the page in `slot` for this warp.
  __device__ static void return_page(std::uint32_t slot) {
    // Release after __syncwarp(), for the reads of all lanes: pairs with the acquire in LoadRole::make_room().
    __syncwarp();
    if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles_shared().page_empty[slot]);
  }

 private:
  std::uint32_t page_count_;
  std::uint32_t take_;      // slot of the next page
  std::uint32_t parity_;    // of the phase in which that page lands
  std::uint32_t held_ = 0;  // pages taken and not returned; at most page_count_
  std::uint32_t left_ = 0;  // pages of the task not taken yet
};

}  // namespace flywheel::detail
