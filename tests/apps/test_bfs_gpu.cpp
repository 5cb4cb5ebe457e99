// The searches of apps/bfs on a GPU, and the peer.
#include "apps/bfs/level_peer.hpp"
#include "bfs_support.hpp"

namespace bfs {
namespace {

Engine& gpu() {
  static const std::unique_ptr<Engine> engine = start_engine(true, 0);
  return *engine;
}

void check_peer(const HostGraph& graph, std::uint32_t root) {
  const auto quiet = gpu().pause();
  for (const bool chooses : {true, false}) {
    const auto peer = make_level_peer(gpu().level_memory(), chooses);
    peer->prepare(root);
    for (int times = 0; times < 2; ++times) {
      peer->run();
      CHECK_NOTHROW(check_distances(plain_bfs(graph, root), gpu().distances()));
    }
  }
}

void check_all(const EdgeSource& edges, std::uint32_t root) {
  gpu().make_graph(edges);
  const HostGraph graph = gpu().graph();
  check_searches(gpu(), graph, root);
  check_peer(graph, root);
}

}  // namespace

TEST_CASE("bfs on a GPU: small and strange graphs") {
  check_all(EdgeList{1, {{0, 0}}}.source(), 0);
  check_all(EdgeList{70, {{0, 1}, {1, 2}, {2, 0}, {64, 65}, {69, 69}}}.source(), 64);
  check_all(star(300'000, 299'999).source(), 17);
}

TEST_CASE("bfs on a GPU: grids and RMAT graphs") {
  check_all(grid_edges(300, 1), 0);
  check_all(grid_edges(301, 1), 45'000);
  for (const std::uint32_t scale : {5u, 12u, 17u}) {
    gpu().make_graph(rmat_edges(scale, 3));
    const HostGraph graph = gpu().graph();
    for (const std::uint32_t root : some_roots(graph, 3, 1)) {
      check_searches(gpu(), graph, root);
      check_peer(graph, root);
    }
  }
}

TEST_CASE("bfs on a GPU: random graphs") {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const EdgeList list = drawn_graph(1'500 * seed, 4'500 * seed, seed);
    check_all(list.source(), seed);
  }
}

}  // namespace bfs
