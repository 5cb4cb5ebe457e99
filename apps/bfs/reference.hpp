// What the searches must come to: plain searches on the host, and the comparison.
#pragma once

#include <cstdint>
#include <vector>

namespace bfs {

/// A graph in host memory, see GraphView.
struct HostGraph {
  std::vector<std::uint32_t> offsets = {0}, targets = {};
  std::vector<std::uint8_t> weights = {};

  std::uint32_t vertices() const { return static_cast<std::uint32_t>(offsets.size() - 1); }
  std::uint32_t degree(std::uint32_t vertex) const { return offsets[vertex + 1] - offsets[vertex]; }
};

/// Distances in edges, by a queue. kNone: not reached.
std::vector<std::uint32_t> plain_bfs(const HostGraph& graph, std::uint32_t root);
/// Distances by weights: Dijkstra's algorithm, with a bucket for each distance (Dial, 1969), since no weight is above 255.
std::vector<std::uint32_t> plain_shortest(const HostGraph& graph, std::uint32_t root);

/// Throws std::runtime_error that names the first vertex with another distance, both distances and the remedy.
void check_distances(const std::vector<std::uint32_t>& expected, const std::vector<std::uint32_t>& found);

/// Edges between vertices that are reached, each counted once: what Graph500 divides by the time.
std::uint64_t traversed_edges(const HostGraph& graph, const std::vector<std::uint32_t>& distances);
/// The greatest distance of those that are reached.
std::uint32_t deepest(const std::vector<std::uint32_t>& distances);

/// `count` vertices with edges, drawn from the seed; fewer if there are not so many.
std::vector<std::uint32_t> some_roots(const HostGraph& graph, std::uint32_t count, std::uint32_t seed);

}  // namespace bfs
