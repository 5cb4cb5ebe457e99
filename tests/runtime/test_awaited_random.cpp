// Random graphs on workers that await successors, against a serial run.
#include <algorithm>

#include "catch.hpp"
#include "support/awaiting.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Adds up what it waits for, and now and then fails.
struct AwaitedSum {
  std::uint64_t* values;
  const std::uint32_t* before;
  std::uint32_t count, self, fails;
  template <class Block>
  void operator()(Block& block) const {
    std::uint64_t sum = 1;
    for (std::uint32_t i = 0; i < count; ++i) sum += values[before[i]];
    values[self] = values[self] * 3 + sum;
    if (fails) block.fail(1);
  }
};

/// A random graph, and what a serial run of it gives. Of levels, as in a stencil, or of tasks with predecessors anywhere.
struct AwaitedSums {
  TestGraph<TaskList<AwaitedSum>> graph;
  std::vector<Ids> before;
  std::vector<std::uint64_t> values, oracle;
  std::vector<bool> fails;

  AwaitedSums(Random& random, std::uint32_t tasks) : before(tasks), values(tasks), oracle(tasks), fails(tasks) {
    const std::uint32_t density = pick(random, 0, 4), width = pick(random, 0, 1) ? pick(random, 1, 8) : 0;
    const bool some_fail = pick(random, 0, 3) == 0;
    for (std::uint32_t t = 0; t < tasks; ++t) {
      for (std::uint32_t d = 0; d < density; ++d) {
        if (t < std::max(width, 1u)) break;
        const std::uint32_t level = width ? t / width * width : 0;
        const std::uint32_t other = width ? level - width + (t + d) % width : pick(random, 0, t - 1);
        if (std::ranges::find(before[t], other) == before[t].end()) before[t].push_back(other);
      }
      fails[t] = some_fail && pick(random, 0, 19) == 0;
      const auto priority = pick(random, 0, 3) ? Priority::inherit : static_cast<Priority>(pick(random, 0, 2));
      graph.add(
          AwaitedSum{values.data(), before[t].data(), static_cast<std::uint32_t>(before[t].size()), t, fails[t] ? 1u : 0u},
          before[t], priority);
    }
  }
  bool fails_somewhere() const { return std::ranges::find(fails, true) != fails.end(); }
  void serially() {
    std::vector<bool> failed(oracle.size());
    for (std::size_t t = 0; t < oracle.size(); ++t) {
      std::uint64_t sum = 1;
      for (const std::uint32_t other : before[t]) sum += oracle[other], failed[t] = failed[t] || failed[other];
      if (!failed[t]) oracle[t] = oracle[t] * 3 + sum;
      failed[t] = failed[t] || fails[t];
    }
  }
};

void awaited_graphs_agree_with_the_oracle(const DeviceStateShape& shape, std::uint64_t seed, int graphs) {
  Random random(seed);
  for (int g = 0; g < graphs; ++g) {
    TestDeviceState device(shape);
    AwaitedSums sums(random, pick(random, 1, 120));
    RunConstants run = device.load(sums.graph);
    run.priority = pick(random, 0, 2);
    Launch<TaskList<AwaitedSum>, HookedPlatform, AwaitingExecutor> launch(device);
    for (std::uint32_t r = 0; r < 3; ++r) {
      const bool fails = sums.fails_somewhere();
      const std::uint32_t repeat = fails ? 1 : pick(random, 1, 5);
      REQUIRE((launch.run(run, r, repeat) != 0) == fails);
      for (std::uint32_t i = 0; i < repeat; ++i) sums.serially();
      REQUIRE(sums.values == sums.oracle);
      for (std::uint32_t task = 0; task < sums.graph.size(); ++task) REQUIRE(run.bank()[task] == sums.before[task].size());
    }
  }
}
}  // namespace

TEST_CASE("random graphs on workers that await give what a serial run gives, and leave all counters armed") {
  FLYWHEEL_TEST_SEED(seed);
  loads_yield = true;
  AwaitingExecutor::all_turns = AwaitingExecutor::all_ended = 0;
  for (const std::uint32_t workers : {1u, 2u, 3u, 8u}) {
    DeviceStateShape shape;
    shape.workers = workers;
    awaited_graphs_agree_with_the_oracle(shape, seed + workers, workers == 8 ? 30 : 80);
  }
  loads_yield = false;
  CHECK(AwaitingExecutor::all_ended > 1000);
}
