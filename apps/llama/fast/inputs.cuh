// Activations as the B operand of the tensor cores, in shared memory.
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

FLYWHEEL_TASK inline std::uint32_t round_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;  // to nearest, ties to even; activations are finite
}
FLYWHEEL_TASK inline float from_bf16(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

/// A lane's share of a chunk of inputs: all of it is on its way before the first is used.
inline constexpr int kLaneStride = kLanes * 4;
inline constexpr int kFoursOfLane = kChunkSteps * kStepColumns / kLaneStride;

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

/// Columns of B: for each sequence and part one for each half of a step.
struct InputShape {
  int sequences;

  FLYWHEEL_TASK int parts() const { return sequences <= 2 ? 2 : 1; }
  FLYWHEEL_TASK int columns() const { return sequences * parts() * 2; }
  FLYWHEEL_TASK int column(int sequence, int part, int half) const { return (sequence * parts() + part) * 2 + half; }
  /// Of one warp and one chunk.
  FLYWHEEL_TASK int chunk_bytes() const { return kChunkSteps * columns() * 4 * static_cast<int>(sizeof(FourWeights)); }
};

/// Shared memory that tasks with inputs of this shape need.
FLYWHEEL_TASK constexpr int input_bytes(int sequences) {
  return kTileWarps * (kResidentChunks * kChunkSteps * sequences * (sequences <= 2 ? 2 : 1) * 2 * 4 * 8 +
                       kMostSequences * 4);
}

/// One warp's share of the inputs: only the warp itself writes and reads it.
template <class Block>
class WarpInputs {
 public:
  FLYWHEEL_TASK WarpInputs(Block& block, InputShape shape, unsigned char* memory)
      : block_(block), shape_(shape),
        squares_(reinterpret_cast<float*>(memory) + block.warp() * kMostSequences),
        memory_(memory + kTileWarps * kMostSequences * sizeof(float) +
                block.warp() * kResidentChunks * shape.chunk_bytes()) {}

  /// Fills buffer chunk % 2. `input.load(sequence, column, count, fours, square)` loads the first `count` of `fours`,
  /// four neighbouring values each: at `column`, and kLaneStride after that; and adds to `square` what squares() is to
  /// sum up.
  template <class Input>
  FLYWHEEL_TASK void fill(const TileShape& tile, int chunk, const Input& input) {
    const int first = tile.first_column(chunk, block_.warp()) + block_.lane() * 4;
    const int end = tile.first_column(chunk, block_.warp()) + tile.steps_in(chunk) * kStepColumns;
    const int last = end < tile.columns ? end : tile.columns;
    for (int sequence = 0; sequence < shape_.sequences; ++sequence) {
      float square = 0;
      Four fours[kFoursOfLane] = {};
      if (first < last) input.load(sequence, first, (last - first + kLaneStride - 1) / kLaneStride, fours, square);
#pragma unroll
      for (int i = 0; i < kFoursOfLane; ++i)
        if (first + i * kLaneStride < end) put(chunk, block_.lane() + i * kLanes, sequence, fours[i]);
      for (int apart = kLanes / 2; apart; apart /= 2) square += block_.shuffle_xor(square, apart);
      if (block_.lane() == 0) squares_[sequence] = chunk ? squares_[sequence] + square : square;
    }
  }

  /// Over the warp's columns of all chunks filled so far; after sync_warp().
  FLYWHEEL_TASK float squares(int sequence) const { return squares_[sequence]; }

  /// The B registers of a step of a chunk, for columns 8 * block .. 8 * block + 7.
  FLYWHEEL_TASK void take(int chunk, int step, int column_block, std::uint32_t (&b)[2]) const {
    const int column = column_block * 8 + block_.lane() / 4;
    FourWeights four{};
    if (column < shape_.columns()) four = at(chunk)[(step * shape_.columns() + column) * 4 + block_.lane() % 4];
    b[0] = four.pairs[0];
    b[1] = four.pairs[1];
  }

 private:
  FLYWHEEL_TASK FourWeights* at(int chunk) const {
    return reinterpret_cast<FourWeights*>(memory_ + chunk % kResidentChunks * shape_.chunk_bytes());
  }

  FLYWHEEL_TASK void put(int chunk, int i, int sequence, const Four& four) {
    const int step = i / 8, half = i / 4 % 2, quarter = i % 4;
    std::uint32_t high[4], low[4];
    for (int j = 0; j < 4; ++j) {
      high[j] = round_to_bf16(four.values[j]);
      low[j] = round_to_bf16(four.values[j] - from_bf16(high[j]));
    }
    FourWeights* to = at(chunk) + step * shape_.columns() * 4 + quarter;
    to[shape_.column(sequence, 0, half) * 4] = {{high[0] | high[1] << 16, high[2] | high[3] << 16}};
    if (shape_.parts() == 2)
      to[shape_.column(sequence, 1, half) * 4] = {{low[0] | low[1] << 16, low[2] | low[3] << 16}};
  }

  Block& block_;
  InputShape shape_;
  float* squares_;
  unsigned char* memory_;
};

}  // namespace flywheel::llama
