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

  /// Values of the result, a vector of [heads][head_dim]: the first `count` of `fours`, see WarpInputs::fill().
  FLYWHEEL_TASK void combine(int sequence, int column, int count, std::uint32_t position, Four (&fours)[kFoursOfLane]) const {
    const int parts = used(position);
    float weights[kFoursOfLane] = {}, largest[kFoursOfLane];
    for (float& one : largest) one = -std::numeric_limits<float>::infinity();
    // The sums so far are brought down when a larger score turns up: so no load waits for another.
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int i = 0; i < kFoursOfLane; ++i) {
        if (i >= count) continue;
        const int at_column = column + i * kLaneStride, from = index(sequence, at_column / head_dim, part);
        add(fours[i], weights[i], largest[i], *reinterpret_cast<const Four*>(at(from) + at_column % head_dim), scales[from]);
      }
    }
#pragma unroll
    for (int i = 0; i < kFoursOfLane; ++i)
      if (i < count)
        for (float& value : fours[i].values) value *= reciprocal(weights[i]);
  }

 private:
  FLYWHEEL_TASK static void add(Four& sums, float& weights, float& largest, const Four& part, const PartScale& scale) {
    const float now = scale.largest > largest ? scale.largest : largest;
    const float keep = std::exp2(largest - now), weight = std::exp2(scale.largest - now);
    largest = now;
    weights = weights * keep + weight * scale.sum;
    for (int j = 0; j < 4; ++j) sums.values[j] = sums.values[j] * keep + weight * part.values[j];
  }
};

}  // namespace flywheel::llama
