// Rung 2: a block for each 32 x 32 tile of C, which takes tiles of A and B through shared memory, so that each value is read
// from memory by n / 32 blocks, not by n threads.
#pragma once

#include "apps/ladder/launch.cuh"

namespace ladder {

inline constexpr int kTile = 32;          // rows and columns of a tile
inline constexpr int kTileThreads = 256;  // each has kTile * kTile / kTileThreads rows of one column

/// A thread's part of the tiles' product: rows from `row` on, kTileThreads / kTile apart, of column `column`.
__device__ __forceinline__ void multiply_tiles(const float (&a)[kTile][kTile], const float (&b)[kTile][kTile], float (&sums)[4],
                                               int row, int column) {
#pragma unroll
  for (int k = 0; k < kTile; ++k) {
    const float right = b[k][column];
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] += a[row + 8 * i][k] * right;
  }
}

__device__ __forceinline__ void store_column(const Problem& p, const float (&sums)[4], int row, int column) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    p.c[(static_cast<std::size_t>(blockIdx.y) * kTile + row + 8 * i) * p.n + blockIdx.x * kTile + column] = sums[i];
}

__global__ void __launch_bounds__(kTileThreads) multiply_tiled(Problem p) {
  __shared__ float a[kTile][kTile], b[kTile][kTile];
  const int row = static_cast<int>(threadIdx.x) / kTile, column = static_cast<int>(threadIdx.x) % kTile;
  const float* left = p.a + static_cast<std::size_t>(blockIdx.y) * kTile * p.n;
  const float* right = p.b + blockIdx.x * kTile;
  float sums[4] = {};
  for (int k = 0; k < p.n; k += kTile) {
#pragma unroll
    for (int i = 0; i < kTile; i += 8) {
      a[row + i][column] = left[static_cast<std::size_t>(row + i) * p.n + k + column];
      b[row + i][column] = right[static_cast<std::size_t>(k + row + i) * p.n + column];
    }
    __syncthreads();  // the tiles are there; release and acquire, block scope, pairs with itself
    multiply_tiles(a, b, sums, row, column);
    __syncthreads();  // and have been read; the same
  }
  store_column(p, sums, row, column);
}

inline Launch prepare_tiled(const Problem& p) {
  const unsigned tiles = static_cast<unsigned>(p.n) / kTile;
  return [=](Stream stream) { launch(stream, {{tiles, tiles}, kTileThreads}, multiply_tiled, p); };
}

}  // namespace ladder
