// Rung 6: roles. One thread loads B, by tensor maps: it names a box, and the hardware finds the addresses. One warp loads A,
// and turns it. Eight warps multiply, with 8 x 16 values a thread, in registers that the other warps have given away. One
// thread stores tiles, through shared memory. A block stays for several tiles of 128 x 256, so loads of a tile and stores of
// the one before go on beside products.
#pragma once

#include <flywheel/ring.cuh>

#include <algorithm>

#include "apps/ladder/hopper.cuh"
#include "apps/ladder/sums.cuh"
#include "apps/ladder/tensor_map.hpp"

namespace ladder {

/// A, and the maps of B and C. A kernel gets them as a constant parameter, where tensor copies find them.
struct Maps {
  CUtensorMap b, c;
  const float* a;
  int n;
};

struct Roles {
  static constexpr int kStages = 4;
  static constexpr int kComputeWarps = 8;
  static constexpr int kTurnWarp = 8, kBoxWarp = 9, kStoreWarp = 10, kShareWarp = 11;
  static constexpr int kThreads = 384;  // registers are given by warpgroups
  static constexpr int kColumns = 2 * kBoxColumns;
  static constexpr std::uint32_t kFilledBy = 1 + 32;  // who has boxes brought, and each lane of the warp that turns A
  struct Stage {
    float b[2][kDepth * kBoxColumns];
    float a[kDepth * kTurnedLine];
  };
  struct Shared {
    Stage stages[kStages];
    float c[kBlockRows * kColumns];
    flywheel::RingBarriers<kStages> steps;
    flywheel::RingBarriers<1> tiles;         // of C, on their way out
    flywheel::RingBarriers<kStages> halves;  // rung 9: of B, that this block has loaded itself
  };
  static constexpr std::size_t kAlign = 128;  // of boxes
  static constexpr std::size_t kSharedBytes = sizeof(Shared) + kAlign;
  using Steps = flywheel::RingPlace<kStages>;
  using Tiles = flywheel::RingPlace<1>;

  __device__ static Shared& shared(unsigned char* memory) {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
    return *reinterpret_cast<Shared*>(memory + (0u - address) % kAlign);
  }

  /// The store warp's thread: takes tiles as they come, `at(tile)` says where they go.
  template <class At>
  __device__ static void store(Shared& shared, const Maps& maps, int first, int tiles, int stride, const At& at) {
    Tiles out(shared.tiles);
    for (int tile = first; tile < tiles; tile += stride, out.next()) {
      out.consumer_wait();
      const int2 place = at(tile);
      store_box(maps.c, place.y * kColumns, place.x * kBlockRows, shared.c);
      wait_boxes_read();
      out.consumer_release();
    }
    wait_boxes_stored();
  }

  /// A compute warp. `wait(steps)` waits for a stage, `release(steps)` gives it back, by one lane.
  template <class Wait, class Release>
  __device__ static void compute(Shared& shared, int first, int tiles, int stride, int steps_of_tile, const Wait& wait,
                                 const Release& release) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const bool speaks = threadIdx.x % 32 == 0;
    const Place place(32 * (warp % 4), 0);
    const int half = warp / 4;
    Steps steps(shared.steps);
    Tiles out(shared.tiles);
    for (int tile = first; tile < tiles; tile += stride, out.next()) {
      float sums[8][16] = {};
      for (int step = 0; step < steps_of_tile; ++step, steps.next()) {
        wait(steps);
        const Stage& stage = shared.stages[steps.stage()];
        multiply_boxes(stage.a, stage.b[half], sums, place);
        __syncwarp();  // all lanes have read; the release below is for them all
        if (speaks) release(steps);
      }
      out.producer_acquire();
      store_sums(shared.c + half * kBoxColumns, kColumns, sums, place);
      fence_for_copies();  // by each lane, before the arrival: pairs with store_box() behind consumer_wait()
      __syncwarp();        // all lanes have stored and fenced
      if (speaks) out.producer_commit();
    }
  }
};

/// Tile t of C, as row and column of tiles: row after row.
struct ByRows {
  int columns;
  __device__ int2 operator()(int tile) const { return {tile / columns, tile % columns}; }
};

