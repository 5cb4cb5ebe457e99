// What the tests of apps/bfs share: graphs as lists of edges, and a search by every method from some root.
#pragma once

#include <rapidcheck.h>

#include <vector>

#include "apps/bfs/engine.hpp"
#include "catch.hpp"

namespace bfs {

struct EdgeList {
  std::uint32_t vertices = 1;
  std::vector<Edge> edges = {};
  EdgeSource source(std::uint32_t seed = 1) const { return listed_edges(edges.data(), edges.size(), vertices, seed); }
};

/// Self-loops and the same edge twice may be among them.
inline EdgeList drawn_graph(std::uint32_t vertices, std::uint32_t edges, std::uint32_t seed) {
  EdgeList list{vertices};
  for (std::uint64_t e = 0; e < edges; ++e) {
    const std::uint64_t drawn = mixed((std::uint64_t{seed} << 32) + e);
    list.edges.push_back(
        {static_cast<std::uint32_t>(drawn % list.vertices), static_cast<std::uint32_t>((drawn >> 32) % list.vertices)});
  }
  return list;
}
inline EdgeList some_graph(std::uint32_t most_vertices, std::uint32_t most_edges) {
  const auto vertices = *rc::gen::inRange<std::uint32_t>(1, most_vertices + 1);
  return drawn_graph(vertices, *rc::gen::inRange<std::uint32_t>(0, most_edges + 1), *rc::gen::arbitrary<std::uint32_t>());
}
/// Vertex `hub` has an edge to each other vertex.
inline EdgeList star(std::uint32_t vertices, std::uint32_t hub) {
  EdgeList list{vertices};
  for (std::uint32_t v = 0; v < vertices; ++v)
    if (v != hub) list.edges.push_back({hub, v});
  return list;
}

/// Searches from the root by every method, twice, and compares all distances.
inline void check_searches(Engine& engine, const HostGraph& graph, std::uint32_t root) {
  const std::vector<std::uint32_t> edges = plain_bfs(graph, root), weights = plain_shortest(graph, root);
  for (int times = 0; times < 2; ++times)
    for (const Method method : {Method::levels, Method::top_down, Method::regions, Method::delta}) {
      engine.search(method, root);
      INFO("method " << static_cast<int>(method) << ", root " << root);
      CHECK_NOTHROW(check_distances(method == Method::delta ? weights : edges, engine.distances()));
    }
}
inline void check_searches(Engine& engine, const EdgeSource& edges, std::uint32_t root = 0) {
  engine.make_graph(edges);
  check_searches(engine, engine.graph(), root);
}

}  // namespace bfs
