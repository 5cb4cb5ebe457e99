// Programs with choices, joins, loops and continuations in tiny pools.
#include "simulate/workloads/control.hpp"

#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

void run_control(Random& random) {
  auto programs = draw_programs(random, 10);
  Options options = options_of(random, 3);
  make_room(random, programs, options);
  Bench bench(options, 1);
  const auto owes = [&](std::uint64_t tasks, std::uint64_t runs) { owe(options, tasks, runs, 200); };
  const Executable executable = run_programs(random, bench.runtime, std::move(programs), owes, expect, wrong);
  bench.check_peak();
  check_end(bench.runtime, executable);
}

}  // namespace flywheel::simulate
