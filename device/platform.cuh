// The GPU's platforms (see runtime/base/platform.hpp): ThreadPlatform for a single thread, WarpPlatform for the warp of
// the inbox poller. collectives.cuh includes it, and through that all roles.
#pragma once

#include <flywheel/detail/group.cuh>

namespace flywheel::detail {

/// Reads the GPU's wall clock in nanoseconds. It advances in steps of up to a microsecond: for time limits, not for
/// measurements.
__device__ __forceinline__ std::uint64_t global_timer_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

/// Release and acquire at device scope. Pairs with whatever the relaxed accesses around the call pair with: the caller
/// names it.
__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// PTX ISA 8.6 has one-way fences for compute capability 9.0 and up. cuda::atomic_thread_fence is not used: in CCCL 3.0 it
// emits fence.acq_rel for every order.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/// Makes the relaxed stores that follow in the same thread releases. Waits until earlier stores are performed, and keeps
/// L1. Pairs with an acquire load of those words, or with acquire_fence() after a relaxed load of one: the caller names it.
__device__ __forceinline__ void release_fence() { asm volatile("fence.release.gpu;" ::: "memory"); }
/// Makes the relaxed loads before it in the same thread acquires. Empties L1 and waits for nothing (sm_90: CCTL.IVALL
/// without a MEMBAR). Pairs with a release store of those words, or with release_fence() before a relaxed one: the caller
/// names it.
__device__ __forceinline__ void acquire_fence() { asm volatile("fence.acquire.gpu;" ::: "memory"); }
/// Acquire, at system scope: the same for words that the host stores; pairs with a release store of those words.
__device__ __forceinline__ void acquire_fence_of_system() { asm volatile("fence.acquire.sys;" ::: "memory"); }
/// Release, at system scope: the same for words that the host loads; pairs with an acquire load of those words.
__device__ __forceinline__ void release_fence_of_system() { asm volatile("fence.release.sys;" ::: "memory"); }
#else
// Older targets have the fence for both directions only. It pairs as the two above.
__device__ __forceinline__ void release_fence() { fence(); }
__device__ __forceinline__ void acquire_fence() { fence(); }
__device__ __forceinline__ void acquire_fence_of_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ __forceinline__ void release_fence_of_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
#endif

/// Backs off after 4,096 polls: before that a sleep would delay a poll that is about to succeed.
__device__ __forceinline__ void gpu_pause(std::uint32_t spins) {
  if (spins > 4096) __nanosleep(spins > 65536 ? 500 : 100);
}
__device__ std::uint64_t waiting_part();  // defined in roles.cuh
/// One thread: the leader of the control warp, the leading lane of the inbox poller, or a thread of a task body.
struct ThreadPlatform : CpuPlatform {
  using Leader = ThreadPlatform;

  /// A word of shared memory, see group.cuh.
  template <class T>
  __device__ static auto block(T& word) {
    return SharedWord<T>(word);
  }

  // The three orders go with release_fence(), acquire_fence() and fence() below, see CpuPlatform: the fence orders, and
  // the access is relaxed.
  static constexpr Order kAfterRelease = Order::relaxed;
  static constexpr Order kBeforeAcquire = Order::relaxed;
  static constexpr Order kBetween = Order::relaxed;
  /// Release, acquire, and both; the caller names the pair.
  __device__ static void release_fence() { detail::release_fence(); }
  __device__ static void acquire_fence() { detail::acquire_fence(); }
  __device__ static void fence() { detail::fence(); }
  __device__ static void acquire_fence_of_system() { detail::acquire_fence_of_system(); }
  __device__ static void release_fence_of_system() { detail::release_fence_of_system(); }
  __device__ static std::uint64_t now_ns() { return detail::global_timer_ns(); }
  /// The SM's cycle counter, as clock64() reads it. The memory clobber keeps the read in its place.
  __device__ static std::uint64_t ticks() {
    std::uint64_t cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    return cycles;
  }
  static constexpr bool kOneClock = false;
  static constexpr bool kNearMemory = false;
  static constexpr std::uint64_t kMostBetweenReadings = 0;
  __device__ static void pause(std::uint32_t spins) { detail::gpu_pause(spins); }
  __device__ static void doze(std::uint32_t) { __nanosleep(400); }
  __device__ static void wait_ticks(std::uint32_t count) {
    for (const std::uint64_t begin = ticks(); ticks() - begin < count;) {}
  }
  __device__ static std::uint64_t waiting_part() { return detail::waiting_part(); }
};

/// A warp whose lanes poll together and decide together.
struct WarpPlatform : ThreadPlatform {
  static constexpr std::uint32_t kAll = 0xffffffffu;
  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }
  __host__ __device__ static constexpr std::uint32_t lanes() { return 32; }
  /// All lanes meet; each sees what the others wrote before.
  __device__ static void converge() { __syncwarp(kAll); }
  __device__ static bool any(bool vote) { return __any_sync(kAll, vote); }
  __device__ static std::uint32_t votes(bool vote) { return __ballot_sync(kAll, vote); }
  __device__ static std::uint32_t word_of_lanes(const std::uint32_t* mine, std::uint32_t w) {
    return __shfl_sync(kAll, mine[w / lanes()], static_cast<int>(w % lanes()));
  }
};

}  // namespace flywheel::detail
