// Passes over arrays of the GPU's kernel on an emulated GPU: in dynamic, compiled and phased runs, of compute and store parts,
// in plain and in checked runs.
#include "support/emulated_bench.hpp"
#include "support/share_tasks.hpp"
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

TEST_CASE("kernel, streamed: all workers share passes out, by rings where they are long") {
  FLYWHEEL_TEST_SEED(seed);
  Runtime runtime = start_emulated<WordShares, ByteShares>(emulated_options());
  INFO(runtime.device() << ", " << runtime.workers() << " workers");
  check_shares(runtime, seed, 12, runtime.workers() * 40'000);
}

TEST_CASE("kernel, streamed: passes of all workers that follow one another without a boundary, and runs that end early") {
  FLYWHEEL_TEST_SEED(seed);
  Runtime runtime = start_emulated<ShareRows>(emulated_options());
  INFO(runtime.device() << ", " << runtime.workers() << " workers");
  for (std::uint64_t time = 0; time < 4; ++time) check_share_rows(runtime, mix(seed, time), runtime.workers() * 40'000);
}
