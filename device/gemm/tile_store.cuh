// How a warp stores its values of a tile of at least 32 columns from registers, by 8 or 16 bytes of each lane. gemm.cuh
// includes it.
//
// Four lanes hold neighbours in a row of C, two columns each. Floats are stored so; of bf16 four lanes exchange what they hold
// of four groups of 8 columns, and each stores a group.
#pragma once

#include <bit>

#include "tile_sums.cuh"

namespace flywheel::detail {

/// Lane c of four holds word c of each of four groups; after it, the words of group c.
__device__ __forceinline__ void turn_words(std::uint32_t (&words)[4], int lane) {
#pragma unroll
  for (int distance = 1; distance <= 2; ++distance) {
    const bool upper = lane & distance;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & distance) continue;
      std::uint32_t &low = words[i], &high = words[i + distance];
      const std::uint32_t came = __shfl_xor_sync(0xffffffffu, upper ? low : high, distance);
      (upper ? low : high) = came;
    }
  }
}

inline constexpr int kStoredGroups = 4;  // of 8 columns, at once

/// What the epilogue makes of a thread's values of one row: pairs of neighbouring columns, 8 columns from pair to pair.
template <class Epilogue, int kCount>
__device__ __forceinline__ void finish_pairs(const TileTarget& to, const Epilogue& epilogue, float (&values)[kCount],
                                             std::uint32_t row, std::uint32_t column) {
  if constexpr (HasPairs<Epilogue>) {
    if (row < to.left_rows)
      epilogue.pairs(values, static_cast<int>(row), static_cast<int>(column), static_cast<int>(to.right_rows));
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      values[i] = epilogue(values[i], static_cast<int>(row), static_cast<int>(column) + i / 2 * 8 + i % 2);
  }
}
/// The same of all sums of the first `columns` columns.
template <class Epilogue, int kSums>
__device__ __forceinline__ void finish_sums(const TileTarget& to, const Epilogue& epilogue, const SumsPlace& place,
                                            float (&sums)[kSums], int columns) {
#pragma unroll
  for (int q = 0; q < kSums / 4; q += kStoredGroups) {
    if (8 * q >= columns) break;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float values[2 * kStoredGroups];
#pragma unroll
      for (int i = 0; i < 2 * kStoredGroups; ++i) values[i] = sums[4 * (q + i / 2) + 2 * half + i % 2];
      finish_pairs(to, epilogue, values, place.row + 8 * half, place.column + 8 * q);
#pragma unroll
      for (int i = 0; i < 2 * kStoredGroups; ++i) sums[4 * (q + i / 2) + 2 * half + i % 2] = values[i];
    }
  }
}

/// Columns that are there of `columns`, from `first` on.
__device__ __forceinline__ int columns_there(const TileTarget& to, std::uint32_t first, int columns) {
  const int left = static_cast<int>(to.right_rows) - static_cast<int>(first);
  return left < columns ? left : columns;
}

/// The pairs of two rows, as floats: stored or added.
template <int kSums>
__device__ __forceinline__ void store_floats(const TileTarget& to, const SumsPlace& place, const float (&sums)[kSums],
                                             int columns) {
  const int there = columns_there(to, place.column, columns);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (place.row + 8 * half >= to.left_rows) return;
    float* const row = to.at<float>(place.row + 8 * half, place.column);
    if (to.adds) {
#pragma unroll
      for (int q = 0; q < kSums / 4; ++q) {
        if (q % kStoredGroups == 0 && 8 * q >= columns) break;
        if (8 * q < there) ptx::add_two(row + 8 * q, sums[4 * q + 2 * half], sums[4 * q + 2 * half + 1]);
      }
      continue;
    }
#pragma unroll
    for (int q = 0; q < kSums / 4; ++q) {
      if (q % kStoredGroups == 0 && 8 * q >= columns) break;
      const std::uint32_t words[2] = {std::bit_cast<std::uint32_t>(sums[4 * q + 2 * half]),
                                      std::bit_cast<std::uint32_t>(sums[4 * q + 2 * half + 1])};
      if (8 * q < there) ptx::store_vector<8>(row + 8 * q, words);
    }
  }
}
/// The same as bf16. All lanes of a warp.
template <int kSums>
__device__ __forceinline__ void store_bf16(const TileTarget& to, const SumsPlace& place, const float (&sums)[kSums],
                                           int columns, int lane) {
  const std::uint32_t first = place.column + lane % 4 * 6;  // 8 columns from lane to lane, of which place.column has 2
  const int there = columns_there(to, first, columns);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool has_row = place.row + 8 * half < to.left_rows;
    Bf16* const row = to.at<Bf16>(place.row + 8 * half, first);
#pragma unroll
    for (int q = 0; q < kSums / 4; q += kStoredGroups) {
      if (8 * q >= columns) break;
      std::uint32_t words[kStoredGroups];
#pragma unroll
      for (int g = 0; g < kStoredGroups; ++g)
        words[g] = ptx::bf16_pair(sums[4 * (q + g) + 2 * half], sums[4 * (q + g) + 2 * half + 1]);
      turn_words(words, lane);
      if (has_row && 8 * q < there) ptx::store_vector<16>(row + 8 * q, words);
    }
  }
}

