// How a weight matrix lies in an operand stream, so that tensor cores take it as it comes.
//
// A matrix-vector product is cut by rows among workers and by columns among the 8 compute warps of a worker. The unit is
// a group of 8 rows. One mma.m16n8k16 covers 8 rows and 32 columns: the upper 8 rows of its A hold columns 0..15, the
// lower 8 rows columns 16..31, and B has a column for each half, so the two halves of a dot product come out in one
// lane's first and last sum. (16-row tiles would leave 2048 rows on 128 of 132 SMs.)
//
// The order of k within a tile is free as long as A and B agree: lane quarter q takes columns 4q..4q+3 of each half, so
// that activations are read 16 bytes at a time.
//
// Both are halves: activations keep 11 bits of their fraction where bf16 would keep 8. A bf16 weight fits as it is: times
// 16, all between 2^-21 and 4094 are exact, and what is smaller is off by 2^-29 at most. Activations are divided by 16,
// which leaves the products as they are and room up to 1,048,000 (with outliers that some models have in mind: a
// residual stream is rounded before it is normed). What is larger becomes infinite, and the run fails: see kLogitsNotFinite.
#pragma once

#include "apps/llama/fast/half.cuh"

namespace flywheel::llama {

inline constexpr int kTileWarps = 8;
inline constexpr int kGroupRows = 8;
inline constexpr int kStepColumns = 32;                               // of one warp
inline constexpr int kTileBytes = kGroupRows * kStepColumns * 2;      // 512
inline constexpr int kChunkSteps = 8;                                 // steps of a chunk: 2048 columns of all warps
inline constexpr int kColumnsOfStep = kTileWarps * kStepColumns;      // 256
inline constexpr int kStepsOfPage = 8;                                // 32 KB for all warps
inline constexpr int kResidentChunks = 2;  // inputs of up to 4096 columns stay in registers for a whole task

FLYWHEEL_TASK constexpr int steps_of(int columns) { return (columns + kColumnsOfStep - 1) / kColumnsOfStep; }
FLYWHEEL_TASK constexpr int chunks_of(int columns) { return (steps_of(columns) + kChunkSteps - 1) / kChunkSteps; }
/// Longer inputs are taken chunk by chunk, and the sums of all groups of a task are kept meanwhile.
FLYWHEEL_TASK constexpr bool is_streamed(int columns) { return chunks_of(columns) > kResidentChunks; }
inline constexpr int kStreamedGroups = 4;  // most groups of a task whose input is streamed

/// Where one step of a task lies: which group, chunk and step in the chunk come as its n-th.
struct StepPlace {
  int group, chunk, step;
};

/// A task's share of a matrix: whole groups of rows.
struct TileShape {
  int columns;  // a multiple of 8
  int groups;
  int sequences;  // that are multiplied at once

  FLYWHEEL_TASK int steps_in(int chunk) const {
    const int left = steps_of(columns) - chunk * kChunkSteps;
    return left < kChunkSteps ? left : kChunkSteps;
  }
  FLYWHEEL_TASK int total_steps() const { return groups * steps_of(columns); }
  FLYWHEEL_TASK std::uint32_t bytes() const {
    return static_cast<std::uint32_t>(total_steps()) * kTileBytes * kTileWarps;
  }

  /// Group after group; chunk after chunk where the input is streamed.
  FLYWHEEL_TASK StepPlace place(int n) const {
    const int all = steps_of(columns);
    if (!is_streamed(columns)) return {n / all, n % all / kChunkSteps, n % all % kChunkSteps};
    const int of_whole_chunk = groups * kChunkSteps;
    const int chunk = n / of_whole_chunk, rest = n % of_whole_chunk;
    return {rest / steps_in(chunk), chunk, rest % steps_in(chunk)};
  }

  /// Columns that a warp takes first in a chunk.
  FLYWHEEL_TASK int first_column(int chunk, int warp) const {
    return chunk * kChunkSteps * kColumnsOfStep + warp * steps_in(chunk) * kStepColumns;
  }

  /// Where the tile of step n and `warp` begins, in bytes: a page holds up to kStepsOfPage steps of every warp.
  FLYWHEEL_TASK std::size_t tile_at(int n, int warp) const {
    const int page = n / kStepsOfPage, left = total_steps() - page * kStepsOfPage;
    const int in_page = left < kStepsOfPage ? left : kStepsOfPage;
    return static_cast<std::size_t>(page) * kStepsOfPage * kTileWarps * kTileBytes +
           static_cast<std::size_t>(warp * in_page + n % kStepsOfPage) * kTileBytes;
  }
};

/// The columns are whole pages for all warps.
FLYWHEEL_TASK constexpr bool is_whole(int columns) { return columns % (kColumnsOfStep * kStepsOfPage) == 0; }

inline constexpr float kWeightUnits = 16;  // of 1, and of activations 1 / 16

FLYWHEEL_TASK inline std::uint32_t round_activation(float value) { return round_half_or_infinite(value * (1 / kWeightUnits)); }
FLYWHEEL_TASK inline std::uint32_t half_of_weight(std::uint32_t bf16) {
  return round_half_or_infinite(to_float(Bf16{static_cast<std::uint16_t>(bf16)}) * kWeightUnits);
}

/// Four neighbouring weights of a row.
struct alignas(8) FourWeights {
  std::uint32_t pairs[2];
};
FLYWHEEL_TASK inline FourWeights halves_of(const FourWeights& bf16) {
  const auto both = [](std::uint32_t pair) { return half_of_weight(pair & 0xffffu) | half_of_weight(pair >> 16) << 16; };
  return {{both(bf16.pairs[0]), both(bf16.pairs[1])}};
}

/// One lane's 16 bytes of a tile: the A registers of the instruction.
struct alignas(16) TilePart {
  std::uint32_t registers[4];
};

/// All threads of a block: lays a task's weights out. `row_of(i)` points to row i of the task's groups * 8 rows, or is
/// null beyond the matrix: then zeros are packed.
template <class Block, class RowOf>
FLYWHEEL_TASK void pack_tiles(Block& block, const TileShape& shape, unsigned char* to, RowOf&& row_of) {
  block.for_each(shape.total_steps() * kTileWarps * kLanes, [&](int i) {
    const int lane = i % kLanes, warp = i / kLanes % kTileWarps, n = i / (kLanes * kTileWarps);
    const StepPlace place = shape.place(n);
    const Bf16* row = row_of(place.group * kGroupRows + lane / 4);
    const int column = shape.first_column(place.chunk, warp) + place.step * kStepColumns + lane % 4 * 4;
    const auto four = [&](int first) {
      return row && first < shape.columns ? halves_of(*reinterpret_cast<const FourWeights*>(row + first)) : FourWeights{};
    };
    const FourWeights upper = four(column), lower = four(column + kStepColumns / 2);
    *reinterpret_cast<TilePart*>(to + shape.tile_at(n, warp) + lane * sizeof(TilePart)) =
        TilePart{{upper.pairs[0], lower.pairs[0], upper.pairs[1], lower.pairs[1]}};
  });
}

}  // namespace flywheel::llama
