// DeltaSearch: shortest paths from a root by delta stepping (Meyer and Sanders, 2003), with a frontier and a far list as in
// Davidson et al., "Work-Efficient Parallel GPU Methods for Single-Source Shortest Paths" (IPDPS 2014). One task, a grid_sync()
// a turn.
#pragma once

#include "apps/bfs/delta_memory.hpp"

namespace bfs {

template <class Block>
class DeltaWorker {
 public:
  FLYWHEEL_TASK DeltaWorker(Block& block, const DeltaMemory& memory) : block_(block), memory_(memory), due_(memory.delta) {}

  /// All threads of all workers, after reset_delta() and a barrier. All read the same counts, so all take the same turns.
  FLYWHEEL_TASK void search() {
    for (;; ++turn_) {
      const std::uint32_t pieces = LevelCount::of(read(memory_.counts->near[turn_ % 3])).items;
      const std::uint32_t aside = read(memory_.counts->far[generation_ % 3]);
      if (pieces == 0 && aside == 0) return;
      if (is_first()) memory_.counts->near[(turn_ + 2) % 3] = 0;  // nobody reads it, or adds to it, in this turn
      if (pieces) pass_on(pieces);
      else take_due(aside);
      if (!block_.grid_sync()) return;
    }
  }

 private:
  /// Relaxed: the barrier before the turn has ordered it.
  template <class T>
  FLYWHEEL_TASK static T read(T& word) {
    return Shared<T>(word).load(Order::relaxed);
  }
  FLYWHEEL_TASK bool is_first() const { return block_.worker() == 0 && block_.leader(); }

  /// The edges of the frontier. Targets that are due form the next one, others go to the far list.
  FLYWHEEL_TASK void pass_on(std::uint32_t pieces) {
    for_each_edge(block_, memory_.frontier[turn_ % 2], pieces, [&](const EdgeBatch& edges) {
      std::uint32_t found[kBatch], reached[kBatch];
      relax(edges, found, reached);
      std::uint32_t later[kBatch];
      for (int j = 0; j < kBatch; ++j) {
        const bool is_far = found[j] != kNone && reached[j] >= due_;
        later[j] = is_far && mark(memory_.far_mark, found[j], generation_) ? found[j] : kNone;
        if (is_far || (found[j] != kNone && !mark(memory_.near_mark, found[j], turn_))) found[j] = kNone;
      }
      add_rows(block_, memory_.graph, memory_.next_frontier(turn_), found);
      put_aside(later, reached, generation_);
    });
  }

  /// Of the targets those whose distance is less by these edges, and that distance. Relaxed loads: a distance that is lowered
  /// meanwhile puts its vertex into the next frontier once more.
  FLYWHEEL_TASK void relax(const EdgeBatch& edges, std::uint32_t (&found)[kBatch], std::uint32_t (&reached)[kBatch]) const {
    for (int j = 0; j < kBatch; ++j) {
      const bool is_one = edges.edge[j] != kNone;
      found[j] = is_one ? memory_.graph.targets[edges.edge[j]] : kNone;
      reached[j] = is_one ? read(memory_.distance[edges.from[j]]) + memory_.graph.weights[edges.edge[j]] : kNone;
    }
    std::uint32_t held[kBatch];
    for (int j = 0; j < kBatch; ++j) held[j] = found[j] == kNone ? 0 : read(memory_.distance[found[j]]);
    for (int j = 0; j < kBatch; ++j)
      if (held[j] <= reached[j] || lower(memory_.distance[found[j]], reached[j]) <= reached[j]) found[j] = kNone;
  }

  /// True the first time in this turn or generation. Relaxed: only one exchange finds another value.
  FLYWHEEL_TASK static bool mark(std::uint32_t* marks, std::uint32_t vertex, std::uint32_t now) {
    return Shared<std::uint32_t>(marks[vertex]).exchange(now, Order::relaxed) != now;
  }

  /// All lanes of a warp. Relaxed, both: the barrier after the turn orders the list and the least distance.
  FLYWHEEL_TASK void put_aside(const std::uint32_t (&vertices)[kBatch], const std::uint32_t (&distances)[kBatch],
                               std::uint32_t generation) const {
    std::uint32_t count = 0, least = kNone;
    for (int j = 0; j < kBatch; ++j) {
      if (vertices[j] == kNone) continue;
      ++count;
      least = distances[j] < least ? distances[j] : least;
    }
    if (!block_.any_warp(count != 0)) return;
    const std::uint32_t before = sum_before(block_, count);
    std::uint32_t base = 0;
    if (block_.lane() == Block::kLanes - 1)
      base = Shared<std::uint32_t>(memory_.counts->far[generation % 3]).fetch_add(before + count, Order::relaxed);
    std::uint32_t* to = memory_.far[generation % 2] + of_last_lane(block_, base) + before;
    for (int j = 0; j < kBatch; ++j)
      if (vertices[j] != kNone) *to++ = vertices[j];
    if (count) lower(memory_.counts->far_least[generation % 3], least);
  }

  /// The frontier is empty: of the far list, what is due next forms one; the rest is put aside again.
  FLYWHEEL_TASK void take_due(std::uint32_t aside) {
    const std::uint32_t settled = due_, least = read(memory_.counts->far_least[generation_ % 3]);
    due_ = (least / memory_.delta + 1) * memory_.delta;
    const std::uint32_t* const far = memory_.far[generation_ % 2];
    const std::uint32_t step = all_warps(block_) * Block::kLanes * kBatch;
    for (std::uint32_t first = warp_of_all(block_) * Block::kLanes * kBatch; first < aside; first += step) {
      std::uint32_t found[kBatch], later[kBatch], distances[kBatch];
      for (int j = 0; j < kBatch; ++j) {
        const std::uint32_t at = first + static_cast<std::uint32_t>(j * Block::kLanes + block_.lane());
        const std::uint32_t vertex = at < aside ? far[at] : kNone;
        distances[j] = vertex == kNone ? 0 : read(memory_.distance[vertex]);
        found[j] = distances[j] >= settled && distances[j] < due_ ? vertex : kNone;
        later[j] = distances[j] >= due_ ? vertex : kNone;
        if (later[j] != kNone) mark(memory_.far_mark, vertex, generation_ + 1);
      }
      add_rows(block_, memory_.graph, memory_.next_frontier(turn_), found);
      put_aside(later, distances, generation_ + 1);
    }
    if (is_first()) clear_generation(generation_ + 2);
    ++generation_;
  }
  /// Nobody reads it, or adds to it, in this turn.
  FLYWHEEL_TASK void clear_generation(std::uint32_t generation) const {
    memory_.counts->far[generation % 3] = 0;
    memory_.counts->far_least[generation % 3] = kNone;
  }

  Block& block_;
  const DeltaMemory& memory_;
  std::uint32_t turn_ = 0;
  std::uint32_t generation_ = 0;  // of the far list
  std::uint32_t due_;             // distances below are due
};

struct DeltaSearch {
  const DeltaMemory* memory;
  flywheel::Param<std::uint32_t> root;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const DeltaMemory here = *memory;
    reset_delta(block, here, block.param(root));
    if (!block.grid_sync()) return;
    DeltaWorker<Block>(block, here).search();
  }
};

}  // namespace bfs
