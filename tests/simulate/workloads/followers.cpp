// Runs that follow runs.
#include "simulate/workloads/followers.hpp"

#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

void run_followers(Random& random) {
  const std::uint32_t count = 2 + random.below(9);
  Options options = options_of(random, 4);
  options.max_executables = 16;
  Bench bench(options, count);
  owe(options, 2 * count, count, 3'000 * count);
  follow_at_random<Node, Leaf>(random, bench, count, expect);
  bench.check_peak();
}

}  // namespace flywheel::simulate
