// The GPU's platforms: a single thread, and a warp that polls.
#pragma once

#include <flywheel/detail/group.cuh>

namespace flywheel {

namespace detail {
/// Read the wall clock of the GPU. It ticks in steps of up to a microsecond: for time limits, not for measuring.
__device__ __forceinline__ std::uint64_t global_timer_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Of fences that go one way, PTX ISA 8.6 has those of compute capability 9.0 and up. (cuda::atomic_thread_fence makes
// fence.acq_rel of every order, CCCL 3.0.)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/// A release for the relaxed stores that follow it in the same thread: waits for what came before it, and leaves L1 alone.
__device__ __forceinline__ void release_fence() { asm volatile("fence.release.gpu;" ::: "memory"); }
/// An acquire for the relaxed loads before it: empties L1, and waits for nothing (sm_90: CCTL.IVALL without a MEMBAR).
__device__ __forceinline__ void acquire_fence() { asm volatile("fence.acquire.gpu;" ::: "memory"); }
#else
__device__ __forceinline__ void release_fence() { fence(); }
__device__ __forceinline__ void acquire_fence() { fence(); }
#endif

/// Back off after a while only: a poll that is about to succeed must not sleep through it.
__device__ __forceinline__ void gpu_pause(std::uint32_t spins) {
  if (spins > 4096) __nanosleep(spins > 65536 ? 500 : 100);
}
__device__ std::uint64_t waiting_part();  // see roles.cuh
}  // namespace detail

/// One thread: the leader of the control warp, the inbox poller's leading lane, or a thread of a task body.
struct ThreadPlatform : CpuPlatform {
  using Leader = ThreadPlatform;

  template <class T>
  __device__ static auto block(T& word) { return SharedWord<T>(word); }

  static constexpr Order kAfterRelease = Order::relaxed;
  static constexpr Order kBeforeAcquire = Order::relaxed;
  static constexpr Order kBetween = Order::relaxed;
  __device__ static void release_fence() { detail::release_fence(); }
  __device__ static void acquire_fence() { detail::acquire_fence(); }
  __device__ static void fence() { detail::fence(); }
  __device__ static std::uint64_t now_ns() { return detail::global_timer_ns(); }
  /// The SM's count of cycles: what clock64() reads, kept in its place by the clobber.
  __device__ static std::uint64_t ticks() {
    std::uint64_t cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    return cycles;
  }
  static constexpr bool kOneClock = false;
  static constexpr bool kNearMemory = false;
  static constexpr std::uint64_t kMostBetweenReadings = 0;
  __device__ static void pause(std::uint32_t spins) { detail::gpu_pause(spins); }
  /// Arrivals of 132 SMs at one word take L2 some 200 cycles, and a look that comes too early costs a trip there and back.
  /// A phase boundary on one H200: at once 1.05 us, after 200 cycles 1.01, 250 0.94, 300 0.95, 350 0.97; on another: after 230
  /// 1.00, 250 0.92, 400 1.02.
  __device__ static void let_others_arrive() {
    constexpr std::uint64_t kArrivalTicks = 260;
    for (const std::uint64_t begin = ticks(); ticks() - begin < kArrivalTicks;) {}
  }
  __device__ static std::uint64_t waiting_part() { return detail::waiting_part(); }
};

/// A warp whose lanes poll together.
struct WarpPlatform : ThreadPlatform {
  static constexpr std::uint32_t kAll = 0xffffffffu;
  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }
  __host__ __device__ static constexpr std::uint32_t lanes() { return 32; }
  __device__ static void converge() { __syncwarp(kAll); }
  __device__ static bool any(bool vote) { return __any_sync(kAll, vote); }
  __device__ static std::uint32_t word_of_lanes(const std::uint32_t* mine, std::uint32_t w) {
    return __shfl_sync(kAll, mine[w / lanes()], static_cast<int>(w % lanes()));
  }
};

}  // namespace flywheel
