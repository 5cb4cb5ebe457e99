// Finishing tasks: a failed task takes its dependents along and no others; a cancelled run starts nothing more.
#include "runtime/dynamic/finish.hpp"
#include "support/internals.hpp"

#include <algorithm>
#include <atomic>

#include "catch.hpp"
#include "support/launch.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct MayFail {
  std::uint32_t* ran;
  std::uint32_t self;
  std::uint32_t fails;  // the code to fail with, or 0
  template <class Block>
  void operator()(Block& block) const {
    ++ran[self];
    if (fails) block.fail(fails);
  }
};

/// Waits in its body until it is let go.
struct HoldOrCancel {
  std::atomic<std::uint32_t>* entered;
  std::atomic<bool>* leave;
  template <class Block>
  void operator()(Block& block) const {
    ++*entered;
    wait_for([&] { return leave->load() || block.cancelled(); });
  }
};

using FinishTasks = TaskList<MayFail, HoldOrCancel>;

/// A random graph in which some tasks fail; `reached` says which a serial run would run.
struct Failing {
  TestGraph<FinishTasks> graph;
  std::vector<std::uint32_t> ran;
  std::vector<bool> reached;
  bool fails = false;

  Failing(Random& random, std::uint32_t tasks) : ran(tasks) {
    std::vector<bool> good(tasks);
    for (std::uint32_t t = 0; t < tasks; ++t) {
      std::vector<std::uint32_t> after;
      bool runs = true;
      for (std::uint32_t d = pick(random, 0, 3); t && d > 0; --d) {
        const std::uint32_t other = pick(random, 0, t - 1);
        if (std::find(after.begin(), after.end(), other) != after.end()) continue;
        after.push_back(other);
        runs = runs && good[other];
      }
      const std::uint32_t code = pick(random, 0, 9) == 0 ? t + 1 : 0;
      graph.add(MayFail{ran.data(), t, code}, after);
      reached.push_back(runs);
      good[t] = runs && !code;
      fails = fails || (runs && code);
    }
  }
};
}  // namespace

TEST_CASE("in random graphs with failures exactly the tasks without a failed ancestor run") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    TestDeviceState claim;
    Failing failing(random, pick(random, 1, 60));
    Launch<FinishTasks> launch(claim);
    const std::uint32_t code = launch.run(claim.load(failing.graph));
    REQUIRE((code != 0) == failing.fails);
    for (std::uint32_t t = 0; t < failing.ran.size(); ++t) REQUIRE(failing.ran[t] == failing.reached[t]);
    if (!code) continue;
    const std::uint32_t task = claim.dev.completions[0].fault_task - 1;
    CHECK(code == kUserStatus + task + 1);  // the task named is the one whose code it is
    launch.park();
    std::uint64_t skipped = 0;
    for (std::uint32_t w = 0; w < claim.dev.workers; ++w) skipped += claim.dev.stats[w].skipped;
    CHECK(skipped == static_cast<std::uint64_t>(std::count(failing.reached.begin(), failing.reached.end(), false)));
  }
}

TEST_CASE("a run that failed leaves its counters armed for the next") {
  TestDeviceState claim;
  TestGraph<FinishTasks> graph;
  std::uint32_t ran[4] = {};
  graph.add(MayFail{ran, 0, 3});
  graph.add(MayFail{ran, 1, 0});
  graph.add(MayFail{ran, 2, 0}, {0, 1});
  graph.add(MayFail{ran, 3, 0}, {1, 2});
  const RunConstants run = claim.load(graph);
  Launch<FinishTasks> launch(claim);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    CHECK(launch.run(run) == kUserStatus + 3);
    CHECK(ran[0] == round);
    CHECK(ran[1] == round);
    CHECK(ran[2] + ran[3] == 0);
  }
}

