// Rung 9: two blocks of a cluster, on two SMs, take two tiles of C one below the other. Both need the same boxes of B: each
// loads half of them and hands it on to the other through distributed shared memory. Memory and L2 are asked for half as much
// of B.
#pragma once

#include "apps/ladder/rung_08_order.cuh"

namespace ladder {

/// Tile t of a pair of rows of tiles; this block's is that of its rank.
template <class Order>
struct OfPair {
  Order order;  // of pairs
  __device__ int2 operator()(int pair) const {
    const int2 place = order(pair);
    return {2 * place.x + static_cast<int>(rank_in_pair()), place.y};
  }
};

/// What rungs 9 and 10 have in common: a stage is full when this block's box of A and both halves of B are there, and empty
/// when the compute warps of both blocks have read it, for what one loads goes to both.
struct Pair {
  /// Waits until both blocks have read the stage. See RingPlace::producer_acquire(); here with cluster scope.
  __device__ static void acquire(const Roles::Steps& at) { wait_in_pair(at.empty(), at.parity() ^ 1); }

  /// Hands halves of B on as they come: waits for this block's own, and starts its copy to the other block. That one's stage is
  /// empty: its warps have arrived at this block's barrier, too, before acquire() returned.
  __device__ static void share(Roles::Shared& shared, int count) {
    const unsigned rank = rank_in_pair();
    Roles::Steps at(shared.steps);
    for (int step = 0; step < count; ++step, at.next()) {
      wait_in_pair(shared.halves.full[at.stage()], at.parity());
      fence_for_copies();
      float* const half = shared.stages[at.stage()].b[rank];
      copy_to_peer(of_peer(half), half, kRightBytes, of_peer(&at.full()));
    }
  }

  /// A thread: halves of B. Without multicast the own half completes a barrier of its own, so that it can be handed on.
  template <bool kMulticast, class At>
  __device__ static void load(Roles::Shared& shared, const Maps& maps, int first, int pairs, int stride, int steps,
                              const At& order) {
    const auto rank = static_cast<int>(rank_in_pair());
    Roles::Steps at(shared.steps), halves(shared.halves);
    for (int pair = first; pair < pairs; pair += stride) {
      const int column = order(pair).y * Roles::kColumns + rank * kBoxColumns;
      for (int step = 0; step < steps; ++step, at.next(), halves.next()) {
        float* const half = shared.stages[at.stage()].b[rank];
        acquire(at);
        at.producer_expect((kMulticast ? 2 : 1) * kRightBytes);
        fence_for_copies();
        if constexpr (kMulticast) {
          copy_box_to_both(half, maps.b, column, step * kDepth, at.full());
        } else {
          halves.producer_expect(kRightBytes);
          copy_box(half, maps.b, column, step * kDepth, halves.full());
        }
      }
    }
  }

  template <bool kMulticast>
  __device__ static void compute(Roles::Shared& shared, int first, int pairs, int stride, int steps) {
    Roles::compute(
        shared, first, pairs, stride, steps,
        [&](const Roles::Steps& at) {
          wait_in_pair(at.full(), at.parity());
          if constexpr (!kMulticast) wait_in_pair(shared.halves.full[at.stage()], at.parity());
        },
        [](const Roles::Steps& at) {
          at.consumer_release();
          arrive_at_peer(of_peer(&at.empty()));
        });
  }
};

template <bool kMulticast>
__global__ void __launch_bounds__(Roles::kThreads, 1)
    multiply_pair(const __grid_constant__ Maps maps, int pairs, int steps, OfPair<ByBands> order) {
  extern __shared__ unsigned char memory[];
  Roles::Shared& shared = Roles::shared(memory);
  if (threadIdx.x == 0) {
    flywheel::begin_ring(shared.steps, Roles::kFilledBy, 2 * Roles::kComputeWarps);
    flywheel::begin_ring(shared.tiles, Roles::kComputeWarps, 1);
    flywheel::begin_ring(shared.halves, 1, 1);
  }
  sync_pair();  // the barriers of both blocks are there
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first = static_cast<int>(blockIdx.x) / 2, stride = static_cast<int>(gridDim.x) / 2;
  if (warp < Roles::kComputeWarps) {
    take_registers<232>();
    Pair::compute<kMulticast>(shared, first, pairs, stride, steps);
  } else {
    give_registers<40>();
    if (warp == Roles::kTurnWarp)
      turn_boxes(Roles::Steps(shared.steps), maps, first, pairs, stride, steps, order, Pair::acquire,
                 [&](const Roles::Steps& at) { return shared.stages[at.stage()].a; });
    if (threadIdx.x % 32 == 0) {
      if (warp == Roles::kBoxWarp) Pair::load<kMulticast>(shared, maps, first, pairs, stride, steps, order);
      const int count = pairs > first ? (pairs - first + stride - 1) / stride * steps : 0;
      if (warp == Roles::kStoreWarp) Roles::store(shared, maps, first, pairs, stride, order);
      if (!kMulticast && warp == Roles::kShareWarp) Pair::share(shared, count);
    }
    __syncwarp();  // the lanes of a warp come to the meeting below together
  }
  sync_pair();  // nobody writes to a block that has gone
}

template <bool kMulticast>
Launch prepare_pairs(const Problem& p) {
  allow_shared(multiply_pair<kMulticast>, Roles::kSharedBytes);
  const int rows = p.n / kBlockRows / 2, columns = p.n / Roles::kColumns;
  const auto blocks = static_cast<unsigned>(2 * std::min(rows * columns, measure::sm_count() / 2));
  return [=, maps = maps_of(p)](Stream stream) {
    launch(stream, {{blocks}, Roles::kThreads, Roles::kSharedBytes, 2}, multiply_pair<kMulticast>, maps, rows * columns,
           p.n / kDepth, OfPair<ByBands>{{rows, columns}});
  };
}

inline Launch prepare_pair(const Problem& p) { return prepare_pairs<false>(p); }

}  // namespace ladder
