// Rung 4: a thread has 8 x 8 values of C in registers. Of 128 x 128 x 16 in shared memory it takes 16 values for 64 products,
// where the tiles before took 5 for 4: shared memory no longer sets the pace.
#pragma once

#include "apps/ladder/launch.cuh"

namespace ladder {

inline constexpr int kBlockRows = 128, kBlockColumns = 128, kDepth = 16;

__device__ __forceinline__ float4 load_four(const float* from) { return *reinterpret_cast<const float4*>(from); }
__device__ __forceinline__ void store_four(float* to, float x, float y, float z, float w) {
  *reinterpret_cast<float4*>(to) = {x, y, z, w};
}

/// A is turned on its way to shared memory, so that eight values of a column are two loads.
struct TurnedStage {
  alignas(16) float a[kDepth][kBlockRows + 4];  // 4: the stores of a turned line go to different banks
  alignas(16) float b[kDepth][kBlockColumns];
};

__device__ __forceinline__ void fill_turned(TurnedStage& stage, const float* left, const float* right, int n) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = thread / 4 + 64 * i, k = 4 * (thread % 4);
    const float4 four = load_four(left + static_cast<std::size_t>(row) * n + k);
    stage.a[k][row] = four.x;
    stage.a[k + 1][row] = four.y;
    stage.a[k + 2][row] = four.z;
    stage.a[k + 3][row] = four.w;
    const int depth = thread / 32 + 8 * i, column = 4 * (thread % 32);
    const float4 line = load_four(right + static_cast<std::size_t>(depth) * n + column);
    store_four(&stage.b[depth][column], line.x, line.y, line.z, line.w);
  }
}

/// Rows `row` + {0, 1, 2, 3, 64, ...} and columns likewise: lanes that read side by side read different banks.
__device__ __forceinline__ void multiply_turned(const TurnedStage& stage, float (&sums)[8][8], int row, int column) {
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    float left[8], right[8];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      *reinterpret_cast<float4*>(left + 4 * half) = load_four(&stage.a[k][row + 64 * half]);
      *reinterpret_cast<float4*>(right + 4 * half) = load_four(&stage.b[k][column + 64 * half]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) sums[i][j] += left[i] * right[j];
  }
}

__global__ void __launch_bounds__(256) multiply_registers(Problem p) {
  __shared__ TurnedStage stage;
  const float* left = p.a + static_cast<std::size_t>(blockIdx.y) * kBlockRows * p.n;
  const float* right = p.b + blockIdx.x * kBlockColumns;
  const int row = 4 * (static_cast<int>(threadIdx.x) / 16), column = 4 * (static_cast<int>(threadIdx.x) % 16);
  float sums[8][8] = {};
  for (int k = 0; k < p.n; k += kDepth, left += kDepth, right += static_cast<std::size_t>(kDepth) * p.n) {
    fill_turned(stage, left, right, p.n);
    __syncthreads();  // the stage is there; release and acquire, block scope, pairs with itself
    multiply_turned(stage, sums, row, column);
    __syncthreads();  // and has been read; the same
  }
  float* const to = p.c + (static_cast<std::size_t>(blockIdx.y) * kBlockRows + row) * p.n + blockIdx.x * kBlockColumns + column;
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 8; j += 4)
      store_four(to + static_cast<std::size_t>(i % 4 + 64 * (i / 4)) * p.n + 16 * j, sums[i][j], sums[i][j + 1], sums[i][j + 2],
                 sums[i][j + 3]);
}

inline Launch prepare_registers(const Problem& p) {
  const unsigned rows = static_cast<unsigned>(p.n) / kBlockRows, columns = static_cast<unsigned>(p.n) / kBlockColumns;
  return [=](Stream stream) { launch(stream, {{columns, rows}, 256}, multiply_registers, p); };
}

}  // namespace ladder
