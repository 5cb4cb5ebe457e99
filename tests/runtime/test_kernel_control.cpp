// The GPU's kernel on an emulated GPU: choices, loops and continuations, and tasks that spawn many at once.
#include "support/control_programs.hpp"
#include "support/emulated_bench.hpp"
#include "support/fan_out.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
Runtime control_runtime(const Options& options, std::uint64_t seed) {
  return start_emulated<Step, StepJoin, StepSprout, FibCall, FibSum, FanOutBlock, FanOutWarp, FanSum>(options, seed);
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

TEST_CASE("kernel: the threads of a block spawn many tasks at once, as those of a warp do") {
  FLYWHEEL_TEST_SEED(seed);
  for (const std::uint32_t pool : {4u, 1024u}) {
    INFO("a pool of " << pool);
    Options options = emulated_options(3);
    options.spawn_capacity = pool;
    Runtime runtime = control_runtime(options, seed);
    check_fan_out<FanOutBlock>(runtime, 5, 2, 3);
    check_fan_out<FanOutBlock>(runtime, 300, 1, 2);
    check_fan_out<FanOutWarp>(runtime, 9, 2, 3);
    check_fan_out<FanOutWarp>(runtime, 70, 1, 2);
    for (std::uint64_t i = 0; i < 4; ++i) {
      check_fan_out<FanOutBlock>(runtime, 1 + static_cast<std::uint32_t>(mix(seed, i) % 520), 1, 1);
      check_fan_out<FanOutWarp>(runtime, 1 + static_cast<std::uint32_t>(mix(seed, 9 + i) % 100), 1, 1);
    }
  }
}
