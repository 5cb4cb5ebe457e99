// What the lanes of a warp do together: exchanges of values, scans, votes. threads.cuh includes it for the compute warps, and
// parts.cuh for the store warp.
#pragma once

#include <cstring>

#include "../runtime/records/exchanged.hpp"

namespace flywheel::detail {

/// Exchanges a plain value between lanes, 4 bytes at a time.
template <class T, class Exchange>
__device__ T exchange(T value, Exchange&& exchange_word) {
  constexpr std::size_t kWords = (sizeof(T) + 3) / 4;
  std::uint32_t words[kWords] = {};
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (std::size_t w = 0; w < kWords; ++w) words[w] = exchange_word(words[w]);
  memcpy(&value, words, sizeof(T));
  return value;
}
template <class T>
__device__ T shuffle_down(T value, std::uint32_t distance) {
  return exchange(value, [distance](std::uint32_t word) { return __shfl_down_sync(0xffffffffu, word, distance); });
}
template <class T>
__device__ T shuffle_up(T value, std::uint32_t distance) {
  return exchange(value, [distance](std::uint32_t word) { return __shfl_up_sync(0xffffffffu, word, distance); });
}
template <class T>
__device__ T shuffle_xor(T value, std::uint32_t mask) {
  return exchange(value, [mask](std::uint32_t word) { return __shfl_xor_sync(0xffffffffu, word, mask); });
}
template <class T>
__device__ T shuffle(T value, std::uint32_t lane) {
  return exchange(value, [lane](std::uint32_t word) { return __shfl_sync(0xffffffffu, word, lane); });
}

/// Inclusive scan over the lanes: log2(32) steps, in each of which a lane puts the value of a lane before it, of twice the
/// distance each time, in front of its own. Each pair is combined in the order of lanes, so op need not be commutative.
template <class T, class Op>
__device__ T scan_lanes(T value, Op&& op) {
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
    const T before = detail::shuffle_up(value, distance);
    if (lane >= distance) value = op(before, value);
  }
  return value;
}

/// What all blocks on a GPU have of a warp. All lanes of the warp call. Votes and exchanges order no memory: sync_warp() does.
struct WarpLanes {
  static constexpr int kLanes = 32;  // of a warp
  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  /// All lanes of the warp meet; each sees what the others wrote before.
  __device__ static void sync_warp() { __syncwarp(); }
  /// The value of lane `lane() ^ mask`.
  template <class T>
  __device__ static T shuffle_xor(T value, int mask) {
    return detail::shuffle_xor(value, static_cast<std::uint32_t>(mask));
  }
  /// The value of the lane named, modulo kLanes.
  template <class T>
  __device__ static T shuffle(T value, int lane) {
    return detail::shuffle(value, static_cast<std::uint32_t>(lane));
  }
  /// The votes of the lanes, lane l in bit l.
  __device__ static std::uint32_t ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }
  /// Whether `vote` is true in any lane, or in all.
  __device__ static bool any_warp(bool vote) { return __any_sync(0xffffffffu, vote); }
  __device__ static bool all_warp(bool vote) { return __all_sync(0xffffffffu, vote); }
};

}  // namespace flywheel::detail
