// A ring of stages in shared memory, between threads of a block that fill them and threads that empty them: for bodies and
// kernels that keep several steps of their input on the way. <flywheel/ring.cuh> brings it.
//
// Each stage has two mbarriers. A stage is full when all arrivals and all bytes have come that its producers announce, and
// empty when all consumers have released it. Where the bytes of a stage lie is up to its users.
//
//   __shared__ flywheel::RingBarriers<4> barriers;
//   if (threadIdx.x == 0) flywheel::begin_ring(barriers, 1, 8);             // one thread fills, eight warps empty
//   __syncthreads();
//   flywheel::RingPlace<4> ring(barriers);                                  // each user has its own, and walks along the ring
//   for (int step = 0; step < steps; ++step, ring.next()) {                 // the thread that fills
//     ring.producer_acquire();
//     ring.producer_expect(kBytes);
//     ring.copy(stages[ring.stage()], from + step * kBytes, kBytes);
//   }
//   for (int step = 0; step < steps; ++step, ring.next()) {                 // a warp that empties
//     ring.consumer_wait();
//     use(stages[ring.stage()]);
//     __syncwarp();
//     if (lane == 0) ring.consumer_release();
//   }
#pragma once

#include <flywheel/detail/ptx.cuh>

namespace flywheel {

/// The barriers of a ring, in shared memory.
template <int kStages>
struct RingBarriers {
  std::uint64_t full[kStages], empty[kStages];
};

/// One thread, before a barrier of all users: `filled_by` arrivals of producers fill a stage, `read_by` of consumers empty
/// it, each from 1 to 2^20 - 1. No order of its own: that barrier orders it.
template <int kStages>
__device__ __forceinline__ void begin_ring(RingBarriers<kStages>& barriers, std::uint32_t filled_by, std::uint32_t read_by) {
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) {
    detail::ptx::mbarrier_init(barriers.full[stage], filled_by);
    detail::ptx::mbarrier_init(barriers.empty[stage], read_by);
  }
  detail::ptx::publish_mbarriers();
}

/// One thread, when no user comes back: the words are plain memory again, and another ring may begin there. No order: a barrier
/// of all users lies before it. In a task body nothing else may be left in scratch memory.
template <int kStages>
__device__ __forceinline__ void end_ring(RingBarriers<kStages>& barriers) {
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) {
    detail::ptx::mbarrier_invalidate(barriers.full[stage]);
    detail::ptx::mbarrier_invalidate(barriers.empty[stage]);
  }
}

/// Where one user stands. A user is a thread, or a warp whose lanes call consumer_wait() all and the rest by one of them.
template <int kStages>
class RingPlace {
 public:
  __device__ __forceinline__ explicit RingPlace(RingBarriers<kStages>& barriers) : barriers_(barriers) {}

  /// The stage of this step, from 0.
  __device__ __forceinline__ int stage() const { return stage_; }
  /// Goes on to the next step.
  __device__ __forceinline__ void next() {
    if (++stage_ < kStages) return;
    stage_ = 0;
    parity_ ^= 1;
  }

  /// Waits until the stage is empty; at once in the first round. Acquire, block scope: pairs with consumer_release() of all
  /// consumers, a round ago. Without a limit of its own: consumers that are stuck are what has a limit.
  __device__ __forceinline__ void producer_acquire() const {
    while (!detail::ptx::mbarrier_test(barriers_.empty[stage_], parity_ ^ 1)) {}
  }
  /// Announces so many bytes of copy(), at most 2^20 - 1 a stage, and arrives. Release, block scope: pairs with
  /// consumer_wait().
  __device__ __forceinline__ void producer_expect(std::uint32_t bytes) const {
    detail::ptx::expect_bytes(barriers_.full[stage_], bytes);
  }
  /// Starts the copy of `bytes` to the stage, a multiple of 16, both sides aligned to 16. The thread is one that has called
  /// producer_acquire(). The bytes are seen behind consumer_wait(). Compute capability 9.0.
  __device__ __forceinline__ void copy(void* to, const void* from, std::uint32_t bytes) const {
    // Both order the copy, which is part of the async proxy, after the generic accesses that this thread has acquired: what
    // consumers have read of the stage, which pairs with their consumer_release(), and what earlier tasks have stored.
    detail::ptx::fence_shared_for_bulk_copies();
    detail::ptx::fence_global_for_bulk_copies();
    detail::ptx::bulk_copy(to, from, bytes, barriers_.full[stage_]);
  }
  /// Starts the copy of 16 bytes by the thread itself, both sides aligned to 16. producer_commit_copies() ends it.
  __device__ __forceinline__ static void copy16(void* to, const void* from) { detail::ptx::copy16(to, from); }
  /// Arrives when all earlier copy16() of this thread have landed. Release, block scope: pairs with consumer_wait().
  __device__ __forceinline__ void producer_commit_copies() const { detail::ptx::arrive_when_copied(barriers_.full[stage_]); }
  /// Arrives: this thread has stored its part of the stage. Release, block scope: pairs with consumer_wait().
  __device__ __forceinline__ void producer_commit() const { detail::ptx::mbarrier_arrive(barriers_.full[stage_]); }

  /// Waits until the stage is full. Acquire, block scope: pairs with what the producers announced and with their copies.
  /// Without a limit of its own: copies end by themselves.
  __device__ __forceinline__ void consumer_wait() const {
    while (!detail::ptx::mbarrier_test(barriers_.full[stage_], parity_)) {}
  }
  /// Arrives: this user has read the stage. Release, block scope: pairs with producer_acquire(). A warp that arrives once
  /// meets in __syncwarp() before.
  __device__ __forceinline__ void consumer_release() const { detail::ptx::mbarrier_arrive(barriers_.empty[stage_]); }

  /// The parity of the phase of full() that this step ends; that of empty() before it is the other one.
  __device__ __forceinline__ std::uint32_t parity() const { return parity_; }
  /// The barrier that copies of other kinds complete, such as those of tensor maps.
  __device__ __forceinline__ std::uint64_t& full() const { return barriers_.full[stage_]; }
  /// The barrier that consumers of other blocks of a cluster arrive at.
  __device__ __forceinline__ std::uint64_t& empty() const { return barriers_.empty[stage_]; }

 private:
  RingBarriers<kStages>& barriers_;
  int stage_ = 0;
  std::uint32_t parity_ = 0;
};

}  // namespace flywheel
