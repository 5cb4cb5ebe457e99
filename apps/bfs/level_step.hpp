// One step of a search level by level, by all warps of all workers: the same code in the resident kernel (level_search.hpp), in
// the kernels of the peer (cuda_levels.cu) and on CPU workers.
#pragma once

#include "apps/bfs/level_course.hpp"

namespace bfs {

/// A step, as the search notes it before it begins. The last one has no items and says when the search ended.
struct StepRecord {
  std::int64_t begin_ns;
  std::uint32_t items;
  Step step;
};

/// Counts, which steps use in turns: of the frontier, of the next one, and one that is cleared. And a record of the first
/// steps.
struct LevelWords {
  static constexpr std::uint32_t kMostRecords = 64;
  std::uint64_t counts[3];
  StepRecord records[kMostRecords];
};

/// What the steps of a search work on. Bit v % 32 of word v / 32 of a bitmap is vertex v's: it has been reached.
struct LevelMemory {
  GraphView graph;
  std::uint32_t* distance;
  std::uint32_t* reached[2];  // a bottom-up step reads one and writes the other, of which it owns each word
  Piece* frontier[2];         // in turns
  LevelWords* shared;

  FLYWHEEL_TASK std::uint32_t words() const { return (graph.vertices + 31) / 32; }
  FLYWHEEL_TASK std::uint64_t& count_of(std::uint32_t turn) const { return shared->counts[turn % 3]; }
  FLYWHEEL_TASK PieceList next_frontier(std::uint32_t turn) const { return {frontier[(turn + 1) % 2], &count_of(turn + 1)}; }
  /// Of the frontier of a turn. Relaxed: a barrier or the end of a kernel has ordered it.
  FLYWHEEL_TASK LevelCount frontier_count(std::uint32_t turn) const {
    return LevelCount::of(Shared<std::uint64_t>(count_of(turn)).load(Order::relaxed));
  }
};

/// The first frontier is the root; nothing else is reached.
template <class Block>
FLYWHEEL_TASK void reset_levels(Block& block, const LevelMemory& memory, std::uint32_t root) {
  for_all(block, memory.graph.vertices, [&](std::uint64_t v) { memory.distance[v] = v == root ? 0 : kNone; });
  for_all(block, memory.words(),
          [&](std::uint64_t w) { memory.reached[0][w] = memory.reached[1][w] = w == root / 32 ? 1u << root % 32 : 0; });
  const std::uint32_t pieces = put_row(block, memory.graph, root, memory.frontier[0]);
  if (block.worker() != 0 || !block.leader()) return;
  memory.shared->counts[0] = LevelCount::packed(pieces, memory.graph.offsets[root + 1] - memory.graph.offsets[root]);
  memory.shared->counts[1] = memory.shared->counts[2] = 0;
}

/// Of the targets of the lane's edges, those that this lane is the first to reach; else kNone.
FLYWHEEL_TASK inline void reach(const LevelMemory& memory, std::uint32_t* reached, const EdgeBatch& edges,
                                std::uint32_t (&found)[kBatch]) {
  std::uint32_t words[kBatch];
  for (int j = 0; j < kBatch; ++j) found[j] = edges.edge[j] == kNone ? kNone : memory.graph.targets[edges.edge[j]];
  // Relaxed, all: bits are set and never cleared. A stale word costs an operation that finds the bit set; the operation that
  // finds it clear is the only one.
  for (int j = 0; j < kBatch; ++j)
    words[j] = found[j] == kNone ? ~0u : Shared<std::uint32_t>(reached[found[j] / 32]).load(Order::relaxed);
  for (int j = 0; j < kBatch; ++j) {
    const std::uint32_t bit = found[j] == kNone ? 1 : 1u << found[j] % 32;
    if (!(words[j] & bit)) words[j] = Shared<std::uint32_t>(reached[found[j] / 32]).fetch_or(bit, Order::relaxed);
    if (words[j] & bit) found[j] = kNone;
  }
}

template <class Block>
FLYWHEEL_TASK void step_top_down(Block& block, const LevelMemory& memory, const LevelCourse& course) {
  const PieceList next = memory.next_frontier(course.turn);
  std::uint32_t* const reached = memory.reached[course.side];
  for_each_edge(block, memory.frontier[course.turn % 2], course.items, [&](const EdgeBatch& edges) {
    std::uint32_t found[kBatch];
    reach(memory, reached, edges, found);
    for (int j = 0; j < kBatch; ++j)
      if (found[j] != kNone) memory.distance[found[j]] = course.level + 1;
    add_rows(block, memory.graph, next, found);
  });
}

/// The list of the vertices that the last bottom-up step has found: a word a lane, kBatch vertices of it at a time.
template <class Block>
FLYWHEEL_TASK void step_gather(Block& block, const LevelMemory& memory, const LevelCourse& course) {
  const std::uint32_t words = memory.words(), step = all_warps(block) * Block::kLanes;
  const PieceList next = memory.next_frontier(course.turn);
  for (std::uint32_t first = warp_of_all(block) * Block::kLanes; first < words; first += step) {
    const std::uint32_t word = first + static_cast<std::uint32_t>(block.lane());
    std::uint32_t fresh = word < words ? memory.reached[course.side][word] & ~memory.reached[course.side ^ 1][word] : 0;
    while (block.any_warp(fresh != 0)) {
      std::uint32_t found[kBatch];
      for (int j = 0; j < kBatch; ++j) {
        found[j] = fresh ? word * 32 + lowest_bit(fresh) : kNone;
        fresh &= fresh - 1;
      }
      add_rows(block, memory.graph, next, found);
    }
  }
}

}  // namespace bfs
