// What one thread does for a group that has met: it arrives at an mbarrier, or looks at one, for all of them. And words of
// shared memory that threads look at without having waited for anything.
//
// A header of its own, because compute-sanitizer's racecheck (CUDA 13.0) follows an mbarrier only from each thread that
// arrives itself to each that waits itself, and follows no words: tests/device/test_racecheck.cu is compiled with
// tests/support/racecheck/flywheel/detail/group.cuh in place of this. The emulated GPU under ThreadSanitizer follows both as they are.
#pragma once

#include <flywheel/detail/ptx.cuh>
#include "../runtime/base/platform.hpp"

namespace flywheel {

/// By one thread of the block, before any other uses what is here.
FLYWHEEL_TASK inline void init_group() {}

/// How often a group of `threads` arrives at an mbarrier.
FLYWHEEL_TASK constexpr std::uint32_t arrivals_of([[maybe_unused]] std::uint32_t threads) { return 1; }
/// Whether its thread of that rank does. What the others did comes before that, for they have met.
FLYWHEEL_TASK inline bool arrives(std::uint32_t rank) { return rank == 0; }

/// The group has met since one of it saw that phase complete.
FLYWHEEL_TASK inline void all_see(std::uint64_t&, std::uint32_t) {}

/// A barrier whose phases are complete, and that nobody waits for: it begins with its first again.
__device__ __forceinline__ void restart(std::uint64_t& barrier, std::uint32_t arrivals) {
  ptx::mbarrier_invalidate(barrier);
  ptx::mbarrier_init(barrier, arrivals);
}

template <class T>
using SharedWord = AtomicRef<T, Scope::block>;

}  // namespace flywheel