/// All lanes of a warp: stores the first `columns` columns of a tile, a multiple of 32. Rows of C begin and end at multiples of
/// 16 bytes.
template <class Epilogue, int kSums>
__device__ __forceinline__ void store_vectors(const TileTarget& to, const TilePlace& tile, const Epilogue& epilogue,
                                              float (&sums)[kSums], int columns, int warp, int lane) {
  const SumsPlace place(tile, warp, lane);
  if (tile.split == 0 && !keeps_sums(epilogue)) finish_sums(to, epilogue, place, sums, columns);
  if (to.floats) store_floats(to, place, sums, columns);
  else store_bf16(to, place, sums, columns, lane);
}

/// What the epilogue makes of values that stand one above the other in a tile whose rows are columns of C, packed for one
/// store.
template <class Value, class Epilogue>
__device__ __forceinline__ void pack_turned(const Epilogue& epilogue, const float* values, std::uint32_t column,
                                            std::uint32_t first_row, std::uint32_t c_row, std::uint32_t c_column, bool is_first,
                                            std::uint32_t (&words)[4]) {
  constexpr std::uint32_t kCount = 16 / sizeof(Value);
  float made[kCount];
#pragma unroll
  for (std::uint32_t k = 0; k < kCount; ++k) {
    const float value = values[turned_at(first_row + k, column)];
    made[k] = is_first ? epilogue(value, static_cast<int>(c_row), static_cast<int>(c_column + k)) : value;
  }
#pragma unroll
  for (std::uint32_t w = 0; w < 4; ++w)
    if constexpr (sizeof(Value) == sizeof(float)) words[w] = std::bit_cast<std::uint32_t>(made[w]);
    else words[w] = ptx::bf16_pair(made[2 * w], made[2 * w + 1]);
}

/// All lanes of a warp: stores the first `columns` columns of a tile whose rows are columns of C, 16 bytes of each lane, which
/// are 8 values of bf16 or 4 floats: product.has_turned_vectors. `turned`: as in store_each(). The sums are used up.
template <class Value, class Epilogue, int kSums>
__device__ __forceinline__ void store_turned_as(const TileTarget& to, const TilePlace& tile, const Epilogue& epilogue,
                                                float (&sums)[kSums], int columns, unsigned char* turned, int warp, int lane) {
  constexpr std::uint32_t kEach = 16 / sizeof(Value), kPieces = kWarpRows / kEach;
  constexpr int kGroups = kSums / 4 < 4 ? kSums / 4 : 4;
  auto* const values = reinterpret_cast<float*>(turned);
  FLYWHEEL_ROLLED
  for (int q = 0; q < columns / 8; q += kGroups) {
    turn_sums<kGroups>(values, sums, lane);
    const std::uint32_t first_row = tile.row + kWarpRows * warp, first_column = tile.column + 8 * q;
#pragma unroll
    for (std::uint32_t i = lane; i < 8 * kGroups * kPieces; i += 32) {
      const std::uint32_t column = i / kPieces, row = i % kPieces * kEach;
      const std::uint32_t c_row = first_column + column, c_column = first_row + row;
      const bool is_of_tile = 8 * q + static_cast<int>(column) < columns;
      if (!is_of_tile || c_column >= to.left_rows || c_row >= to.right_rows) continue;
      std::uint32_t words[4];
      pack_turned<Value>(epilogue, values, column, row, c_row, c_column, tile.split == 0, words);
      ptx::store_vector<16>(to.at<Value>(c_row, c_column), words);
    }
    __syncwarp();  // orders what the lanes have read before the next chunk is written
    move_down<4 * kGroups>(sums);
  }
}
template <class Epilogue, int kSums>
__device__ __forceinline__ void store_turned(const TileTarget& to, const TilePlace& tile, const Epilogue& epilogue,
                                             float (&sums)[kSums], int columns, unsigned char* turned, int warp, int lane) {
  if (to.floats) store_turned_as<float>(to, tile, epilogue, sums, columns, turned, warp, lane);
  else store_turned_as<Bf16>(to, tile, epilogue, sums, columns, turned, warp, lane);
}

/// All lanes of a warp: stores the first `columns` columns of a tile, whatever C is like; by vectors where the epilogue has
/// join(): its products do not store by copies. `turned`: kTurnedBytes of shared memory of the warp's own. The sums are used
/// up.
template <class Epilogue, int kSums>
__device__ __forceinline__ void store_values(const ProductRecord& product, const TilePlace& tile, const Epilogue& epilogue,
                                             float (&sums)[kSums], int columns, unsigned char* turned, int warp, int lane) {
  const TileTarget to(product, tile);
  const Epilogue own = epilogue;  // a copy, as TileTarget is one
  if constexpr (HasJoin<Epilogue> && kSums >= 16)
    if (product.has_vectors) return store_vectors(to, tile, own, sums, columns, warp, lane);
  if constexpr (kSums <= 32)  // tiles of more columns are not turned
    if (product.has_turned_vectors) return store_turned(to, tile, own, sums, columns, turned, warp, lane);
  store_each(to, tile, own, sums, columns, turned, warp, lane);
}

}  // namespace flywheel::detail
