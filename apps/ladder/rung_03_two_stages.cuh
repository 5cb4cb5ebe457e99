// Rung 3: the next tiles are on their way while these are multiplied: cuda::pipeline over two stages. Each thread has a
// pipeline of its own and copies 16 bytes of each tile; a barrier of the block shows what all have copied.
#pragma once

#include <cuda/pipeline>

#include "apps/ladder/rung_02_tiled.cuh"

namespace ladder {

__global__ void __launch_bounds__(kTileThreads) multiply_two_stages(Problem p) {
  constexpr int kStages = 2;
  __shared__ alignas(16) float a[kStages][kTile][kTile], b[kStages][kTile][kTile];
  const int row = static_cast<int>(threadIdx.x) / kTile, column = static_cast<int>(threadIdx.x) % kTile;
  const int copied_row = static_cast<int>(threadIdx.x) / 8, copied_column = 4 * (static_cast<int>(threadIdx.x) % 8);
  const float* const left = p.a + (static_cast<std::size_t>(blockIdx.y) * kTile + copied_row) * p.n + copied_column;
  const float* const right = p.b + static_cast<std::size_t>(copied_row) * p.n + blockIdx.x * kTile + copied_column;
  cuda::pipeline<cuda::thread_scope_thread> pipeline = cuda::make_pipeline();
  const auto copy = [&](int k) {
    pipeline.producer_acquire();
    if (k < p.n) {
      const cuda::aligned_size_t<16> bytes(16);
      const int stage = k / kTile % kStages;
      cuda::memcpy_async(&a[stage][copied_row][copied_column], left + k, bytes, pipeline);
      cuda::memcpy_async(&b[stage][copied_row][copied_column], right + static_cast<std::size_t>(k) * p.n, bytes, pipeline);
    }
    pipeline.producer_commit();
  };
  float sums[4] = {};
  copy(0);
  for (int k = 0; k < p.n; k += kTile) {
    copy(k + kTile);
    cuda::pipeline_consumer_wait_prior<1>(pipeline);
    __syncthreads();  // what all threads have copied is there; release and acquire, block scope, pairs with itself
    const int stage = k / kTile % kStages;
    multiply_tiles(a[stage], b[stage], sums, row, column);
    pipeline.consumer_release();
    __syncthreads();  // and has been read; the same
  }
  store_column(p, sums, row, column);
}

inline Launch prepare_two_stages(const Problem& p) {
  const unsigned tiles = static_cast<unsigned>(p.n) / kTile;
  return [=](Stream stream) { launch(stream, {{tiles, tiles}, kTileThreads}, multiply_two_stages, p); };
}

}  // namespace ladder
