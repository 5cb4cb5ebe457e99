// Passes over arrays on a GPU: in dynamic, compiled and phased runs, of compute and store parts, in plain and in checked runs.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "support/share_tasks.hpp"
#include "support/stream_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("streamed: tasks do what plain loops do") {
  FLYWHEEL_TEST_SEED(seed);
  for (const bool checked : {false, true}) {
    Options options;
    options.target = Target::gpu;
    options.check_operands = checked;
    Runtime runtime = start<Streams, StoredStreams>(options);
    for (std::uint32_t round = 0; round < 10; ++round) StreamBench(runtime, mix(seed, round), 300, 30'000).check();
    StreamBench(runtime, seed, 20, 3'000'000).check();
  }
}

namespace {

/// From global memory to shared memory and back: arrays that vectors do not reach.
struct Through {
  std::uint32_t* words;
  std::uint32_t n;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block& block) const {
    auto* const near = block.template scratch<std::uint32_t>(static_cast<int>(n));
    block.stream(n, reads(words), writes(near), [](std::uint32_t x) { return x + 1; });
    block.sync();
    block.stream(n, reads(near), writes(words), [](std::uint32_t x) { return 2 * x; });
    block.sync();
    return block.stream_reduce(
        n, reads(near), 0u, [](std::uint32_t a, std::uint32_t b) { return a + b; }, [](std::uint32_t x) { return x; });
  }
};

}  // namespace

TEST_CASE("streamed: arrays may be in scratch memory") {
  Options options;
  options.target = Target::gpu;
  Runtime runtime = start<Through>(options);
  for (const std::uint32_t n : {1u, 255u, 1000u, 4096u}) {
    std::vector<std::uint32_t> words(n), want(n);
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < n; ++i) words[i] = i * i, want[i] = 2 * (i * i + 1), sum += i * i + 1;
    const auto memory = runtime.upload(words);
    REQUIRE(runtime.submit(Through{memory.data(), n}).get() == sum);
    REQUIRE(memory.read() == want);
  }
}

TEST_CASE("streamed: all workers share passes out, by rings where they are long") {
  FLYWHEEL_TEST_SEED(seed);
  Options options;
  options.target = Target::gpu;
  Runtime runtime = start<WordShares, ByteShares>(options);
  check_shares(runtime, seed, 20, runtime.workers() * 300'000);
  check_shares(runtime, mix(seed, 1), 200, 100'000);
}

TEST_CASE("streamed: passes of all workers that follow one another without a boundary, and runs that end early") {
  FLYWHEEL_TEST_SEED(seed);
  Options options;
  options.target = Target::gpu;
  Runtime runtime = start<ShareRows>(options);
  for (std::uint64_t time = 0; time < 6; ++time) check_share_rows(runtime, mix(seed, time), runtime.workers() * 300'000);
}
