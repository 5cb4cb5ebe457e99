// Choices, joins, loops and continuations on the GPU.
#include "support/control_programs.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("continuations nest on the GPU") {
  Runtime runtime = start<Step, StepJoin, StepSprout, FibCall, FibSum>(on_gpu());
  check_fib(runtime, 16);
}

TEST_CASE("random programs on the GPU leave what an interpreter says") {
  FLYWHEEL_TEST_SEED(seed);
  for (const std::uint32_t workers : {0, 3}) {
    Options options = on_gpu();
    options.workers = workers;
    options.spawn_capacity = workers ? 16 : 4096;
    options.tuning.keep_successor = !workers;
    Runtime runtime = start<Step, StepJoin, StepSprout, FibCall, FibSum>(options);
    check_programs(runtime, seed, workers ? 60 : 300, 120);
  }
}
