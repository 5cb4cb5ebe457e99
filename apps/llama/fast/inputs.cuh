// Activations as the B operand of the tensor cores. Whoever makes one rounds it, times the weights of the norm that comes
// next, so that those who multiply with it load their registers and are ready.
//
// With up to two sequences an activation is the sum of two bf16 numbers (16 bits of its fraction), each in a column of
// its own: B has 8, and they cost nothing. With more sequences it is rounded to one.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#endif

#include "apps/llama/fast/tile.cuh"

namespace flywheel::llama {

inline constexpr int kMostSequences = 8;

/// To nearest, ties to even; activations are finite.
FLYWHEEL_TASK inline std::uint32_t round_to_bf16(float value) {
#ifdef __CUDA_ARCH__
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
#endif
}
FLYWHEEL_TASK inline float from_bf16(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

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

/// Rounded vectors: [parts][sequences][columns], see InputShape.
FLYWHEEL_TASK inline std::size_t packed_size(int sequences, int columns) {
  return static_cast<std::size_t>(InputShape{sequences}.parts() * sequences) * static_cast<std::size_t>(columns);
}
FLYWHEEL_TASK inline void pack(std::uint16_t* to, int sequences, int columns, int sequence, int column, float value) {
  const int at = sequence * columns + column;
  const std::uint32_t high = round_to_bf16(value);
  to[at] = static_cast<std::uint16_t>(high);
  if (sequences <= 2) to[sequences * columns + at] = static_cast<std::uint16_t>(round_to_bf16(value - from_bf16(high)));
}

/// The B registers of `kSteps` steps.
template <int kBlocks, int kSteps>
struct LaneInputs {
  FourWeights b[kSteps][kBlocks];
};

/// One lane's reader of the inputs. Column lane / 4 of a block is (sequence, part, half of the step); lane % 4 says which
/// four of the half's 16 values. Lanes of columns that no sequence has load what others do: nobody looks at their sums.
/// `kWhole`: the matrix has whole pages of columns for all warps, so that nothing need be checked.
template <int kBlocks, bool kWhole>
class InputReader {
 public:
  template <class Block>
  FLYWHEEL_TASK InputReader(const Block& block, const TileShape& tile, InputShape shape, const std::uint16_t* packed)
      : tile_(tile), warp_(block.warp()), offset_(block.lane() / 4 % 2 * (kStepColumns / 2) + block.lane() % 4 * 4) {
    const int low = shape.parts() == 2 && block.lane() / 8 % 2 ? shape.sequences : 0;
    for (int b = 0; b < kBlocks; ++b) {
      const int sequence = (b * 8 + block.lane() / 4) >> shape.parts();  // by 2 or 4
      from_[b] = packed + (low + (sequence < shape.sequences ? sequence : 0)) * tile.columns;
    }
  }

  /// Loads a page of steps of a chunk into steps at.. of `to`; zeros beyond the matrix.
  template <int kAll>
  FLYWHEEL_TASK void load(int chunk, int page, LaneInputs<kBlocks, kAll>& to, int at) const {
    const int column = tile_.first_column(chunk, warp_) + page * kStepsOfPage * kStepColumns + offset_;
#pragma unroll
    for (int s = 0; s < kStepsOfPage; ++s)
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
        if (kWhole || column + s * kStepColumns < tile_.columns)
          to.b[at + s][b] = *reinterpret_cast<const FourWeights*>(from_[b] + (column + s * kStepColumns));
        else
          to.b[at + s][b] = FourWeights{};
  }

 private:
  TileShape tile_;
  int warp_, offset_;
  const std::uint16_t* from_[kBlocks];
};

}  // namespace flywheel::llama
