// Warp tasks on a GPU: side by side in compiled runs, and one at a time elsewhere.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "catch.hpp"
#include "support/seed.hpp"
#include "support/warp_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
Runtime start_on_gpu(bool side_by_side) {
  Options options;
  options.target = Target::gpu;
  options.tuning.bare_runs = side_by_side;
  return start<WarpDerive, Derive, OnWarp<Count>>(options);
}
}  // namespace

TEST_CASE("warp tasks: random graphs against the serial oracle") {
  FLYWHEEL_TEST_SEED(seed);
  for (const bool side_by_side : {true, false}) {
    Runtime runtime = start_on_gpu(side_by_side);
    check_derived_graphs(runtime, mix(seed, side_by_side), 60, 8000);
  }
}

TEST_CASE("warp tasks: wide graphs of many passes, and dynamic and other runs in between") {
  FLYWHEEL_TEST_SEED(seed);
  Runtime runtime = start_on_gpu(true);
  Buffer<std::uint32_t> counts = runtime.allocate<std::uint32_t>(1);
  Graph many;
  for (int i = 0; i < 3000; ++i) many.add(OnWarp<Count>{{counts.data()}});
  const Executable counted = runtime.load(many), planned = runtime.load(many, compiled);
  DerivedGraph<WarpDerive> warps(runtime, mix(seed, 1), 20'000, 900, 3);
  DerivedGraph<Derive> blocks(runtime, mix(seed, 2), 3'000, 300, 3);
  const Executable of_warps = runtime.load(warps.graph(), compiled), of_blocks = runtime.load(blocks.graph(), compiled);
  for (std::uint32_t round = 0; round < 20; ++round) {
    warps.submit(of_warps, mix(seed, round), 50).wait();
    blocks.submit(of_blocks, mix(seed, round), 3).wait();
    runtime.submit(counted, repeat(2)).wait();
    runtime.submit(planned, repeat(2)).wait();
    REQUIRE(warps.differences(mix(seed, round), 50) == 0);
    REQUIRE(blocks.differences(mix(seed, round), 3) == 0);
    REQUIRE(counts.read()[0] == 12'000 * (round + 1));
  }
}
