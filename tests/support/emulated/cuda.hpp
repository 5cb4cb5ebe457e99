// What nvcc gives device code and a C++ compiler does not: keywords, indices, vector types, warp functions. Where each
// block is a thread of the operating system, its shared memory is thread-local.
#pragma once

#include <cstdint>

#include "support/emulated/block.hpp"

#define __device__
#define __host__
#define __global__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ thread_local
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

namespace flywheel::detail {
/// The kernel's dynamic shared memory, by the name it has there: as much as a block of a Hopper GPU may have.
inline constexpr std::size_t kEmulatedSharedBytes = 227 << 10;
inline thread_local __align__(128) unsigned char memory[kEmulatedSharedBytes];
}  // namespace flywheel::detail

/// nvcc does not take types for granted as C++ does.
struct __attribute__((may_alias, aligned(16))) uint4 {
  std::uint32_t x, y, z, w;
};

inline uint4 __ldcg(const uint4* from) { return *from; }
inline void __nanosleep(std::uint32_t) { flywheel::testing::EmulatedBlock::current()->yield(); }
inline void __syncthreads() {
  const auto block = flywheel::testing::EmulatedBlock::current();
  block->named_barrier(0, block->threads);
}

/// Masks name whole warps, as all of the kernel's do.
inline void __syncwarp(std::uint32_t = ~0u) { flywheel::testing::EmulatedBlock::current()->sync_warp(); }
inline bool __any_sync(std::uint32_t, bool vote) {
  return flywheel::testing::EmulatedBlock::current()->votes("__any_sync()", vote) != 0;
}
inline bool __all_sync(std::uint32_t, bool vote) {
  return flywheel::testing::EmulatedBlock::current()->votes("__all_sync()", vote) == ~0u;
}
inline std::uint32_t __ballot_sync(std::uint32_t, bool vote) {
  return flywheel::testing::EmulatedBlock::current()->votes("__ballot_sync()", vote);
}
inline int __popc(std::uint32_t bits) { return std::popcount(bits); }
inline std::uint32_t __shfl_sync(std::uint32_t, std::uint32_t value, std::uint32_t lane) {
  return flywheel::testing::EmulatedBlock::current()->shuffle("__shfl_sync()", value, lane % 32);
}
inline std::uint32_t __shfl_xor_sync(std::uint32_t, std::uint32_t value, std::uint32_t mask) {
  return flywheel::testing::EmulatedBlock::current()->shuffle("__shfl_xor_sync()", value, threadIdx.x % 32 ^ mask);
}
/// Lanes at the end get their own value.
inline std::uint32_t __shfl_down_sync(std::uint32_t, std::uint32_t value, std::uint32_t distance) {
  const std::uint32_t lane = threadIdx.x % 32, from = lane + distance < 32 ? lane + distance : lane;
  return flywheel::testing::EmulatedBlock::current()->shuffle("__shfl_down_sync()", value, from);
}
/// Lanes at the begin get their own value.
inline std::uint32_t __shfl_up_sync(std::uint32_t, std::uint32_t value, std::uint32_t distance) {
  const std::uint32_t lane = threadIdx.x % 32, from = lane < distance ? lane : lane - distance;
  return flywheel::testing::EmulatedBlock::current()->shuffle("__shfl_up_sync()", value, from);
}
