// Passes over arrays of the GPU's kernel on an emulated GPU: in dynamic, compiled and phased runs, of compute and store parts,
// in plain and in checked runs.
#include "support/emulated_bench.hpp"
#include "support/stream_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("kernel, streamed: tasks do what plain loops do") {
  FLYWHEEL_TEST_SEED(seed);
  for (const bool checked : {false, true}) {
    Options options = emulated_options();
    options.check_operands = checked;
    Runtime runtime = start_emulated<Streams, StoredStreams>(options);
    INFO(runtime.device() << (checked ? ", checked" : ""));
    for (std::uint64_t round = 0; round < 3; ++round) StreamBench(runtime, mix(seed, 2 * round + checked), 60, 8000).check();
    StreamBench(runtime, mix(seed, 7), 12, 40'000).check();  // long enough for rings that copy ahead
  }
}
