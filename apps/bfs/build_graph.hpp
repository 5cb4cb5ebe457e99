// BuildGraph: the grid task that makes a graph out of its edges. All workers count degrees, sum them up, and put the targets.
// Then each row gets its targets of the highest degrees to its begin, where a bottom-up step most likely finds one that is
// reached.
#pragma once

#include "apps/bfs/graph.hpp"
#include "apps/bfs/words.hpp"

namespace bfs {

struct BuildGraph {
  EdgeSource source;
  GraphView graph;
  std::uint32_t* next;    // of each vertex: its degree, then the place of its next target
  std::uint32_t* shares;  // of each worker: the degrees of its vertices together

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for_all(block, graph.vertices, [&](std::uint64_t v) { next[v] = 0; });
    if (!block.grid_sync()) return;
    count_degrees(block);
    if (!block.grid_sync()) return;
    sum_own_degrees(block);
    if (!block.grid_sync()) return;
    place_rows(block);
    if (!block.grid_sync()) return;
    put_targets(block);
    if (!block.grid_sync()) return;
    lead_rows(block);
  }

 private:
  static constexpr std::uint32_t kLeaders = 2;

  /// The vertices of a worker: from first(worker) to first(worker + 1).
  template <class Block>
  FLYWHEEL_TASK std::uint32_t first_vertex(const Block& block, std::uint32_t worker) const {
    return static_cast<std::uint32_t>(std::uint64_t{graph.vertices} * worker / block.workers());
  }

  template <class Block>
  FLYWHEEL_TASK void count_degrees(Block& block) const {
    for_all(block, source.count, [&](std::uint64_t e) {
      const Edge edge = edge_at(source, e);
      // Relaxed: the grid barrier orders the sums before their use.
      Shared<std::uint32_t>(next[edge.from]).add(1, Order::relaxed);
      Shared<std::uint32_t>(next[edge.to]).add(1, Order::relaxed);
    });
  }

  template <class Block>
  FLYWHEEL_TASK void sum_own_degrees(Block& block) const {
    const std::uint32_t first = first_vertex(block, block.worker());
    const std::uint32_t count = first_vertex(block, block.worker() + 1) - first;
    std::uint32_t sum = 0;
    block.for_each(static_cast<int>(count), [&](int i) { sum += next[first + static_cast<std::uint32_t>(i)]; });
    sum = block.reduce(sum, Plus{});
    if (block.leader()) shares[block.worker()] = sum;
  }

  /// A row begins where those of all vertices before it end: those of other workers, and own ones, tile by tile.
  template <class Block>
  FLYWHEEL_TASK void place_rows(Block& block) const {
    const std::uint32_t worker = block.worker();
    std::uint32_t at = 0;
    block.for_each(static_cast<int>(worker), [&](int w) { at += shares[w]; });
    at = block.reduce(at, Plus{});
    const std::uint32_t end = first_vertex(block, worker + 1), size = static_cast<std::uint32_t>(block.size());
    for (std::uint32_t tile = first_vertex(block, worker); tile < end; tile += size) {
      const std::uint32_t v = tile + static_cast<std::uint32_t>(block.rank());
      const std::uint32_t degree = v < end ? next[v] : 0;
      const std::uint32_t begin = block.exclusive_scan(degree, Plus{}, at);
      if (v < end) graph.offsets[v] = next[v] = begin;
      at = block.broadcast(begin + degree, block.size() - 1);
    }
    if (block.leader() && worker + 1 == block.workers()) graph.offsets[graph.vertices] = at;
  }

  template <class Block>
  FLYWHEEL_TASK void put_targets(Block& block) const {
    for_all(block, source.count, [&](std::uint64_t e) {
      const Edge edge = edge_at(source, e);
      const std::uint8_t weight = weight_of(edge, source.seed);
      put_target(edge.from, edge.to, weight);
      put_target(edge.to, edge.from, weight);
    });
  }
  FLYWHEEL_TASK void put_target(std::uint32_t from, std::uint32_t to, std::uint8_t weight) const {
    // Relaxed: each place is given out once, whatever the order.
    const std::uint32_t place = Shared<std::uint32_t>(next[from]).fetch_add(1, Order::relaxed);
    graph.targets[place] = to;
    graph.weights[place] = weight;
  }

  /// A warp for each row: kLeaders times the highest degree of those from `begin` on.
  template <class Block>
  FLYWHEEL_TASK void lead_rows(Block& block) const {
    for (std::uint64_t v = warp_of_all(block); v < graph.vertices; v += all_warps(block)) {
      const std::uint32_t begin = graph.offsets[v], end = graph.offsets[v + 1];
      for (std::uint32_t k = 0; k < kLeaders && begin + k + 1 < end; ++k) {
        const auto leader = static_cast<std::uint32_t>(find_leader(block, begin + k, end));
        block.sync_warp();  // all lanes have read the row before this lane changes it
        if (block.lane() == 0) exchange(begin + k, leader);
        block.sync_warp();  // and see the change after it
      }
    }
  }
  /// The place of a target of the highest degree: in the lower half of the greatest of the words {degree, place}.
  template <class Block>
  FLYWHEEL_TASK std::uint64_t find_leader(Block& block, std::uint32_t begin, std::uint32_t end) const {
    std::uint64_t best = 0;
    for (std::uint32_t at = begin + static_cast<std::uint32_t>(block.lane()); at < end; at += Block::kLanes) {
      const std::uint32_t target = graph.targets[at];
      const std::uint64_t here = std::uint64_t{graph.offsets[target + 1] - graph.offsets[target]} << 32 | at;
      best = here > best ? here : best;
    }
    for (int distance = 1; distance < Block::kLanes; distance *= 2) {
      const std::uint64_t other = block.shuffle(best, block.lane() + distance);
      best = other > best ? other : best;
    }
    return best;
  }
  FLYWHEEL_TASK void exchange(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t target = graph.targets[a];
    const std::uint8_t weight = graph.weights[a];
    graph.targets[a] = graph.targets[b], graph.weights[a] = graph.weights[b];
    graph.targets[b] = target, graph.weights[b] = weight;
  }

  struct Plus {
    FLYWHEEL_TASK std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a + b; }
  };
};

}  // namespace bfs
