#include "simulate/workloads.hpp"

#include "simulate/journal.hpp"
#include "simulate/scheduler.hpp"
#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

namespace {
void run_shape(Random& random, Shape shape) {
  switch (shape) {
    case Shape::graphs:
      return run_graphs(random, false);
    case Shape::compiled:
      return run_graphs(random, true);
    case Shape::phases:
      return run_phases(random);
    case Shape::streams:
      return run_streams(random);
    case Shape::cancels:
      return run_cancels(random);
    case Shape::threads:
      return run_threads(random, false);
    case Shape::parks:
      return run_threads(random, true);
    case Shape::priorities:
      return run_priorities(random);
    case Shape::backlog:
      return run_backlog(random);
    case Shape::limits:
      return run_limits(random);
    case Shape::views:
      return run_wires(random);
    case Shape::gangs:
      return run_gangs(random);
    case Shape::spawns:
      return run_spawns(random);
    case Shape::control:
      return run_control(random);
    case Shape::mixed:
      return run_mixed(random);
    case Shape::new_work:
      return run_new_work(random);
    case Shape::followers:
      return run_followers(random);
    case Shape::takers:
      return run_takers(random);
    case Shape::runtimes:
      return run_runtimes(random);
    default:
      return run_roots(random);
  }
}
}  // namespace

void run_workload(std::uint64_t seed, Shape shape) {
  Random random{seed * 0x9e3779b97f4a7c15ull};
  if (shape == Shape::any) shape = static_cast<Shape>(random.below(static_cast<std::uint32_t>(Shape::any)));
  random.draws = scheduler.draws();
  random.small = !scheduler.settings().large;
  begin_text(kShapeNames[static_cast<int>(shape)]);
  journal::clear();
  try {
    run_shape(random, shape);
    check_progress();
  } catch (const std::exception& error) {
    wrong(std::string("an exception: ") + error.what());
  }
}

}  // namespace flywheel::simulate
