// What the workers of a delta-stepping search share.
#pragma once

#include "apps/bfs/pieces.hpp"

namespace bfs {

/// Counts that turns use in rotation: one is read, one is filled, one is cleared.
struct DeltaCounts {
  std::uint64_t near[3];       // packed LevelCount of the frontier, by the turn
  std::uint32_t far[3];        // vertices put aside, by the generation
  std::uint32_t far_least[3];  // the smallest distance among them when they were put aside
};

/// The frontier is a list of pieces; vertices whose distance is not due yet lie aside in the far list. Both hold a vertex once:
/// `near_mark` and `far_mark` say in which turn or generation it was added last.
struct DeltaMemory {
  GraphView graph;
  std::uint32_t* distance;
  std::uint32_t* near_mark;
  std::uint32_t* far_mark;
  Piece* frontier[2];     // by the turn
  std::uint32_t* far[2];  // by the generation
  DeltaCounts* counts;
  std::uint32_t delta;  // distances of [k delta, (k + 1) delta) are worked off together

  FLYWHEEL_TASK PieceList next_frontier(std::uint32_t turn) const {
    return {frontier[(turn + 1) % 2], &counts->near[(turn + 1) % 3]};
  }
};

/// Nothing is reached but the root, which is the first frontier.
template <class Block>
FLYWHEEL_TASK void reset_delta(Block& block, const DeltaMemory& memory, std::uint32_t root) {
  for_all(block, memory.graph.vertices, [&](std::uint64_t v) {
    memory.distance[v] = v == root ? 0 : kNone;
    memory.near_mark[v] = memory.far_mark[v] = kNone;
  });
  const std::uint32_t pieces = put_row(block, memory.graph, root, memory.frontier[0]);
  if (block.worker() != 0 || !block.leader()) return;
  for (int i = 0; i < 3; ++i) {
    memory.counts->near[i] = i == 0 ? LevelCount::packed(pieces, 0) : 0;
    memory.counts->far[i] = 0;
    memory.counts->far_least[i] = kNone;
  }
}

}  // namespace bfs
