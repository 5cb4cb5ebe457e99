// Attention over a split context: each part leaves a weighted sum of values, its largest score and its sum of weights;
// whoever reads the result puts the parts together ("Flash-Decoding", Dao et al. 2023).
#pragma once

#include "apps/llama/fast/inputs.cuh"
#include "apps/llama/tasks/step.cuh"

namespace flywheel::llama {

/// Positions that one part takes at least: one block of 16 for each warp.
inline constexpr int kFewestPositions = 128;

/// One part of one query head. In units of log2: weights are 2^(score - largest).
struct PartScale {
  float largest, sum;
};

struct Partials {
  float* values;      // [sequences][heads][splits][head_dim]
  PartScale* scales;  // [sequences][heads][splits]
  std::int16_t heads, splits;
  std::int16_t head_dim, reserved;

  /// How many positions each part takes of a context of `position` + 1: a multiple of 128.
  FLYWHEEL_TASK int share(std::uint32_t position) const {
    const int all = static_cast<int>(position) + 1, each = (all + splits - 1) / splits;
    return (each + kFewestPositions - 1) / kFewestPositions * kFewestPositions;
  }
  FLYWHEEL_TASK int used(std::uint32_t position) const {
    const int each = share(position);
    return (static_cast<int>(position) + each) / each;
  }

  FLYWHEEL_TASK int index(int sequence, int head, int split) const { return (sequence * heads + head) * splits + split; }
  FLYWHEEL_TASK float* at(int index) const { return values + static_cast<std::size_t>(index) * static_cast<std::size_t>(head_dim); }

  /// Four neighbouring values of the result, a vector of [heads][head_dim].
  FLYWHEEL_TASK Four combine(int sequence, int column, std::uint32_t position) const {
    const int first = index(sequence, column / head_dim, 0), count = used(position);
    Four sums{};
    float weights = 0, largest = -std::numeric_limits<float>::infinity();
    // The sums so far are brought down when a larger score turns up: so no load waits for another.
    for (int i = 0; i < count; ++i) {
      const PartScale scale = scales[first + i];
      const Four part = *reinterpret_cast<const Four*>(at(first + i) + column % head_dim);
      const float now = scale.largest > largest ? scale.largest : largest;
      const float keep = std::exp2(largest - now), weight = std::exp2(scale.largest - now);
      largest = now;
      weights = weights * keep + weight * scale.sum;
      for (int j = 0; j < 4; ++j) sums.values[j] = sums.values[j] * keep + weight * part.values[j];
    }
    for (int j = 0; j < 4; ++j) sums.values[j] /= weights;
    return sums;
  }
};

}  // namespace flywheel::llama
