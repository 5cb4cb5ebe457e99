// A thread's values of C in registers, from rung 5 on: 8 rows, and 8 or 16 columns. A stage has a box of A, 128 rows of 16
// values, and boxes of B, 16 rows of 128 values each.
//
// A lies as it does in memory, so that copies bring it without the threads' help. A thread takes four values of each of its
// rows with one load. Rows are 64 bytes long: the 16-byte parts of a row are permuted by the row's bits 1 and 2, so that the
// rows that eight lanes read at once lie in different banks. That is the 64-byte swizzle of tensor maps (CUDA driver API,
// CU_TENSOR_MAP_SWIZZLE_64B).
#pragma once

#include "apps/ladder/rung_04_registers.cuh"

namespace ladder {

inline constexpr int kBoxColumns = 128;  // of B
inline constexpr std::size_t kLeftBytes = kBlockRows * kDepth * sizeof(float),
                             kRightBytes = kDepth * kBoxColumns * sizeof(float);

/// The lanes of a warp stand 4 x 8: rows 4 apart and columns 32 apart are a thread's own.
struct Place {
  int row, column;  // in the boxes; the first of each

  __device__ __forceinline__ Place(int first_row, int first_column)
      : row(first_row + static_cast<int>(threadIdx.x) % 32 / 8),
        column(first_column + 4 * (static_cast<int>(threadIdx.x) % 8)) {}
};

/// Where part `part`, of 4, of a row of A's box begins, in values.
__device__ __forceinline__ int place_of_part(int row, int part) { return row * kDepth + (part ^ row / 2 % 4) * 4; }

__device__ __forceinline__ float value_of(const float4& four, int k) {
  return k == 0 ? four.x : k == 1 ? four.y : k == 2 ? four.z : four.w;
}

/// sums += the boxes' product.
template <int kColumns>
__device__ __forceinline__ void multiply_boxes(const float* a, const float* b, float (&sums)[8][kColumns], const Place& place) {
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    float4 left[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) left[i] = load_four(a + place_of_part(place.row + 4 * i, part));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float right[kColumns];
#pragma unroll
      for (int j = 0; j < kColumns; j += 4)
        *reinterpret_cast<float4*>(right + j) = load_four(b + (4 * part + k) * kBoxColumns + place.column + 8 * j);
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sums[i][j] += value_of(left[i], k) * right[j];
    }
  }
}

/// Stores them to a tile whose rows are `pitch` values apart.
template <int kColumns>
__device__ __forceinline__ void store_sums(float* tile, std::size_t pitch, const float (&sums)[8][kColumns],
                                           const Place& place) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; j += 4)
      store_four(tile + (place.row + 4 * i) * pitch + place.column + 8 * j, sums[i][j], sums[i][j + 1], sums[i][j + 2],
                 sums[i][j + 3]);
}

}  // namespace ladder
