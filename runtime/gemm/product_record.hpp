// What the tasks of one matrix product share, in device memory. Product (host/gemm) makes it, Gemm (gemm.hpp) reads it.
//
// A product is cut into tiles of kTileRows rows of one operand, the left one, by tile_columns rows of the other, the right one;
// both lie with their depth contiguous. `left` is A and `right` is B of C = A B^T; if A has few rows it is the other way round,
// and the tiles of C are transposed: then a tile's rows are rows of B, of which there are enough for all workers. If there are
// fewer tiles than workers, each is cut along its depth into `splits` parts, a task each, and the task whose part comes last
// adds them up in their order.
//
// With a second B, a tile holds the sums with some rows of B beside those with the same rows of the second one, and the
// epilogue joins two and two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bf16.hpp"

namespace flywheel::detail {

inline constexpr std::uint32_t kTileRows = 128;  // of the left operand: 16 for each compute warp
inline constexpr std::uint32_t kTileDepth = 64;  // of a step: 128 bytes of each row, which is a swizzled line
inline constexpr std::uint32_t kTensorMapBytes = 128;
inline constexpr std::uint32_t kMostPartsEach = 16;                  // of a task
inline constexpr std::uint32_t kStoredRows = 8, kStoredLine = 128;   // of C, in one tensor copy: rows and their bytes
inline constexpr std::uint32_t kStoredColumns = 32;                  // of C, which a warp stores at once
inline constexpr std::uint32_t kTileColumns[] = {256, 128, 64, 16};  // what a tile may have

/// Scratch memory of a worker without which a task with so many columns cannot run: two steps, and what lies beside them, on
/// whatever tensor cores.
constexpr std::uint32_t least_scratch(std::uint32_t tile_columns) {
  return 2 * (kTileRows + tile_columns) * kTileDepth * 2 + (18u << 10);
}

/// One operand: its rows, with `depth` values each.
struct Operand {
  const Bf16* values;
  std::uint32_t rows;
  std::uint32_t pitch;  // values from row to row
};

/// Where a tile begins, and which of the steps along the depth are a task's.
struct TilePlace {
  std::uint32_t tile, split;
  std::uint32_t row, column;  // of the first value of the tile, in rows of `left` and of `right`
  std::uint32_t first_step, steps;
};

struct alignas(128) ProductRecord {
  // For tensor copies; zeros where there are none. `out_map` if has_out_map.
  unsigned char left_map[kTensorMapBytes], right_map[kTensorMapBytes], second_map[kTensorMapBytes], out_map[kTensorMapBytes];
  Operand left, right;
  Operand second;  // without values: none. Otherwise one half of a tile's columns is of rows of `right`, the other of these
  void* out;
  float* partials;          // of tasks of split tiles: [tile][split][kTileRows * tile_columns]
  std::uint64_t* arrivals;  // of each of these tiles: the parts that are there, see arrives_last()
  std::uint32_t out_pitch;
  std::uint32_t depth;
  std::uint32_t tile_columns;
  std::uint32_t row_tiles, column_tiles;
  std::uint32_t splits, steps;  // `steps` along the depth, in all
  std::uint32_t band;           // rows of tiles that are worked through together, for L2
  std::uint32_t parts_each;     // parts of a task, 1 if tiles are split
  std::uint32_t stride;         // from a task's part to its next
  std::uint32_t floats;         // 1: `out` holds float, 0: Bf16
  std::uint32_t transposed;     // 1: rows of a tile are columns of C
  std::uint32_t has_vectors;    // 1: rows of C begin and end at multiples of 16 bytes, and tiles have multiples of 32 columns
  std::uint32_t has_turned_vectors;  // 1: the same of a tile whose rows are columns of C, with any columns
  std::uint32_t has_out_map;         // 1: tensor copies can store C
  std::uint32_t adds;                // 1: C, which holds floats, is added to
  std::uint32_t constant_b;          // 1: no task writes B
  std::uint32_t stores_rows;         // 1: parts are left of tiles of which a task has one, and bulk copies can store rows of C
  std::uint32_t leaves_parts;        // 1: C is `splits` matrices of floats behind each other, one of the sums of each part
  std::uint32_t left_box_rows;       // of `left` that a tensor copy brings: fewer than kTileRows if it has fewer
  const std::uint32_t* live_rows;    // of A, that count; null: all do

