// Collective calls of the GPU's kernel on an emulated GPU: in dynamic, compiled and phased runs, of compute and store parts,
// in plain and in checked runs.
#include "support/collective_tasks.hpp"
#include "support/emulated_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("kernel, collectives: all threads are told what plain loops say") {
  FLYWHEEL_TEST_SEED(seed);
  for (const bool checked : {false, true}) {
    Options options = emulated_options();
    options.check_operands = checked;
    Runtime runtime = start_emulated<Collectives, StoredCollectives>(options);
    INFO(runtime.device() << (checked ? ", checked" : ""));
    CollectivesBench(runtime, mix(seed, checked), 16, 2).check();
  }
}