TEST_CASE("a cancelled run ends without starting what had not started; another goes on") {
  TestDeviceState claim;
  TestGraph<FinishTasks> held, free;
  std::atomic<std::uint32_t> entered{0};
  std::atomic<bool> leave{false};
  std::uint32_t ran[2] = {};
  held.add(HoldOrCancel{&entered, &leave});
  held.add(MayFail{ran, 0, 0}, {0});
  free.add(MayFail{ran, 1, 0});
  const RunConstants first = claim.load(held), second = claim.load(free);
  Launch<FinishTasks> launch(claim);
  launch.submit(first, 0);
  REQUIRE(wait_for([&] { return entered == 1; }));
  CHECK(launch.run(second, 1) == 0);
  launch.cancel(0);
  CHECK(launch.finish(0, 0) == static_cast<std::uint32_t>(Status::cancelled));
  CHECK(ran[0] == 0);
  CHECK(ran[1] == 1);
}

TEST_CASE("an endless repeated run ends when it is cancelled, and a late cancel does nothing") {
  TestDeviceState claim;
  TestGraph<FinishTasks> graph;
  std::uint32_t ran[3] = {};
  for (std::uint32_t i = 0; i < 3; ++i)
    graph.add(MayFail{ran, i, 0}, i == 2 ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{});
  const RunConstants run = claim.load(graph);
  Launch<FinishTasks> launch(claim);
  for (std::uint32_t round = 0; round < 10; ++round) {
    launch.submit(run, 0, ~0u);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    launch.cancel(0);
    CHECK(launch.finish(0, 2 * round) == static_cast<std::uint32_t>(Status::cancelled));
    CHECK(ran[2] + round + 1 >= ran[0]);  // each cancel cuts one pass short
    launch.submit(run, 0);
    CHECK(launch.finish(0, 2 * round + 1) == 0);
  }
}

/// A short chain that passes through all workers, so that they expect to pass on again; then a long task with
/// successors.
RunConstants load_slow(TestDeviceState& claim, std::uint32_t* ran, const HoldOrCancel& hold, std::uint32_t successors) {
  TestGraph<FinishTasks> slow;
  std::uint32_t last = slow.add(MayFail{ran, 0, 0});
  for (std::uint32_t hop = 0; hop < 8; ++hop) last = slow.add(MayFail{ran, 0, 0}, {last});
  last = slow.add(hold, {last});
  for (std::uint32_t s = 1; s <= successors; ++s) slow.add(MayFail{ran, s, 0}, {last});
  return claim.load(slow);
}

TEST_CASE("a long task does not keep an idle worker from other runs") {
  for (const std::uint32_t successors : {1u, 2u, 3u}) {
    DeviceStateShape shape;
    shape.workers = 2;
    shape.keep_successor = successors == 2;
    TestDeviceState claim(shape);
    std::atomic<std::uint32_t> entered{0};
    std::atomic<bool> leave{false};
    std::uint32_t ran[5] = {};
    const RunConstants slow = load_slow(claim, ran, HoldOrCancel{&entered, &leave}, successors);
    TestGraph<FinishTasks> graph;
    graph.add(MayFail{ran, 4, 0});
    const RunConstants quick = claim.load(graph);
    Launch<FinishTasks> launch(claim);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // both workers become idle
    launch.submit(slow, 0);
    REQUIRE(wait_for([&] { return entered == 1; }));
    INFO(successors << " successors");
    launch.submit(quick, 1);
    CHECK(wait_for([&] { return launch.generation(1) == 1; }, 5));
    leave = true;
    CHECK(launch.finish(0, 0) == 0);
  }
}

TEST_CASE("a successor is not kept while something more urgent waits") {
  DeviceState dev{};
  for (const bool keeps : {false, true})
    for (std::uint32_t level = 0; level < kPriorities; ++level)
      for (std::uint32_t waits_at = 0; waits_at < kPriorities; ++waits_at) {
        dev.keep_successor = keeps;
        PrefetchedTask task{};
        task.waits_at = waits_at;
        CHECK(may_keep(dev, task, level) == (keeps && waits_at >= level));
      }
}
