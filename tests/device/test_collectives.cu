// Collective calls on a GPU: in dynamic, compiled and phased runs, of compute and store parts, in plain and in checked runs.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "support/collective_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("collectives: all threads are told what plain loops say") {
  FLYWHEEL_TEST_SEED(seed);
  for (const bool checked : {false, true}) {
    Options options;
    options.target = Target::gpu;
    options.check_operands = checked;
    Runtime runtime = start<Collectives, StoredCollectives>(options);
    for (std::uint32_t round = 0; round < 10; ++round) CollectivesBench(runtime, mix(seed, round), 200, 3).check();
  }
}
