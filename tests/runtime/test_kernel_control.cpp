// The GPU's kernel on an emulated GPU: choices, loops and continuations.
#include "support/control_programs.hpp"
#include "support/emulated_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
Runtime control_runtime(const Options& options, std::uint64_t seed) {
  return start_emulated<Step, StepJoin, StepSprout, FibCall, FibSum>(options, seed);
}
}  // namespace

TEST_CASE("kernel, control: continuations nest") {
  FLYWHEEL_TEST_SEED(seed);
  Runtime runtime = control_runtime(emulated_options(), seed);
  check_fib(runtime, 7);
}

TEST_CASE("kernel, control: random programs leave what an interpreter says") {
  FLYWHEEL_TEST_SEED(seed);
  for (const bool keeps : {true, false}) {
    Options options = emulated_options(2);
    options.tuning.keep_successor = keeps;
    options.spawn_capacity = keeps ? 1024 : 8;
    Runtime runtime = control_runtime(options, seed);
    check_programs(runtime, seed, 36, 25);
  }
}
