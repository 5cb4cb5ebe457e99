// The blocks of the GPU's kernel on an emulated GPU: what they tell of lanes and warps, in plain and in checked runs.
#include "support/emulated_bench.hpp"
#include "support/lane_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("kernel, block: lanes and warps are what every block says they are, and exchange values") {
  for (const bool checked : {false, true}) {
    Options options = emulated_options();
    options.check_operands = checked;
    Runtime runtime = start_emulated<Lanes, StoredLanes>(options);
    INFO(runtime.device() << (checked ? ", checked" : ""));
    check_lanes(runtime);
  }
}
