// Rung 7: two groups of four warps with a tile of 128 x 128 and a ring each. The second begins when the first is halfway
// through its first tile: from then on one stores its tile while the other multiplies. Nobody else stores.
#pragma once

#include "apps/ladder/rung_06_roles.cuh"

namespace ladder {

struct PingPong {
  static constexpr int kStages = 6;
  static constexpr int kGroupWarps = 4;
  static constexpr int kThreads = 384;  // two groups, and a warpgroup that loads, two warps for each
  struct Stage {
    float b[kDepth * kBoxColumns];
    float a[kDepth * kTurnedLine];
  };
  struct Shared {
    Stage stages[2][kStages];
    flywheel::RingBarriers<kStages> steps[2];
    flywheel::RingBarriers<1> halfway;  // the first group is through with half of its first tile
  };
  static_assert(sizeof(Stage) % Roles::kAlign == 0 && sizeof(Roles::Stage) % Roles::kAlign == 0, "boxes of B are aligned");
  static constexpr std::size_t kSharedBytes = sizeof(Shared) + Roles::kAlign;
  using Steps = flywheel::RingPlace<kStages>;

  __device__ static Shared& shared(unsigned char* memory) {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
    return *reinterpret_cast<Shared*>(memory + (0u - address) % Roles::kAlign);
  }

  /// A thread: boxes of B.
  template <class Order>
  __device__ static void load(Shared& shared, const Maps& maps, int group, int first, int tiles, int stride, int steps,
                              const Order& order) {
    Steps at(shared.steps[group]);
    for (int tile = first; tile < tiles; tile += stride) {
      const int column = order(tile).y * kBoxColumns;
      for (int step = 0; step < steps; ++step, at.next()) {
        Stage& stage = shared.stages[group][at.stage()];
        at.producer_acquire();
        at.producer_expect(kRightBytes);
        fence_for_copies();
        copy_box(stage.b, maps.b, column, step * kDepth, at.full());
      }
    }
  }

  template <class Order>
  __device__ static void compute(Shared& shared, float* c, int n, int group, int first, int tiles, int stride, int steps,
                                 const Order& order) {
    const bool speaks = threadIdx.x % 32 == 0;
    const Place place(32 * (static_cast<int>(threadIdx.x) / 32 % kGroupWarps), 0);
    Steps at(shared.steps[group]);
    const flywheel::RingPlace<1> halfway(shared.halfway);
    if (group == 1) halfway.consumer_wait();
    for (int tile = first; tile < tiles; tile += stride) {
      float sums[8][16] = {};
      for (int step = 0; step < steps; ++step, at.next()) {
        at.consumer_wait();
        const Stage& stage = shared.stages[group][at.stage()];
        multiply_boxes(stage.a, stage.b, sums, place);
        __syncwarp();  // all lanes have read; the release below is for them all
        if (!speaks) continue;
        at.consumer_release();
        if (group == 0 && tile == first && step == steps / 2) halfway.producer_commit();
      }
      const int2 at_tile = order(tile);
      store_sums(c + static_cast<std::size_t>(at_tile.x) * kBlockRows * n + at_tile.y * kBoxColumns, n, sums, place);
    }
  }
};

template <class Order>
__global__ void __launch_bounds__(PingPong::kThreads, 1)
    multiply_ping_pong(const __grid_constant__ Maps maps, float* c, int n, int tiles, Order order) {
  extern __shared__ unsigned char memory[];
  PingPong::Shared& shared = PingPong::shared(memory);
  if (threadIdx.x == 0) {
    flywheel::begin_ring(shared.steps[0], Roles::kFilledBy, PingPong::kGroupWarps);
    flywheel::begin_ring(shared.steps[1], Roles::kFilledBy, PingPong::kGroupWarps);
    flywheel::begin_ring(shared.halfway, PingPong::kGroupWarps, 1);
  }
  __syncthreads();  // the barriers are there; release and acquire, block scope, pairs with itself
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int stride = 2 * static_cast<int>(gridDim.x), steps = n / kDepth;
  if (warp < 2 * PingPong::kGroupWarps) {
    take_registers<232>();
    const int group = warp / PingPong::kGroupWarps;
    PingPong::compute(shared, c, n, group, 2 * static_cast<int>(blockIdx.x) + group, tiles, stride, steps, order);
  } else {
    give_registers<40>();
    const int group = warp % 2, first_tile = 2 * static_cast<int>(blockIdx.x) + group;
    if (warp / 2 == PingPong::kGroupWarps)
      turn_boxes(
          PingPong::Steps(shared.steps[group]), maps, first_tile, tiles, stride, steps, order,
          [](const PingPong::Steps& at) { at.producer_acquire(); },
          [&](const PingPong::Steps& at) { return shared.stages[group][at.stage()].a; });
    else if (threadIdx.x % 32 == 0) PingPong::load(shared, maps, group, first_tile, tiles, stride, steps, order);
  }
}

inline Launch prepare_ping_pong(const Problem& p) {
  using Kernel = ByRows;
  allow_shared(multiply_ping_pong<Kernel>, PingPong::kSharedBytes);
  const int tiles = p.n / kBlockRows * (p.n / kBoxColumns);
  const auto blocks = static_cast<unsigned>(std::min(tiles / 2, measure::sm_count()));
  return [=, maps = maps_of(p)](Stream stream) {
    launch(stream, {{blocks}, PingPong::kThreads, PingPong::kSharedBytes}, multiply_ping_pong<Kernel>, maps, p.c, p.n, tiles,
           ByRows{p.n / kBoxColumns});
  };
}

}  // namespace ladder
