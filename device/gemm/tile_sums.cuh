// The sums of a tile in registers, and what becomes of them. stage_copies.cuh and tile_store.cuh include it.
//
// A warp has 16 rows of the tile and all its columns: value 4 j + 2 h + i of a thread is row lane / 4 + 8 h, column
// 8 j + 2 (lane % 4) + i. Tensor cores give them so, by wgmma and by mma.
#pragma once

#include <bit>

#include "../../runtime/gemm/gemm.hpp"
#include "../collectives.cuh"

namespace flywheel::detail {

/// Where a thread's values stand in the operands.
struct SumsPlace {
  std::uint32_t row, column;  // of its first value

  __device__ SumsPlace(const TilePlace& tile, int warp, int lane)
      : row(tile.row + static_cast<std::uint32_t>(16 * warp + lane / 4)),
        column(tile.column + static_cast<std::uint32_t>(2 * (lane % 4))) {}
};

/// What storing a tile needs of its product: a copy, in registers. As far as the compiler knows, what is stored might be the
/// record, which it would read again before each store: 8 bytes took three trips to L1, one after the other, see tuning.md.
struct TileTarget {
  void* values;         // of C, or of the sums of this part
  std::uint32_t pitch;  // values from row to row
  std::uint32_t left_rows, right_rows;
  bool floats, adds, transposed;

  __device__ TileTarget(const ProductRecord& product, const TilePlace& tile)
      : values(product.out),
        pitch(product.out_pitch),
        left_rows(product.left.rows),
        right_rows(product.right.rows),
        floats(product.floats != 0),
        adds(product.adds != 0),
        transposed(product.transposed != 0) {
    // Parts are left as floats.
    if (tile.split) values = static_cast<float*>(values) + product.place_of(tile.split, 0, 0);
  }
  /// Where a value of C stands.
  template <class Value>
  __device__ Value* at(std::uint32_t row, std::uint32_t column) const {
    return static_cast<Value*>(values) + std::size_t{row} * pitch + column;
  }
};

/// Neighbours in a row, which are stored at once.
struct alignas(8) TwoSums {
  float low, high;
};
inline constexpr std::uint32_t kWarpRows = 16, kTurnedColumns = 32;
inline constexpr std::uint32_t kTurnedBytes = kWarpRows * kTurnedColumns * sizeof(float);  // of a warp

/// Sums that are stored go out in front, and the others move down: so the loop over them need not be unrolled, and takes few
/// instructions of a kernel that holds many bodies. That of store_vectors() is: with moves there, ptxas spills within the
/// loop of products, 616 TFLOP/s in place of 748, see tuning.md.
template <int kCount, int kSums>
__device__ __forceinline__ void move_down(float (&sums)[kSums]) {
#pragma unroll
  for (int i = 0; i + kCount < kSums; ++i) sums[i] = sums[i + kCount];
}

/// With a second B: the sums of both become one, in front. product.out_columns() columns are left.
template <class Epilogue, int kSums>
__device__ __forceinline__ void join_sums(const ProductRecord& product, const Epilogue& epilogue, float (&sums)[kSums]) {
  if constexpr (HasJoin<Epilogue>) {
    if (!product.has_second()) return;
#pragma unroll
    for (int i = 0; i < kSums / 2; ++i) sums[i] = epilogue.join(sums[i], sums[kSums / 2 + i]);
  }
}

/// Where a value lies in the memory through which a warp turns its sums. Lanes that write, and those that read a row, use
/// different banks.
__device__ __forceinline__ std::uint32_t turned_at(std::uint32_t row, std::uint32_t column) {
  return row * kTurnedColumns + (column ^ row % 4 * 8);
}

/// All lanes of a warp: puts the first sums of each, kGroups groups of 8 columns, where the others find them.
template <int kGroups, int kSums>
__device__ __forceinline__ void turn_sums(float* values, const float (&sums)[kSums], int lane) {
#pragma unroll
  for (int g = 0; g < kGroups; ++g)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t at = turned_at(lane / 4 + 8 * half, 8 * g + lane % 4 * 2);
      *reinterpret_cast<TwoSums*>(values + at) = {sums[4 * g + 2 * half], sums[4 * g + 2 * half + 1]};
    }
  __syncwarp();  // orders what the lanes wrote before what others read
}

