#include <algorithm>

#include "apps/ladder/rung_01_naive.cuh"
#include "apps/ladder/rung_03_two_stages.cuh"
#include "apps/ladder/rung_05_ring.cuh"
#include "apps/ladder/rung_07_ping_pong.cuh"
#include "apps/ladder/rung_10_multicast.cuh"

namespace ladder {

std::span<const Rung> rungs() {
  static constexpr Rung kRungs[] = {
      {"naive", "a thread for each value", prepare_naive, false},
      {"tiled", "tiles in shared memory", prepare_tiled, false},
      {"two_stages", "cuda::pipeline, two stages", prepare_two_stages, false},
      {"registers", "8 x 8 values a thread", prepare_registers, false},
      {"ring", "a ring of stages that threads fill", prepare_ring, false},
      {"roles", "warps that load, compute and store", prepare_roles, true},
      {"ping_pong", "two groups, one stores while one multiplies", prepare_ping_pong, true},
      {"order", "the tiles of rung 6 in an order for L2", prepare_order, true},
      {"pair", "a cluster of two shares B through DSMEM", prepare_pair, true},
      {"multicast", "a cluster of two shares B by multicast", prepare_multicast, true},
  };
  return kRungs;
}

}  // namespace ladder
