// The points of apps/taskbench through the GPU's kernel, on an emulated GPU: inputs shared out over the lanes of a warp, and
// early tasks that poll stamped words.
#include "support/emulated_engine.hpp"

#include "apps/taskbench/early_task.hpp"
#include "apps/taskbench/point_task.hpp"
#include "apps/taskbench/runtime_system.hpp"
#include "catch.hpp"
#include "taskbench_support.hpp"

namespace taskbench {
namespace {

/// Makes the list of task types one that no other file has.
struct NobodysTask {
  int nothing;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

flywheel::Runtime emulated_runtime() {
  flywheel::Options options;
  options.workers = 3;
  options.log_level = "error";
  options.start_timeout = std::chrono::seconds(60);  // of processors that others keep busy
  return flywheel::testing::start_emulated<PointTask, EarlyPointTask, WarpPointTask, NobodysTask>(options);
}

}  // namespace

TEST_CASE("taskbench, emulated: each execution of each pattern leaves what a serial run leaves") {
  flywheel::Runtime rt = emulated_runtime();
  for (const Pattern pattern : all_patterns()) {
    const Problem problem = make_problem({.pattern = pattern, .width = 11, .steps = 6, .period = 2, .seed = 5}, 2, 8u << 10);
    for (const std::string& name : runtime_names()) {
      INFO(name_of(pattern) << " " << name);
      const auto system = make_runtime_system(rt, name, problem);
      for (std::uint16_t run = 1; run <= 2; ++run) {
        const RunSettings settings{.iterations = 3, .run = run, .kernel = Kernel::compute, .imbalance = Imbalance::uniform};
        system->run(settings);
        CHECK_NOTHROW(check(*system, problem, settings));
      }
    }
  }
}

TEST_CASE("taskbench, emulated: more inputs than lanes") {
  flywheel::Runtime rt = emulated_runtime();
  const Problem problem = make_problem({.pattern = Pattern::all_to_all, .width = 41, .steps = 3}, 1, 8u << 10);
  for (const std::string& name : runtime_names()) {
    INFO(name);
    const auto system = make_runtime_system(rt, name, problem);
    system->run({.iterations = 2, .kernel = Kernel::memory});
    CHECK_NOTHROW(check(*system, problem, {}));
  }
}

TEST_CASE("taskbench, emulated: a wrong cell is found by every warp of those that read it") {
  flywheel::Runtime rt = emulated_runtime();
  Problem problem = make_problem({.pattern = Pattern::nearest, .width = 9, .steps = 5}, 1, 8u << 10);
  problem.plant = true;
  for (const std::string& name : runtime_names()) {
    INFO(name);
    const auto system = make_runtime_system(rt, name, problem);
    system->run({});
    CHECK(system->faults().count == 3 * (name == "warps" ? 1 : 8));  // point 0 of step 2 is read by points 0, 1 and 2
    CHECK_THROWS_AS(check(*system, problem, {}), std::runtime_error);
  }
}

}  // namespace taskbench