/// Stores one value of C, given by its place in the operands. `is_first`: the epilogue is its tile's.
template <class Epilogue>
__device__ __forceinline__ void put_sum(const TileTarget& to, const Epilogue& epilogue, bool is_first, std::uint32_t left,
                                        std::uint32_t right, float sum) {
  const std::uint32_t row = to.transposed ? right : left, column = to.transposed ? left : right;
  const float value = is_first ? epilogue(sum, static_cast<int>(row), static_cast<int>(column)) : sum;
  if (to.adds) add_alone(to.at<float>(row, column), value);
  else if (to.floats) *to.at<float>(row, column) = value;
  else *to.at<Bf16>(row, column) = Bf16::nearest(value);
}

/// All lanes of a warp: stores the first `columns` columns of any tile value by value, such that neighbouring lanes have
/// neighbours in a row of C. `turned`: kTurnedBytes of shared memory of the warp's own. The sums are used up.
template <class Epilogue, int kSums>
__device__ __forceinline__ void store_each(const TileTarget& to, const TilePlace& tile, const Epilogue& epilogue,
                                           float (&sums)[kSums], int columns, unsigned char* turned, int warp, int lane) {
  constexpr int kGroups = kSums / 4 < 4 ? kSums / 4 : 4;  // of 8 columns, in a chunk
  auto* const values = reinterpret_cast<float*>(turned);
  FLYWHEEL_ROLLED
  for (int q = 0; q < columns / 8; q += kGroups) {
    turn_sums<kGroups>(values, sums, lane);
    const std::uint32_t first_row = tile.row + kWarpRows * warp, first_column = tile.column + 8 * q;
    FLYWHEEL_ROLLED
    for (std::uint32_t i = lane; i < kWarpRows * kGroups * 8; i += 32) {
      const std::uint32_t row = to.transposed ? i % kWarpRows : i / (kGroups * 8);
      const std::uint32_t column = to.transposed ? i / kWarpRows : i % (kGroups * 8);
      const bool is_of_tile = 8 * q + static_cast<int>(column) < columns;
      if (is_of_tile && first_row + row < to.left_rows && first_column + column < to.right_rows)
        put_sum(to, epilogue, tile.split == 0, first_row + row, first_column + column, values[turned_at(row, column)]);
    }
    __syncwarp();  // orders what the lanes have read before the next chunk is written
    move_down<4 * kGroups>(sums);
  }
}

/// Four values of a thread, which are loaded and stored at once.
struct alignas(16) FourSums {
  float at[4];
};
/// The partial sums of a part of a tile: four values of a thread lie together, and those of the threads side by side.
template <int kSums>
__device__ __forceinline__ FourSums* partials_of(const ProductRecord& product, std::uint32_t tile, std::uint32_t split,
                                                 int rank) {
  constexpr std::size_t kVectors = kSums / 4 * kComputeThreads;
  return reinterpret_cast<FourSums*>(product.partials) + (std::size_t{tile} * product.splits + split) * kVectors + rank;
}

template <int kSums>
__device__ __forceinline__ void store_partials(FourSums* to, const float (&sums)[kSums]) {
#pragma unroll
  for (int q = 0; q < kSums / 4; ++q)
    to[q * kComputeThreads] = {sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]};
}
/// sums += those of all parts, in their order. `from`: of the first part, of a tile of which a thread has kAll sums. Some parts
/// are read at once: a trip to L2 for each would take longer than all else.
template <int kAll, int kSums>
__device__ __forceinline__ void add_parts_of(float (&sums)[kSums], const FourSums* from, std::uint32_t parts) {
  constexpr std::uint32_t kAtOnce = 4;
  constexpr std::size_t kApart = std::size_t{kAll} / 4 * kComputeThreads;
  FLYWHEEL_ROLLED
  for (std::uint32_t part = 0; part < parts; part += kAtOnce) {
    uint4 more[kAtOnce][kSums / 4];
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i)
#pragma unroll
      for (int q = 0; q < kSums / 4; ++q) {
        const std::uint32_t there = part + i < parts ? part + i : parts - 1;  // a load without a condition goes out at once
        more[i][q] = __ldcg(reinterpret_cast<const uint4*>(from + there * kApart + q * kComputeThreads));
      }
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i)
#pragma unroll
      for (int q = 0; q < kSums / 4; ++q) {
        const auto four = std::bit_cast<FourSums>(more[i][q]);
#pragma unroll
        for (int k = 0; k < 4; ++k) sums[4 * q + k] += part + i < parts ? four.at[k] : 0.f;
      }
  }
}

}  // namespace flywheel::detail
