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

/// What the epilogue makes of a thread's values of one row: pairs of neighbouring columns, 8 columns from pair to pair.
template <class Epilogue, int kCount>
__device__ __forceinline__ void finish_pairs(const ProductRecord& product, const Epilogue& epilogue, float (&values)[kCount],
                                             std::uint32_t row, std::uint32_t column) {
  if constexpr (HasPairs<Epilogue>) {
    if (row < product.left.rows)
      epilogue.pairs(values, static_cast<int>(row), static_cast<int>(column), static_cast<int>(product.right.rows));
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      values[i] = epilogue(values[i], static_cast<int>(row), static_cast<int>(column) + i / 2 * 8 + i % 2);
  }
}

inline constexpr int kStoredGroups = 4;  // of 8 columns, at once

/// The pairs of one row, as floats: stored or added. `column` is the thread's first one.
__device__ __forceinline__ void store_floats(const ProductRecord& product, const float (&values)[2 * kStoredGroups],
                                             std::uint32_t split, std::uint32_t row, std::uint32_t column) {
  float* const to = static_cast<float*>(product.out) + product.place_of(split, row, column);
#pragma unroll
  for (int g = 0; g < kStoredGroups; ++g) {
    if (row >= product.left.rows || column + 8 * g >= product.right.rows) continue;
    if (product.adds) {
      ptx::add_two(to + 8 * g, values[2 * g], values[2 * g + 1]);
    } else {
      const std::uint32_t words[2] = {std::bit_cast<std::uint32_t>(values[2 * g]),
                                      std::bit_cast<std::uint32_t>(values[2 * g + 1])};
      ptx::store_vector<8>(to + 8 * g, words);
    }
  }
}
/// The same as bf16. All lanes of a warp.
__device__ __forceinline__ void store_bf16(const ProductRecord& product, const float (&values)[2 * kStoredGroups],
                                           std::uint32_t row, std::uint32_t column, int lane) {
  std::uint32_t words[kStoredGroups];
#pragma unroll
  for (int g = 0; g < kStoredGroups; ++g) words[g] = ptx::bf16_pair(values[2 * g], values[2 * g + 1]);
  turn_words(words, lane);
  const std::uint32_t first = column + lane % 4 * 6;  // 8 columns from lane to lane, of which `column` has 2
  if (row >= product.left.rows || first >= product.right.rows) return;
  ptx::store_vector<16>(static_cast<Bf16*>(product.out) + std::size_t{row} * product.out_pitch + first, words);
}

/// All lanes of a warp: stores the first `columns` columns of a tile, a multiple of 32. Rows of C begin and end at multiples of
/// 16 bytes.
template <class Epilogue, int kSums>
__device__ __forceinline__ void store_vectors(const ProductRecord& product, const TilePlace& tile, const Epilogue& epilogue,
                                              const float (&sums)[kSums], int columns, int warp, int lane) {
  const SumsPlace place(tile, warp, lane);
#pragma unroll
  for (int q = 0; q < kSums / 4; q += kStoredGroups) {
    if (8 * q >= columns) break;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float values[2 * kStoredGroups];
#pragma unroll
      for (int g = 0; g < kStoredGroups; ++g) {
        values[2 * g] = sums[4 * (q + g) + 2 * half];
        values[2 * g + 1] = sums[4 * (q + g) + 2 * half + 1];
      }
      const std::uint32_t row = place.row + 8 * half, column = place.column + 8 * q;
      if (tile.split == 0) finish_pairs(product, epilogue, values, row, column);
      if (product.floats) store_floats(product, values, tile.split, row, column);
      else store_bf16(product, values, row, column, lane);
    }
  }
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
__device__ __forceinline__ void store_turned_as(const ProductRecord& product, const TilePlace& tile, const Epilogue& epilogue,
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
      if (!is_of_tile || c_column >= product.left.rows || c_row >= product.right.rows) continue;
      std::uint32_t words[4];
      pack_turned<Value>(epilogue, values, column, row, c_row, c_column, tile.split == 0, words);
      ptx::store_vector<16>(static_cast<Value*>(product.out) + product.place_of(tile.split, c_row, c_column), words);
    }
    __syncwarp();  // orders what the lanes have read before the next chunk is written
    move_down<4 * kGroups>(sums);
  }
}
template <class Epilogue, int kSums>
__device__ __forceinline__ void store_turned(const ProductRecord& product, const TilePlace& tile, const Epilogue& epilogue,
                                             float (&sums)[kSums], int columns, unsigned char* turned, int warp, int lane) {
  if (product.floats) store_turned_as<float>(product, tile, epilogue, sums, columns, turned, warp, lane);
  else store_turned_as<Bf16>(product, tile, epilogue, sums, columns, turned, warp, lane);
}

/// All lanes of a warp: stores the first `columns` columns of a tile, whatever C is like; by vectors where the epilogue has
/// join(): its products do not store by copies. `turned`: kTurnedBytes of shared memory of the warp's own. The sums are used
/// up.
template <class Epilogue, int kSums>
__device__ __forceinline__ void store_values(const ProductRecord& product, const TilePlace& tile, const Epilogue& epilogue,
                                             float (&sums)[kSums], int columns, unsigned char* turned, int warp, int lane) {
  if constexpr (HasJoin<Epilogue> && kSums >= 16)
    if (product.has_vectors) return store_vectors(product, tile, epilogue, sums, columns, warp, lane);
  if constexpr (kSums <= 32)  // tiles of more columns are not turned
    if (product.has_turned_vectors) return store_turned(product, tile, epilogue, sums, columns, turned, warp, lane);
  store_each(product, tile, epilogue, sums, columns, turned, warp, lane);
}

}  // namespace flywheel::detail
