// Activations as the B operand of the tensor cores, in registers: a lane loads what it multiplies with, and nobody else.
//
// With up to two sequences an activation is the sum of two bf16 numbers (16 bits of its fraction), each in a column of
// its own: B has 8, and they cost nothing. With more sequences it is rounded to one.
#pragma once

#include "apps/llama/fast/tile.cuh"

namespace flywheel::llama {

inline constexpr int kMostSequences = 8;

/// Four values of one sequence.
struct alignas(16) Four {
  float values[4];
};

FLYWHEEL_TASK inline Four load_four(const float* from) { return *reinterpret_cast<const Four*>(from); }

FLYWHEEL_TASK inline std::uint32_t round_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;  // to nearest, ties to even; activations are finite
}
FLYWHEEL_TASK inline float from_bf16(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

/// Two bf16 numbers, the first in the lower half.
FLYWHEEL_TASK inline std::uint32_t round_pair(float first, float second) {
#ifdef __CUDA_ARCH__
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return round_to_bf16(first) | round_to_bf16(second) << 16;
#endif
}

/// Within 2 units in the last place, and without the calls that exact division and square root make on a GPU: what is in
/// registers would have to go to memory for them.
FLYWHEEL_TASK inline float inverse_sqrt(float x) {
#ifdef __CUDA_ARCH__
  return rsqrtf(x);
#else
  return 1.f / std::sqrt(x);
#endif
}
FLYWHEEL_TASK inline float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  return __fdividef(1.f, x);
#else
  return 1.f / x;
#endif
}

/// Columns of B: for each sequence and part one for each half of a step. 8 of them are a block.
struct InputShape {
  int sequences;

  FLYWHEEL_TASK int parts() const { return sequences <= 2 ? 2 : 1; }
  FLYWHEEL_TASK int columns() const { return sequences * parts() * 2; }
};

/// A vector for each sequence, times RMSNorm's weights if there are any: what the tiles are multiplied with. The norm's
/// other factor comes when the sums are stored, so that nobody waits for it.
struct VectorInput {
  const float* x;        // [sequences][columns]
  const float* weights;  // [columns], or null
  std::int32_t columns;
};

/// The B registers of `kSteps` steps.
template <int kBlocks, int kSteps>
struct LaneInputs {
  std::uint32_t b[kSteps][kBlocks][2];
};

/// What was loaded for the steps of a page, before it is rounded.
template <int kBlocks>
struct LaneValues {
  Four x[kStepsOfPage][kBlocks];
};

/// One lane's reader of the inputs. Column lane / 4 of a block is (sequence, part, half of the step); lane % 4 says which
/// four of the half's 16 values. Lanes of columns that no sequence has load what others do: nobody looks at their sums.
/// `kWhole`: the matrix has whole pages of columns for all warps, so that nothing need be checked.
template <int kBlocks, bool kWhole, class Block>
class InputReader {
 public:
  FLYWHEEL_TASK InputReader(const Block& block, const TileShape& tile, InputShape shape, const VectorInput& input)
      : tile_(tile), warp_(block.warp()), offset_(block.lane() / 4 % 2 * (kStepColumns / 2) + block.lane() % 4 * 4),
        low_(shape.parts() == 2 && block.lane() / 8 % 2 != 0), norms_(input.weights) {
    for (int b = 0; b < kBlocks; ++b) {
      const int sequence = (b * 8 + block.lane() / 4) / (2 * shape.parts());
      x_[b] = input.x + static_cast<std::ptrdiff_t>(sequence < shape.sequences ? sequence : 0) * input.columns;
    }
  }

  /// Loads the values of a page of steps of a chunk; zeros beyond the matrix.
  FLYWHEEL_TASK void load(int chunk, int page, LaneValues<kBlocks>& to) const {
    const int column = column_of(chunk, page);
#pragma unroll
    for (int s = 0; s < kStepsOfPage; ++s)
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) to.x[s][b] = four_of(x_[b], column + s * kStepColumns, 0.f);
  }

  /// Rounds them into place.
  template <int kAll>
  FLYWHEEL_TASK void put(int chunk, int page, const LaneValues<kBlocks>& from, LaneInputs<kBlocks, kAll>& to, int at) {
    if (norms_) {
      const int column = column_of(chunk, page);
      Four norms[kStepsOfPage];
#pragma unroll
      for (int s = 0; s < kStepsOfPage; ++s) norms[s] = four_of(norms_, column + s * kStepColumns, 1.f);
#pragma unroll
      for (int s = 0; s < kStepsOfPage; ++s)
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) round(normed(from.x[s][b], norms[s], b), to.b[at + s][b]);
    } else {
#pragma unroll
      for (int s = 0; s < kStepsOfPage; ++s)
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) round(from.x[s][b], to.b[at + s][b]);
    }
  }

  /// The sum of squares over the warp's columns of all that was put and normed, of the lane's sequence in a block.
  FLYWHEEL_TASK float squares(const Block& block, int b) const {
    float sum = squares_[b];
    sum += block.shuffle_xor(sum, 1);
    sum += block.shuffle_xor(sum, 2);
    return sum + block.shuffle_xor(sum, 4);
  }

 private:
  FLYWHEEL_TASK int column_of(int chunk, int page) const {
    return tile_.first_column(chunk, warp_) + page * kStepsOfPage * kStepColumns + offset_;
  }
  FLYWHEEL_TASK Four four_of(const float* from, int column, float beyond) const {
    if (kWhole || column < tile_.columns) return load_four(from + column);
    return {{beyond, beyond, beyond, beyond}};
  }

  FLYWHEEL_TASK Four normed(const Four& x, const Four& norm, int b) {
    Four to;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      squares_[b] += x.values[j] * x.values[j];
      to.values[j] = x.values[j] * norm.values[j];
    }
    return to;
  }

  FLYWHEEL_TASK void round(const Four& four, std::uint32_t (&to)[2]) const {
    const auto& v = four.values;
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const std::uint32_t high = round_pair(v[2 * pair], v[2 * pair + 1]);
      to[pair] = low_ ? round_pair(v[2 * pair] - from_bf16(high & 0xffffu), v[2 * pair + 1] - from_bf16(high >> 16)) : high;
    }
  }

  TileShape tile_;
  int warp_, offset_;
  bool low_;  // the lower part of each number
  const float* norms_;
  const float* x_[kBlocks];  // the lane's sequences
  float squares_[kBlocks] = {};
};

}  // namespace flywheel::llama
