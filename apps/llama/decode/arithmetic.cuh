// Arithmetic that rounds alike on a CPU and on a GPU, so that both write the same tokens.
//
// Three rules make it so. A sum has a fixed shape of 32 lanes, whatever the size of the block that computes
// it. No multiplication is fused with an addition (CMakeLists.txt tells both compilers). And exp() is
// computed here.
#pragma once

#include <flywheel/task.cuh>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace llama {

using namespace flywheel;

inline constexpr int kLanes = 32;

/// Threads of a GPU block work in groups of 32, one lane each. The one thread of a CPU block is a group of
/// its own and plays all lanes in turn.
template <class Block>
inline constexpr int kLanesPlayed = Block::size() == 1 ? kLanes : 1;
template <class Block>
inline constexpr int kGroups = Block::size() * kLanesPlayed<Block> / kLanes;

template <class Block>
FLYWHEEL_TASK int group_of(const Block& block) {
  return block.rank() / kLanes;
}
/// The caller's lane in its group; on a CPU the first of those it plays.
template <class Block>
FLYWHEEL_TASK int lane_of(const Block& block) {
  return block.rank() % kLanes;
}

/// The sum of all lanes' values, to every lane: lane i with i + 16, then with i + 8, 4, 2 and 1. The whole
/// group calls.
template <class Block, class T>
FLYWHEEL_TASK T add_lanes(T (&lanes)[kLanesPlayed<Block>]) {
  if constexpr (kLanesPlayed<Block> == 1) {
    T sum = lanes[0];
    for (int apart = kLanes / 2; apart; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    return sum;
  } else {
    for (int apart = kLanes / 2; apart; apart /= 2)
      for (int lane = 0; lane < apart; ++lane) lanes[lane] += lanes[lane + apart];
    return lanes[0];
  }
}

/// f(0) + ... + f(n-1): lane l adds up i = l, l + 32, ... The whole group calls, and every thread of it gets
/// the sum.
template <class Block, class F>
FLYWHEEL_TASK float lane_sum(const Block& block, int n, F&& f) {
  constexpr int kPlayed = kLanesPlayed<Block>;
  float lanes[kPlayed] = {};
  for (int at = lane_of(block); at < n; at += kLanes)
    for (int lane = 0; lane < kPlayed && at + lane < n; ++lane) lanes[lane] += f(at + lane);
  return add_lanes<Block>(lanes);
}

/// e to the x, within 2 units in the last place, for x from -87 to 88.
/// x = k ln 2 + r, with ln 2 in two parts so that r keeps its digits (Cody and Waite, "Software Manual for
/// the Elementary Functions"); e^r is its Taylor series, whose first term left out is below 6e-9 for |r| <=
/// ln 2 / 2.
FLYWHEEL_TASK inline float exp_between(float x) {
  constexpr float kRound = 12582912.f;  // 1.5 * 2^23: adding it leaves no fraction bits
  const float k = (x * 1.44269504f + kRound) - kRound;
  const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  float series = 1.f / 5040;
  series = series * r + 1.f / 720;
  series = series * r + 1.f / 120;
  series = series * r + 1.f / 24;
  series = series * r + 1.f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.f;
  series = series * r + 1.f;
  return series * std::bit_cast<float>((static_cast<std::uint32_t>(static_cast<int>(k) + 127)) << 23);
}

/// The same for any x: 0 below -87, infinity above 88.
FLYWHEEL_TASK inline float exp_of(float x) {
  if (!(x <= 88.f)) return x > 88.f ? std::numeric_limits<float>::infinity() : x;
  return x < -87.f ? 0.f : exp_between(x);
}

/// x / (1 + e^-x), the gate of SwiGLU.
FLYWHEEL_TASK inline float silu(float x) { return x / (1.f + exp_of(-x)); }

/// What RMSNorm multiplies n values by: 1 / sqrt(mean of squares + eps). The whole group calls.
template <class Block>
FLYWHEEL_TASK float rms_scale(const Block& block, const float* x, int n, float eps) {
  const float squares = lane_sum(block, n, [&](int i) { return x[i] * x[i]; });
  return 1.f / std::sqrt(squares / static_cast<float>(n) + eps);
}

}  // namespace llama
