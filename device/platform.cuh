// The GPU's platforms: a whole warp that decides together, and a single thread of a task body.
#pragma once

#include "runtime/platform.hpp"

namespace flywheel {

namespace detail {
/// Read the wall clock of the GPU. It ticks in steps of up to a microsecond: for time limits, not for measuring.
__device__ __forceinline__ std::uint64_t global_timer_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

/// fence.acq_rel.gpu: with the strong stores that follow it in the same thread, a release of all that came before.
__device__ __forceinline__ void release_fence() {
  cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel, cuda::thread_scope_device);
}

/// Back off after a while only: a poll that is about to succeed must not sleep through it.
__device__ __forceinline__ void gpu_pause(std::uint32_t spins) {
  if (spins > 4096) __nanosleep(spins > 65536 ? 500 : 100);
}
}  // namespace detail

/// A warp: 32 lanes that take every branch of the runtime's algorithms together.
struct WarpPlatform : CpuPlatform {
  static constexpr std::uint32_t kAll = 0xffffffffu;

  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }
  __host__ __device__ static constexpr std::uint32_t lanes() { return 32; }
  __device__ static void converge() { __syncwarp(kAll); }
  template <class T>
  __device__ static T broadcast(T value, std::uint32_t source = 0) {
    if constexpr (sizeof(T) < 4) return static_cast<T>(__shfl_sync(kAll, static_cast<unsigned>(value), source));
    else return __shfl_sync(kAll, value, source);
  }
  __device__ static std::uint32_t ballot(bool vote) { return __ballot_sync(kAll, vote); }
  __device__ static void release_fence() { detail::release_fence(); }
  template <class T>
  __device__ static void publish(T& word, T value) {
    device(word).store(value, Order::relaxed);
  }
  __device__ static std::uint64_t now_ns() { return detail::global_timer_ns(); }
  __device__ static void pause(std::uint32_t spins) { detail::gpu_pause(spins); }
};

/// One thread of a block, for what bodies call on their own: spawn, emit, fail, grid barriers.
struct ThreadPlatform : CpuPlatform {
  __device__ static void release_fence() { detail::release_fence(); }
  template <class T>
  __device__ static void publish(T& word, T value) {
    device(word).store(value, Order::relaxed);
  }
  __device__ static std::uint64_t now_ns() { return detail::global_timer_ns(); }
  __device__ static void pause(std::uint32_t spins) { detail::gpu_pause(spins); }
};

}  // namespace flywheel
