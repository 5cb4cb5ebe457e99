// Compiled runs on a device state that a test has filled: what the counters and the gate do over many passes, and how waits
// end.
#include "runtime/compiled/compiled.hpp"
#include "support/internals.hpp"

#include "catch.hpp"
#include "support/launch.hpp"
#include "support/test_schedule.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Counts its passes in plain memory; fails or stops in one of them.
struct SlotStep {
  std::uint32_t* count;
  std::uint32_t fail_in = ~0u, stop_in = ~0u;
  template <class Block>
  void operator()(Block& block) const {
    ++*count;
    if (block.iteration() == fail_in) block.fail(5);
    if (block.iteration() == stop_in) block.stop();
  }
};
using CompiledTasks = TaskList<SlotStep>;

/// Worker 0: a, then c; worker 1: b, after a. c waits for b. Worker 2 has nothing to do.
struct Triangle {
  TestDeviceState device;
  TestSchedule<CompiledTasks> schedule{device};
  std::uint32_t a = 0, b = 0, c = 0;

  RunConstants load(std::uint32_t fail_in = ~0u, std::uint32_t stop_in = ~0u) {
    schedule.add(0, SlotStep{&a, fail_in, stop_in}, 0);
    schedule.add(1, SlotStep{&b}, 1, {{0, 1}});
    schedule.add(0, SlotStep{&c}, kNoCounter, {{1, 1}});
    return schedule.load();
  }
};

}  // namespace

TEST_CASE("compiled: counters go on counting from pass to pass and run to run") {
  Triangle triangle;
  const RunConstants run = triangle.load();
  Launch<CompiledTasks> launch(triangle.device);
  std::uint64_t passes = 0;
  for (std::uint32_t round = 0; round < 100; ++round) {
    const std::uint32_t repeat = 1 + round % 5;
    REQUIRE(launch.run(run, round % 4, repeat) == 0);
    passes += repeat;
    CHECK(triangle.schedule.schedule().passes == passes);
    CHECK(triangle.schedule.schedule().runs == round + 1);
    CHECK(triangle.schedule.schedule().left == 3 * (round + 1));
    CHECK(triangle.schedule.counters()[0] == passes);
    CHECK(triangle.schedule.counters()[kCounterStride] == passes);
  }
  CHECK((triangle.a == passes && triangle.b == passes && triangle.c == passes));
}

TEST_CASE("compiled: a failure marks the counters on its way, and the end of the run clears the marks") {
  Triangle triangle;
  const RunConstants run = triangle.load(2);
  Launch<CompiledTasks> launch(triangle.device);
  for (std::uint32_t round = 1; round <= 50; ++round) {
    REQUIRE(launch.run(run, 0, 9) == kUserStatus + 5);
    CHECK(triangle.device.dev.completions[0].fault_task == 1);
    CHECK(triangle.device.dev.completions[0].iterations == 2);
    CHECK(triangle.a == 3 * round);
    CHECK((triangle.b == 2 * round && triangle.c == 2 * round));
    CHECK(triangle.schedule.counters()[0] == 3 * round);
    CHECK(triangle.schedule.counters()[kCounterStride] == 3 * round);
  }
}

TEST_CASE("compiled: stop() ends the run after the pass") {
  Triangle triangle;
  const RunConstants run = triangle.load(~0u, 4);
  Launch<CompiledTasks> launch(triangle.device);
  for (std::uint32_t round = 1; round <= 50; ++round) {
    REQUIRE(launch.run(run, 0, ~0u) == 0);
    CHECK(triangle.device.dev.completions[0].iterations == 5);
    CHECK((triangle.a == 5 * round && triangle.c == 5 * round));
  }
}

TEST_CASE("compiled: a run goes on past the point where the gate's count of arrivals wraps") {
  for (const std::uint64_t start : std::vector<std::uint64_t>{~0ull - 5, 0xfffffff8u, 0x12345678fffffff8u}) {
    Triangle triangle;
    triangle.device.dev.control->barrier.value = start;
    const RunConstants run = triangle.load(~0u, 40);
    Launch<CompiledTasks> launch(triangle.device);
    for (std::uint32_t round = 1; round <= 3; ++round) {
      REQUIRE(launch.run(run, 0, ~0u) == 0);
      CHECK(triangle.c == 41 * round);
    }
  }
}

// A run may make more than 2^32 arrivals: 33 million passes with 132 sinks. What then spills over the field
// of arrivals must not be taken for a vote to stop.
TEST_CASE("compiled: arrivals that wrap in the middle of a run are no vote, and votes are still seen") {
  constexpr std::uint32_t kArrivers = 2;
  const std::uint64_t first = (std::uint64_t{1} << 32) / kArrivers;  // the meeting at which the field is full
  for (const std::uint64_t laps : {1u, 2u, 3u, 65'536u}) {
    std::uint64_t word = 0;
    const GridBarrier<CpuPlatform> gate{&word, kArrivers};
    Limit limit;
    for (std::uint64_t k = laps * first - 2; k < laps * first + 4; ++k) {
      word = (k - 1) * kArrivers;
      gate.arrive(k, false);
      gate.arrive(k, false);
      CHECK(gate.wait(0, k, limit.wait()) == BarrierResult::go_on);
      gate.arrive(k + 1, true);  // by one that is fast
      CHECK(gate.wait(0, k, limit.wait()) == BarrierResult::go_on);
      gate.arrive(k + 1, false);
      CHECK(gate.wait(0, k + 1, limit.wait()) == BarrierResult::stop);
    }
  }
}

TEST_CASE("compiled: a wait for a task that never ends is reported, and ends the run for all") {
  DeviceStateShape shape;
  shape.workers = 2;
  TestDeviceState device(shape);
  device.dev.phase_budget_ns = 20'000'000;
  TestSchedule<CompiledTasks> schedule(device);
  std::uint32_t count = 0;
  schedule.add(0, SlotStep{&count}, 1);
  schedule.add(1, SlotStep{&count}, kNoCounter, {{0, 1}});  // no task arrives there
  const RunConstants run = schedule.load();
  {
    Launch<CompiledTasks> launch(device);
    launch.submit(run, 0);
    REQUIRE(wait_for([&] { return CpuPlatform::device(device.dev.control->broadcast.abort).load(Order::relaxed) != 0; }));
  }
  CHECK(count == 1);
  CHECK(device.dev.completions[0].word == 0);
  CHECK(device.dev.reports[1].reason == static_cast<std::uint32_t>(WaitReason::predecessors));
  CHECK(device.dev.reports[1].address == reinterpret_cast<std::uint64_t>(schedule.counters().data()));
  CHECK(device.dev.reports[1].expected == 1);
}
