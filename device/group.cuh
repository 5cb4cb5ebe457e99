// How one thread acts at an mbarrier for a group that has synchronised, and SharedWord, the atomic view of a word in
// shared memory. platform.cuh includes it, and through that every file with a role of the kernel.
//
// It is a header of its own because compute-sanitizer's racecheck (CUDA 13.0) follows an mbarrier only from each thread
// that arrives itself to each thread that waits itself, and follows no atomic words. tests/device/test_racecheck.cu is
// compiled with tests/support/racecheck/flywheel/detail/group.cuh in its place. ThreadSanitizer on the emulated GPU follows
// both.
#pragma once

#include <flywheel/detail/ptx.cuh>
#include "../runtime/base/platform.hpp"

namespace flywheel::detail {

/// Called by one thread of the block before any other function of this header. Empty here.
FLYWHEEL_TASK inline void init_group() {}

/// The number of arrivals that a group of `threads` threads makes at an mbarrier in one phase.
FLYWHEEL_TASK constexpr std::uint32_t arrivals_of([[maybe_unused]] std::uint32_t threads) { return 1; }
/// Whether the thread with that rank in its group arrives. The group calls __syncwarp() or a block barrier first, which
/// orders the accesses of its other threads before the one arrival and its release.
FLYWHEEL_TASK inline bool arrives(std::uint32_t rank) { return rank == 0; }

/// Called by the group after one of its threads saw the phase complete and the group has synchronised. Empty here: the
/// synchronisation passes that thread's acquire on to all of them.
FLYWHEEL_TASK inline void all_see(std::uint64_t&, std::uint32_t) {}

/// Starts a barrier at phase 0 again. All of its phases that have begun are complete, and no thread waits for it. No order, as
/// for mbarrier_init(): the caller orders other threads after it.
__device__ __forceinline__ void restart(std::uint64_t& barrier, std::uint32_t arrivals) {
  ptx::mbarrier_invalidate(barrier);
  ptx::mbarrier_init(barrier, arrivals);
}

/// A word of shared memory that threads poll without a barrier; block scope.
template <class T>
using SharedWord = AtomicRef<T, Scope::block>;

}  // namespace flywheel::detail
