// In place of device/group.cuh, for racecheck: every thread of a group arrives and looks for itself, and words that threads
// look at without having waited are read and written by read-modify-writes, which racecheck does not take for mistakes.
//
// What stays to be checked is all the rest: who may touch which place of shared memory when. Seen with small kernels on an
// H200 (compute-sanitizer 2025.3.1). Reported, though right: a thread that arrives for its warp after __syncwarp(), or waits
// for it before __syncwarp(), for each of the other lanes; a thread that arrives for a block after bar.sync; what is handed
// over by a word with release and acquire; a bulk copy after another that an invalidated mbarrier had told the end of. Not
// reported: an mbarrier that every lane arrives at and waits for; handovers by way of a third warp, places used in turn,
// cp.async and bulk copies with such mbarriers.
//
// What this cannot show: that the others have met before one arrives for them, for here each arrives itself; and that it is
// this word that was released, for an acquire here has all that was said so far. ThreadSanitizer on the emulated GPU shows
// both.
#pragma once

#include <flywheel/detail/ptx.cuh>
#include "runtime/base/platform.hpp"

namespace flywheel::detail {

FLYWHEEL_TASK constexpr std::uint32_t arrivals_of(std::uint32_t threads) { return threads; }
__device__ __forceinline__ bool arrives(std::uint32_t) { return true; }

/// racecheck counts a look only if something depends on its answer.
__device__ __forceinline__ void all_see(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_test(barrier, parity)) {}
}

/// racecheck forgets that bulk copies are complete when the word of their barrier is invalidated. After an even number of
/// phases it is as at first.
__device__ inline void restart(std::uint64_t& barrier, std::uint32_t arrivals) {
  if (ptx::mbarrier_poll(barrier, 1)) return;
  for (std::uint32_t i = 0; i < arrivals; ++i) ptx::mbarrier_arrive(barrier);
}

inline constexpr std::uint32_t kReleasing = 4;  // threads: the first of each warp that serves
/// What those have released by words, they say by an mbarrier each.
struct Releases {
  std::uint64_t said[kReleasing];
  std::uint32_t times[kReleasing];
};
__device__ __forceinline__ Releases& releases() {
  __shared__ Releases shared;
  return shared;
}
__device__ inline void say() {
  const std::uint32_t warp = threadIdx.x / 32;
  ptx::mbarrier_arrive(releases().said[warp]);
  atomicAdd(&releases().times[warp], 1u);
}
/// All that was said so far. The count may be one behind: then the next look sees the newer one.
__device__ inline void see_all_said() {
  for (std::uint32_t warp = 0; warp < kReleasing; ++warp)
    for (bool seen = false; !seen;) {
      const std::uint32_t times = atomicAdd(&releases().times[warp], 0u);
      seen = times == 0 || ptx::mbarrier_test(releases().said[warp], (times - 1) & 1);
    }
}
__device__ inline bool releases_by(Order o) { return o == Order::release || o == Order::acq_rel; }
__device__ inline bool acquires_by(Order o) { return o == Order::acquire || o == Order::acq_rel; }

__device__ inline void init_group() {
  for (std::uint32_t warp = 0; warp < detail::kReleasing; ++warp) {
    ptx::mbarrier_init(detail::releases().said[warp], 1);
    detail::releases().times[warp] = 0;
  }
}

template <class T>
class SharedWord : public AtomicRef<T, Scope::block> {
  using Plain = AtomicRef<T, Scope::block>;

 public:
  using Plain::Plain;

  __device__ T load(Order o) const {
    const T value = this->fetch_or(T{0}, o);
    if (detail::acquires_by(o)) detail::see_all_said();
    return value;
  }
  __device__ void store(T value, Order o) const { exchange(value, o); }
  __device__ T exchange(T value, Order o) const {
    if (detail::releases_by(o)) detail::say();
    const T old = Plain::exchange(value, o);
    if (detail::acquires_by(o)) detail::see_all_said();
    return old;
  }
};

}  // namespace flywheel::detail