  /// Whether a tile has a row of A that counts.
  FLYWHEEL_TASK bool is_live(const TilePlace& place) const {
    return !live_rows || (transposed ? place.column : place.row) < *live_rows;
  }
  /// Rows of tiles that have one, where A is the left operand. Nobody writes *live_rows while tasks of the product run.
  FLYWHEEL_TASK constexpr std::uint32_t live_row_tiles() const {
    if (!live_rows || transposed) return row_tiles;
    const std::uint32_t live = *live_rows / kTileRows + (*live_rows % kTileRows != 0);
    return live < row_tiles ? live : row_tiles;
  }
  FLYWHEEL_TASK constexpr std::uint32_t tiles() const { return row_tiles * column_tiles; }
  FLYWHEEL_TASK constexpr std::uint32_t parts() const { return tiles() * splits; }
  /// If tiles are split, a task each for their parts; the one whose part comes last adds them up.
  FLYWHEEL_TASK constexpr std::uint32_t tasks() const {
    const std::uint32_t group = parts_each * stride, rest = parts() % group;
    return parts() / group * stride + (rest < stride ? rest : stride);
  }
  /// The j-th part of a task; there is none if it is not below parts(). Tasks that run side by side have neighbouring parts.
  FLYWHEEL_TASK constexpr std::uint32_t part_of(std::uint32_t task, std::uint32_t j) const {
    return task / stride * (parts_each * stride) + j * stride + task % stride;
  }
  /// Whether the tasks add the parts of tiles up.
  FLYWHEEL_TASK constexpr bool adds_parts() const { return splits > 1 && !leaves_parts; }
  /// Where a value of C lies. `split`: 0 but of parts that are left.
  FLYWHEEL_TASK constexpr std::size_t place_of(std::uint32_t split, std::uint32_t row, std::uint32_t column) const {
    return (std::size_t{split} * (transposed ? right : left).rows + row) * out_pitch + column;
  }
  FLYWHEEL_TASK constexpr bool has_second() const { return second.values != nullptr; }
  /// Columns of C that a tile makes.
  FLYWHEEL_TASK constexpr std::uint32_t out_columns() const { return has_second() ? tile_columns / 2 : tile_columns; }
  /// Pieces of a tile whose parts are added up one after the other: kStoredColumns columns of C, or all.
  FLYWHEEL_TASK constexpr std::uint32_t pieces() const {
    return out_columns() < kStoredColumns ? 1 : out_columns() / kStoredColumns;
  }
  /// The operand of a column of a tile, and from where on its rows are counted.
  FLYWHEEL_TASK constexpr const Operand& operand_of(std::uint32_t column) const {
    return column < out_columns() ? right : second;
  }
  FLYWHEEL_TASK constexpr std::uint32_t row_of(const TilePlace& place, std::uint32_t column) const {
    return place.column + (column < out_columns() ? column : column - out_columns());
  }
  FLYWHEEL_TASK constexpr std::size_t tile_values() const { return std::size_t{kTileRows} * tile_columns; }

  /// Tiles go in bands of `band` rows of tiles, and down each column of a band: what workers multiply at the same time then
  /// takes few rows of either operand. Those without a row that counts come last, so that no worker has more of the others
  /// than its share.
  FLYWHEEL_TASK constexpr TilePlace place(std::uint32_t part) const {
    const std::uint32_t tile = part / splits, split = part % splits, all_rows = live_row_tiles();
    if (tile >= all_rows * column_tiles) return {tile, split, row_tiles * kTileRows, 0, 0, 0};
    const std::uint32_t first_row = tile / (band * column_tiles) * band, in_band = tile % (band * column_tiles);
    const std::uint32_t rows = all_rows - first_row < band ? all_rows - first_row : band;
    const std::uint32_t first = step_of(split);
    return {tile,
            split,
            (first_row + in_band % rows) * kTileRows,
            in_band / rows * out_columns(),
            first,
            step_of(split + 1) - first};
  }
  /// The first step of a split: they share the steps out evenly.
  FLYWHEEL_TASK constexpr std::uint32_t step_of(std::uint32_t split) const {
    return steps * split / splits;  // at most 64 splits of fewer than 2^26 steps
  }
};

}  // namespace flywheel::detail

namespace flywheel {

/// Options::scratch_bytes with which matrix products are quickest: four steps of the largest tiles, and 16 KB through which C
/// is stored. They run with less, too.
inline constexpr std::uint32_t kGemmScratchBytes = 4 * (detail::kTileRows + 256) * detail::kTileDepth * 2 + (16 << 10) + 1536;

}  // namespace flywheel
