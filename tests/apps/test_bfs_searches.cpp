// The searches of apps/bfs on CPU workers, against a queue and Dijkstra's algorithm.
#include <algorithm>
#include <functional>
#include <queue>

#include "bfs_support.hpp"
#include "measure_support.hpp"

namespace bfs {
namespace {

using measure::error_of;
using measure::mentions;

Engine& workers(std::uint32_t count) {
  static const std::unique_ptr<Engine> one = start_engine(false, 1), four = start_engine(false, 4);
  return count == 1 ? *one : *four;
}

void check_on_all(const EdgeSource& edges, std::uint32_t root = 0) {
  for (const std::uint32_t count : {1u, 4u}) check_searches(workers(count), edges, root);
}

/// Of each vertex its targets with their weights, in order.
using Rows = std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>;

Rows rows_of(const HostGraph& graph) {
  Rows rows(graph.vertices());
  for (std::uint32_t v = 0; v < graph.vertices(); ++v)
    for (std::uint32_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
      rows[v].emplace_back(graph.targets[e], graph.weights[e]);
  for (auto& row : rows) std::ranges::sort(row);
  return rows;
}
Rows rows_of(const EdgeSource& edges) {
  Rows rows(edges.vertices);
  for (std::uint64_t e = 0; e < edges.count; ++e) {
    const Edge edge = edge_at(edges, e);
    const std::uint8_t weight = weight_of(edge, edges.seed);
    rows[edge.from].emplace_back(edge.to, weight);
    rows[edge.to].emplace_back(edge.from, weight);
  }
  for (auto& row : rows) std::ranges::sort(row);
  return rows;
}

std::vector<std::uint32_t> heap_shortest(const HostGraph& graph, std::uint32_t root) {
  using Entry = std::pair<std::uint32_t, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
  std::vector<std::uint32_t> distances(graph.vertices(), 0xffffffffu);
  heap.emplace(distances[root] = 0, root);
  while (!heap.empty()) {
    const auto [distance, vertex] = heap.top();
    heap.pop();
    if (distance != distances[vertex]) continue;
    for (std::uint32_t e = graph.offsets[vertex]; e < graph.offsets[vertex + 1]; ++e)
      if (distance + graph.weights[e] < distances[graph.targets[e]])
        heap.emplace(distances[graph.targets[e]] = distance + graph.weights[e], graph.targets[e]);
  }
  return distances;
}

}  // namespace

TEST_CASE("bfs: a graph holds its edges in both directions") {
  const EdgeList loops{4, {{1, 1}, {1, 2}, {2, 1}, {3, 0}}}, none{3, {}}, hub = star(600, 7);
  for (const EdgeSource& edges : {loops.source(), none.source(), hub.source(), rmat_edges(8, 5), grid_edges(13, 2)})
    for (const std::uint32_t count : {1u, 4u}) {
      workers(count).make_graph(edges);
      CHECK(rows_of(workers(count).graph()) == rows_of(edges));
    }
}

TEST_CASE("bfs: one vertex, no edges, a loop, two parts") {
  check_on_all(EdgeList{1, {}}.source());
  check_on_all(EdgeList{1, {{0, 0}}}.source());
  check_on_all(EdgeList{40, {}}.source(), 33);
  const EdgeList parts{70, {{0, 1}, {1, 2}, {2, 0}, {64, 65}, {65, 66}, {69, 69}}};
  for (const std::uint32_t root : {0u, 2u, 66u, 69u, 5u}) check_on_all(parts.source(), root);
}

TEST_CASE("bfs: a hub, as the root and behind one") {
  for (const std::uint32_t hub : {0u, 4999u}) {
    check_on_all(star(5000, hub).source(), hub);
    check_on_all(star(5000, hub).source(), 17);
  }
}

TEST_CASE("bfs: grids, whose levels are many") {
  for (const std::uint32_t side : {2u, 3u, 33u, 64u}) check_on_all(grid_edges(side, side));
  check_on_all(grid_edges(50, 1), 1225);
}

TEST_CASE("bfs: RMAT graphs, in both directions") {
  for (const std::uint32_t scale : {1u, 5u, 9u, 12u}) {
    workers(4).make_graph(rmat_edges(scale, scale));
    const HostGraph graph = workers(4).graph();
    for (const std::uint32_t root : some_roots(graph, 3, 1)) check_searches(workers(4), graph, root);
  }
}

TEST_CASE("bfs: random graphs") {
  CHECK(rc::check([] {
    const EdgeList list = some_graph(300, 900);
    const auto count = *rc::gen::element(1u, 4u);
    workers(count).set_delta(*rc::gen::element(1u, 30u, 128u, 1u << 20));
    check_searches(workers(count), list.source(), *rc::gen::inRange<std::uint32_t>(0, list.vertices));
  }));
}

TEST_CASE("bfs: regions with more messages than their inboxes hold") {
  for (const std::uint32_t edges : {4000u, 40'000u}) check_on_all(drawn_graph(2000, edges, 1).source());
}

TEST_CASE("bfs: Dial's buckets agree with a heap") {
  for (const std::uint32_t seed : {1u, 2u}) {
    workers(1).make_graph(rmat_edges(10, seed));
    const HostGraph graph = workers(1).graph();
    for (const std::uint32_t root : some_roots(graph, 2, seed))
      CHECK(plain_shortest(graph, root) == heap_shortest(graph, root));
  }
}

TEST_CASE("bfs: a wrong distance is named") {
  CHECK_NOTHROW(check_distances({0, 1, 0xffffffffu}, {0, 1, 0xffffffffu}));
  CHECK(mentions(error_of([] { check_distances({0, 1, 2}, {0, 1, 3}); }), {"vertex 2", "distance 3", "distance 2"}));
  CHECK(mentions(error_of([] { check_distances({0, 0xffffffffu}, {0, 4}); }), {"vertex 1", "distance 4", "not reached"}));
}

TEST_CASE("bfs: the course goes bottom-up for a large frontier, and back for a small one") {
  LevelCourse course{.edges_left = 32'000};
  std::vector<Step> steps;
  for (const LevelCount count :
       {LevelCount{1, 10}, {10, 900}, {200, 20'000}, {700, 9'000}, {30, 90}, {30, 90}, {5, 10}, {0, 0}}) {
    if (!course.choose(count, 1000)) break;
    steps.push_back(course.step);
    course.go_on();
  }
  CHECK(steps == std::vector{Step::top_down, Step::top_down, Step::bottom_up, Step::bottom_up, Step::gather, Step::top_down,
                             Step::top_down});
  CHECK(course.level == 6);
  CHECK(course.side == 0);

  LevelCourse end{.items = 5, .edges_left = 60};  // few edges are left, but the frontier shrinks
  CHECK(end.choose({2, 50}, 1000));
  CHECK(end.step == Step::top_down);
}

TEST_CASE("bfs: Graph500 counts each edge between reached vertices once") {
  const HostGraph graph{{0, 2, 3, 4, 4}, {1, 2, 0, 0}, {1, 1, 1, 1}};
  CHECK(traversed_edges(graph, {0, 1, 1, 0xffffffffu}) == 2);
  CHECK(deepest({0, 1, 7, 0xffffffffu}) == 7);
}

}  // namespace bfs
