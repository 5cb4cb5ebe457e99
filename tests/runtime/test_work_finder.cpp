// Where workers look for tasks: the urgent first, and a phased run before all else.
#include "runtime/dynamic/work_finder.hpp"
#include "support/internals.hpp"

#include <atomic>

#include "catch.hpp"
#include "support/launch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

/// Holds its worker until it is let go.
struct Hold {
  std::atomic<std::uint32_t>* entered;
  std::atomic<bool>* leave;
  template <class Block>
  void operator()(Block&) const {
    ++*entered;
    wait_for([&] { return leave->load(); });
  }
};

struct Note {
  std::vector<std::uint32_t>* log;
  std::uint32_t value;
  template <class Block>
  void operator()(Block&) const {
    log->push_back(value);
  }
};

struct CountUp {
  std::uint32_t* cell;
  template <class Block>
  void operator()(Block&) const {
    ++*cell;
  }
};

struct Set {
  std::atomic<bool>* flag;
  template <class Block>
  void operator()(Block&) const {
    *flag = true;
  }
};

using FinderTasks = TaskList<Hold, Note, CountUp, Set>;

/// An executor that starts no task of the direct slot.
struct NoStarter {
  static constexpr bool kStartsDirectly = false;
};

template <class... Tasks>
RunConstants load(TestDeviceState& device, const Tasks&... tasks) {
  TestGraph<FinderTasks> graph;
  (graph.add(tasks), ...);
  return device.load(graph);
}
}  // namespace

TEST_CASE("urgent tasks overtake what waits in the queue") {
  DeviceStateShape shape;
  shape.workers = 1;
  TestDeviceState device(shape);
  std::atomic<std::uint32_t> entered{0};
  std::atomic<bool> leave{false};
  std::vector<std::uint32_t> log;
  const RunConstants hold = load(device, Hold{&entered, &leave});
  Launch<FinderTasks> launch(device);
  launch.submit(hold, 0);
  REQUIRE(wait_for([&] { return entered == 1; }));
  for (const std::uint32_t priority : {2u, 1u, 0u}) {
    RunConstants run = load(device, Note{&log, priority}, Note{&log, priority});
    run.priority = priority;
    launch.submit(run, 1 + priority);
  }
  // All have been let in once the inbox poller has read the messages.
  REQUIRE(wait_for([&] { return P::system(*device.dev.inbox_consumed).load(Order::acquire) == launch.messages(); }));
  leave = true;
  for (std::uint32_t slot = 0; slot < 4; ++slot) CHECK(launch.finish(slot, 0) == 0);
  CHECK(log == std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("a phased run gets all workers though the queues never run dry") {
  TestDeviceState device;
  std::uint32_t cells[6] = {};
  TestGraph<FinderTasks> busy, phased;
  for (std::uint32_t i = 0; i < 3; ++i) busy.add(CountUp{cells + i});
  for (std::uint32_t i = 3; i < 6; ++i) phased.add(CountUp{cells + i});
  phased.phases = {{0, 3, 0, 0}};
  const RunConstants endless = device.load(busy), brief = device.load(phased);
  Launch<FinderTasks> launch(device);
  launch.submit(endless, 0, ~0u);
  for (std::uint32_t round = 0; round < 20; ++round) CHECK(launch.run(brief, 1) == 0);
  launch.cancel(0);
  CHECK(launch.finish(0, 0) == static_cast<std::uint32_t>(Status::cancelled));
  for (std::uint32_t i = 3; i < 6; ++i) CHECK(cells[i] == 20);
}

// The chain's end waits for the phased run, so a worker that never leaves the chain would wait for itself.
TEST_CASE("a phased run gets the worker that follows a long chain") {
  TestDeviceState device;
  std::atomic<std::uint32_t> entered{0};
  std::atomic<bool> leave{false}, phase_ran{false};
  std::uint32_t cell = 0;
  TestGraph<FinderTasks> chain, phased;
  std::uint32_t last = chain.add(Hold{&entered, &leave});
  for (std::uint32_t i = 0; i < 300; ++i) last = chain.add(CountUp{&cell}, {last});
  chain.add(Hold{&entered, &phase_ran}, {last});
  phased.add(Set{&phase_ran});
  phased.phases = {{0, 1, 0, 0}};
  const RunConstants slow = device.load(chain), brief = device.load(phased);
  Launch<FinderTasks> launch(device);
  launch.submit(slow, 0);
  REQUIRE(wait_for([&] { return entered == 1; }));
  launch.submit(brief, 1);
  REQUIRE(wait_for([&] { return P::system(*device.dev.inbox_consumed).load(Order::acquire) == launch.messages(); }));
  leave = true;
  CHECK(wait_for([&] { return phase_ran.load(); }, 5));
  CHECK(launch.finish(0, 0) == 0);
  CHECK(launch.finish(1, 0) == 0);
}

// Its bit is cleared and the mailbox still empty: taking something else now would leave it enrolled with a
// full mailbox.
TEST_CASE("a worker that was claimed waits for what it was promised") {
  TestDeviceState device;
  const Views<P> views{device.dev};
  LocalWork work{};
  WorkFinder<P> look(device.dev, 1, nullptr, work);
  NoStarter executor;
  std::atomic<std::uint64_t> items[2] = {};
  std::jthread worker([&] {
    for (auto& item : items) {
      std::uint64_t found = look.rest_of_batch();
      if (found == kEmptyMailbox) look.wait_for_work(found, executor);
      item = found;
    }
  });
  std::uint64_t claimed = 0;
  REQUIRE(wait_for([&] { return (claimed = views.idle().claim(0, views.idle().seen(0), 1, 0).bits()) != 0; }));
  CHECK(claimed == 2);
  views.ready(0).push(
      1,
      [](std::uint32_t) {
        return Item{7, 0, false}.pack();
      },
      views.wait(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(items[0] == 0);
  views.idle().deliver(1, Item{9, 0, false}.pack());
  worker.join();
  CHECK(items[0] == 9);
  CHECK(items[1] == 7);
}

TEST_CASE("an abort ends all workers and the inbox poller") {
  TestDeviceState device;
  Launch<FinderTasks> launch(device);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  P::device(device.dev.control->broadcast.abort).store(1, Order::relaxed);
  launch.park();
  CHECK(device.dev.control->poller.epoch == 1);
}

TEST_CASE("the stop sign of an earlier launch stops no worker") {
  TestDeviceState device;
  std::uint32_t cell = 0;
  const RunConstants run = load(device, CountUp{&cell});
  std::uint64_t messages = 0;
  for (std::uint32_t round = 1; round <= 10; ++round) {
    CHECK(announcement_stop(device.dev.control->broadcast.announcement) == round - 1);
    Launch<FinderTasks> launch(device, messages);
    CHECK(launch.run(run) == 0);
    launch.park();
    messages = launch.messages();
  }
  CHECK(cell == 10);
}