/// A warp: boxes of A. `acquire(steps)` waits until a stage is empty, `a_of(steps)` is where its box lies.
template <class Steps, class Order, class Acquire, class BoxOf>
__device__ __forceinline__ void turn_boxes(Steps at, const Maps& maps, int first, int tiles, int stride, int steps,
                                           const Order& order, const Acquire& acquire, const BoxOf& a_of) {
  for (int tile = first; tile < tiles; tile += stride) {
    TurnedCopies<32> left(maps.a + static_cast<std::size_t>(order(tile).x) * kBlockRows * maps.n, maps.n,
                          static_cast<int>(threadIdx.x) % 32);
    for (int step = 0; step < steps; ++step, at.next()) {
      acquire(at);
      left.copy(a_of(at));
      at.producer_commit_copies();
    }
  }
}

/// A thread: boxes of B.
template <class Order>
__device__ __forceinline__ void load_boxes(Roles::Shared& shared, const Maps& maps, int first, int tiles, int stride, int steps,
                                           const Order& order) {
  Roles::Steps at(shared.steps);
  for (int tile = first; tile < tiles; tile += stride) {
    const int column = order(tile).y * Roles::kColumns;
    for (int step = 0; step < steps; ++step, at.next()) {
      Roles::Stage& stage = shared.stages[at.stage()];
      at.producer_acquire();
      at.producer_expect(2 * kRightBytes);
      fence_for_copies();
      copy_box(stage.b[0], maps.b, column, step * kDepth, at.full());
      copy_box(stage.b[1], maps.b, column + kBoxColumns, step * kDepth, at.full());
    }
  }
}

template <class Order>
__global__ void __launch_bounds__(Roles::kThreads, 1)
    multiply_roles(const __grid_constant__ Maps maps, int tiles, int steps, Order order) {
  extern __shared__ unsigned char memory[];
  Roles::Shared& shared = Roles::shared(memory);
  if (threadIdx.x == 0) {
    flywheel::begin_ring(shared.steps, Roles::kFilledBy, Roles::kComputeWarps);
    flywheel::begin_ring(shared.tiles, Roles::kComputeWarps, 1);
  }
  __syncthreads();  // the barriers are there; release and acquire, block scope, pairs with itself
  const int warp = static_cast<int>(threadIdx.x) / 32, first = static_cast<int>(blockIdx.x),
            stride = static_cast<int>(gridDim.x);
  if (warp < Roles::kComputeWarps) {
    take_registers<232>();
    Roles::compute(
        shared, first, tiles, stride, steps, [](const Roles::Steps& at) { at.consumer_wait(); },
        [](const Roles::Steps& at) { at.consumer_release(); });
  } else {
    give_registers<40>();
    if (warp == Roles::kTurnWarp)
      turn_boxes(
          Roles::Steps(shared.steps), maps, first, tiles, stride, steps, order,
          [](const Roles::Steps& at) { at.producer_acquire(); },
          [&](const Roles::Steps& at) { return shared.stages[at.stage()].a; });
    if (threadIdx.x % 32 != 0) return;
    if (warp == Roles::kBoxWarp) load_boxes(shared, maps, first, tiles, stride, steps, order);
    if (warp == Roles::kStoreWarp) Roles::store(shared, maps, first, tiles, stride, order);
  }
}

inline Maps maps_of(const Problem& p) {
  return {map_of(p.b, p.n, kDepth, kBoxColumns), map_of(p.c, p.n, kBlockRows, Roles::kColumns), p.a, p.n};
}

template <class Order>
Launch prepare_with_roles(const Problem& p, const Order& order) {
  allow_shared(multiply_roles<Order>, Roles::kSharedBytes);
  const int tiles = p.n / kBlockRows * (p.n / Roles::kColumns);
  const auto blocks = static_cast<unsigned>(std::min(tiles, measure::sm_count()));
  return [=, maps = maps_of(p)](Stream stream) {
    launch(stream, {{blocks}, Roles::kThreads, Roles::kSharedBytes}, multiply_roles<Order>, maps, tiles, p.n / kDepth, order);
  };
}

inline Launch prepare_roles(const Problem& p) { return prepare_with_roles(p, ByRows{p.n / Roles::kColumns}); }

}  // namespace ladder
