// Heartbeats: what the watchdog reads belongs together, and a worker signs in and out.
#include "runtime/records/heartbeat.hpp"
#include "support/internals.hpp"

#include "catch.hpp"
#include "support/launch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

/// Looks at its own worker's heartbeat from inside the body.
struct Look {
  Heartbeat* hearts;
  std::uint64_t* item;
  std::uint64_t* started;
  template <class Block>
  void operator()(Block& block) const {
    Heartbeat& heart = hearts[block.worker()];
    *item = P::system(heart.item).load(Order::relaxed);
    *started = P::system(heart.started_ns).load(Order::relaxed);
  }
};
using HeartbeatTasks = TaskList<Look>;
}  // namespace

TEST_CASE("a thread that sees the state sees the item and the time that belong to it") {
  Heartbeat heart{};
  std::uint64_t item = 0, elapsed = 0;
  run_together(2, [&](std::uint32_t i) {
    if (i == 0) return beat<P>(heart, WorkerState::slow, 99, 1234);
    wait_for([&] { return P::system(heart.state).load(Order::acquire) != 0; });
    item = heart.item;
    elapsed = heart.elapsed_ns;
  });
  CHECK(item == 99);
  CHECK(elapsed == 1234);
  CHECK(heart.beats == 2);
}

TEST_CASE("workers sign in when they start and out when they leave") {
  TestDeviceState device;
  const auto all = [&](WorkerState state) {
    for (std::uint32_t w = 0; w < device.dev.workers; ++w)
      if (P::system(device.dev.heartbeats[w].state).load(Order::acquire) != static_cast<std::uint32_t>(state)) return false;
    return true;
  };
  CHECK(all(WorkerState::absent));
  Launch<HeartbeatTasks> launch(device);
  CHECK(wait_for([&] { return all(WorkerState::present); }));
  launch.park();
  CHECK(all(WorkerState::absent));
}

TEST_CASE("the heartbeat names the task while its body runs, and nothing afterwards") {
  TestDeviceState device;
  TestGraph<HeartbeatTasks> graph;
  std::uint64_t item = 0, started = 0;
  graph.add(Look{device.dev.heartbeats, &item, &started});
  RunConstants run = device.load(graph);
  Launch<HeartbeatTasks> launch(device);
  REQUIRE(launch.run(run, 3) == 0);
  launch.park();
  CHECK(item == Item{run.first_record, 3, false}.pack());
  CHECK(started != 0);
  for (std::uint32_t w = 0; w < device.dev.workers; ++w) {
    const std::uint64_t last = device.dev.heartbeats[w].started_ns;
    CHECK((last == 0 || last == (started | kBodyEnded)));
  }
}
