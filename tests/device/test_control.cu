// Choices, joins, loops and continuations on the GPU, and tasks that spawn many at once.
#include "support/control_programs.hpp"
#include "support/fan_out.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
Runtime start_control(const Options& options) {
  return start<Step, StepJoin, StepSprout, FibCall, FibSum, FanOutBlock, FanOutWarp, FanSum>(options);
}
}  // namespace

TEST_CASE("continuations nest on the GPU") {
  Runtime runtime = start_control(on_gpu());
  check_fib(runtime, 16);
}

TEST_CASE("random programs on the GPU leave what an interpreter says") {
  FLYWHEEL_TEST_SEED(seed);
  for (const std::uint32_t workers : {0, 3}) {
    Options options = on_gpu();
    options.workers = workers;
    options.spawn_capacity = workers ? 16 : 4096;
    options.tuning.keep_successor = !workers;
    Runtime runtime = start_control(options);
    check_programs(runtime, seed, workers ? 60 : 300, 120);
  }
}

TEST_CASE("the threads of a block spawn many tasks at once on the GPU, as those of a warp do") {
  for (const std::uint32_t pool : {16u, 1u << 16}) {
    Options options = on_gpu();
    options.spawn_capacity = pool;
    Runtime runtime = start_control(options);
    check_fan_out<FanOutBlock>(runtime, 9, 5, 3);
    check_fan_out<FanOutBlock>(runtime, 1000, 1, 20);
    check_fan_out<FanOutWarp>(runtime, 31, 3, 3);
    check_fan_out<FanOutWarp>(runtime, 1000, 1, 20);
  }
}
