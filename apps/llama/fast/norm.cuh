// RMSNorm, split between those who make the residual stream and those who multiply with it: the makers leave it times the
// norm's weights, and the squares of what they made; the sums are scaled when they are stored.
#pragma once

#include "apps/llama/fast/multiply.cuh"

namespace flywheel::llama {

/// What a norm needs of those who made its input.
struct NormInput {
  const float* x;        // portable: [sequences][columns]
  const float* weights;  // portable: [columns]; null: the input is not normed
  const float* squares;  // [parts][sequences]: sums of squares of parts of x
  std::int32_t parts;
  float eps;

  FLYWHEEL_TASK float scale(float squares_of_all, int columns) const {
    return inverse_sqrt(squares_of_all / static_cast<float>(columns) + eps);
  }

  /// A warp: the factor for the sequence lane % sequences.
  template <class Block>
  FLYWHEEL_TASK float scale_of_lane(const Block& block, int sequences, int columns) const {
    float sum = 0;
    for (int i = block.lane(); i < parts * sequences; i += kLanes) sum += squares[i];
    for (int apart = kLanes / 2; apart >= sequences; apart /= 2) sum += block.shuffle_xor(sum, apart);
    return scale(sum, columns);
  }

  /// Portable: the input of one sequence, normed if it is to be.
  template <class Block>
  FLYWHEEL_TASK const float* portable(Block& block, float* scratch, int sequence, int columns) const {
    const float* from = x + static_cast<std::size_t>(sequence) * static_cast<std::size_t>(columns);
    if (!weights) return from;
    const float by = rms_scale(block, from, columns, eps);
    block.for_each(columns, [&](int i) { scratch[i] = from[i] * by * weights[i]; });
    block.sync();
    return scratch;
  }
};

/// Where the residual stream goes, beside itself.
struct NormOutput {
  std::uint16_t* packed;  // see pack()
  const float* weights;   // of the norm that comes next
  float* squares;         // [sequences], this part's

  FLYWHEEL_TASK void put(int sequences, int columns, int sequence, int column, float value) const {
    pack(packed, sequences, columns, sequence, column, value * weights[column]);
  }
};

}  // namespace flywheel::llama
