// Rung 1: a thread for each value of C, which reads a row of A and a column of B from memory.
#pragma once

#include "apps/ladder/launch.cuh"

namespace ladder {

__global__ void __launch_bounds__(256) multiply_naive(Problem p) {
  const int column = static_cast<int>(blockIdx.x * 32 + threadIdx.x % 32);
  const int row = static_cast<int>(blockIdx.y * 8 + threadIdx.x / 32);
  float sum = 0;
  for (int k = 0; k < p.n; ++k)
    sum += p.a[static_cast<std::size_t>(row) * p.n + k] * p.b[static_cast<std::size_t>(k) * p.n + column];
  p.c[static_cast<std::size_t>(row) * p.n + column] = sum;
}

inline Launch prepare_naive(const Problem& p) {
  const auto n = static_cast<unsigned>(p.n);
  return [=](Stream stream) { launch(stream, {{n / 32, n / 8}, 256}, multiply_naive, p); };
}

}  // namespace ladder
