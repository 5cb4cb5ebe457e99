// Rung 5: a ring of four stages, which all threads fill by copies that go on beside them, of 4 bytes for A, which they turn,
// and of 16 for B. A warp that is ahead does not wait for the block, only for the stage that it fills next.
#pragma once

#include <flywheel/ring.cuh>

#include "apps/ladder/sums.cuh"

namespace ladder {

struct Ring {
  static constexpr int kStages = 4;
  static constexpr int kThreads = 256;
  struct Stage {
    alignas(16) float a[kDepth * kTurnedLine];
    alignas(16) float b[kDepth * kBoxColumns];
  };
  struct Shared {
    Stage stages[kStages];
    flywheel::RingBarriers<kStages> barriers;
  };
  using At = flywheel::RingPlace<kStages>;

  /// What one thread copies: from where in the step's boxes, and to where in its stage.
  struct Part {
    TurnedCopies<kThreads> left;
    const float* right;
    int to_right;

    __device__ explicit Part(const Problem& p)
        : left(p.a + static_cast<std::size_t>(blockIdx.y) * kBlockRows * p.n, p.n, static_cast<int>(threadIdx.x)) {
      const int depth = static_cast<int>(threadIdx.x) / 32, column = 4 * (static_cast<int>(threadIdx.x) % 32);
      right = p.b + static_cast<std::size_t>(depth) * p.n + blockIdx.x * kBlockColumns + column;
      to_right = depth * kBoxColumns + column;
    }
    /// The copies of one step, the next one of both.
    __device__ void copy(const At& at, Stage& stage, int n) {
      at.producer_acquire();
      left.copy(stage.a);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        At::copy16(stage.b + to_right + 8 * kBoxColumns * i, right + static_cast<std::size_t>(8 * i) * n);
      at.producer_commit_copies();
      right += static_cast<std::size_t>(kDepth) * n;
    }
  };
};

__global__ void __launch_bounds__(Ring::kThreads, 2) multiply_ring(Problem p) {
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<Ring::Shared*>(memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x == 0) flywheel::begin_ring(shared.barriers, Ring::kThreads, Ring::kThreads / 32);
  __syncthreads();  // the barriers are there; release and acquire, block scope, pairs with itself
  const Place place(32 * (warp % 4), 64 * (warp / 4));
  const int steps = p.n / kDepth;
  Ring::Part part(p);
  Ring::At filled(shared.barriers), read(shared.barriers);
  const auto fill = [&] {
    part.copy(filled, shared.stages[filled.stage()], p.n);
    filled.next();
  };
  for (int step = 0; step < Ring::kStages - 1; ++step) fill();
  float sums[8][8] = {};
  for (int step = 0; step < steps; ++step, read.next()) {
    if (step + Ring::kStages - 1 < steps) fill();
    read.consumer_wait();
    multiply_boxes(shared.stages[read.stage()].a, shared.stages[read.stage()].b, sums, place);
    __syncwarp();  // all lanes have read; the release below is for them all
    if (threadIdx.x % 32 == 0) read.consumer_release();
  }
  store_sums(p.c + static_cast<std::size_t>(blockIdx.y) * kBlockRows * p.n + blockIdx.x * kBlockColumns, p.n, sums, place);
}

inline Launch prepare_ring(const Problem& p) {
  allow_shared(multiply_ring, sizeof(Ring::Shared));
  const unsigned rows = static_cast<unsigned>(p.n) / kBlockRows, columns = static_cast<unsigned>(p.n) / kBlockColumns;
  return [=](Stream stream) { launch(stream, {{columns, rows}, Ring::kThreads, sizeof(Ring::Shared)}, multiply_ring, p); };
}

}  // namespace ladder
