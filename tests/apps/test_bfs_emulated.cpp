// The searches of apps/bfs through the GPU's kernel, on an emulated GPU: lanes that share rows out, and warps that send and
// receive.
#include "support/emulated_engine.hpp"

#include <flywheel/task.cuh>

#include "apps/bfs/build_graph.hpp"
#include "apps/bfs/delta_search.hpp"
#include "apps/bfs/level_search.hpp"
#include "apps/bfs/region_search.hpp"
#include "apps/bfs/runtime_engine.hpp"
#include "bfs_support.hpp"

namespace bfs {
namespace {

/// Makes the list of task types one that no other file has.
struct NobodysTask {
  int nothing;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

std::unique_ptr<Engine> emulated_engine() {
  flywheel::Options options;
  options.workers = 3;
  options.log_level = "error";
  options.start_timeout = std::chrono::seconds(60);  // of processors that others keep busy
  return make_engine(
      flywheel::testing::start_emulated<BuildGraph, LevelSearch, RegionSearch, DeltaSearch, NobodysTask>(options));
}

}  // namespace

TEST_CASE("bfs, emulated: small and strange graphs") {
  const auto engine = emulated_engine();
  const EdgeList parts{70, {{0, 1}, {1, 2}, {2, 0}, {64, 65}, {65, 66}, {69, 69}}}, hub = star(1200, 1199);
  check_searches(*engine, EdgeList{1, {}}.source());
  check_searches(*engine, parts.source(), 65);
  check_searches(*engine, hub.source(), 3);
}

TEST_CASE("bfs, emulated: a grid and an RMAT graph") {
  const auto engine = emulated_engine();
  check_searches(*engine, grid_edges(17, 1));
  engine->make_graph(rmat_edges(9, 2));
  const HostGraph graph = engine->graph();
  for (const std::uint32_t root : some_roots(graph, 2, 1)) check_searches(*engine, graph, root);
}

TEST_CASE("bfs, emulated: regions with more messages than their inboxes hold") {
  const auto engine = emulated_engine();
  const EdgeList list = drawn_graph(900, 9000, 1);
  check_searches(*engine, list.source());
}

}  // namespace bfs
