// The runtime: the one file whose task types make a kernel.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "apps/bfs/build_graph.hpp"
#include "apps/bfs/delta_search.hpp"
#include "apps/bfs/level_search.hpp"
#include "apps/bfs/region_search.hpp"
#include "apps/bfs/runtime_engine.hpp"

namespace bfs {
namespace {

flywheel::Options options_for(bool on_gpu, std::uint32_t workers) {
  flywheel::Options options;
  options.target = on_gpu ? flywheel::Target::gpu : flywheel::Target::cpu;
  options.mode = flywheel::Mode::resident;
  options.workers = workers;
  options.park_after =
      std::chrono::seconds{2};  // longer than the host compares distances, so that no search waits for a launch
  return options;
}

}  // namespace

std::unique_ptr<Engine> start_engine(bool on_gpu, std::uint32_t workers) {
  return make_engine(flywheel::start<BuildGraph, LevelSearch, RegionSearch, DeltaSearch>(options_for(on_gpu, workers)));
}

}  // namespace bfs
