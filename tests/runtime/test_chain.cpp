// A worker that sees the follower of a run while the run's last task runs goes over to it before the host is told; and what may
// come in between: a second follower, a cancellation, a failure, more urgent work.
#include "runtime/dynamic/chain.hpp"
#include "support/internals.hpp"

#include "catch.hpp"
#include "support/launch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;
enum LinkDeed : std::uint32_t { kNoDeed, kCancelFollower, kEnlistOther, kFailLink, kQueueUrgent, kEndLaunch };
constexpr std::uint32_t kOther = 6;  // the slot of a run that no worker knows of at first

bool enlist(const DeviceState& dev, std::uint32_t slot, std::uint32_t before) {
  FollowedRuns all{};
  all.generations[0] = 1;
  all.slots[0] = static_cast<std::uint16_t>(before);
  return Enlistment<P>(dev, slot)(all, false);
}

/// The only task of the run in `slot`.
struct Link {
  const DeviceState* dev;
  std::vector<std::uint32_t>* log;
  std::uint32_t slot, deed;
  template <class Block>
  void operator()(Block& block) const {
    log->push_back(slot);
    if (deed == kCancelFollower) P::device(dev->runs[slot + 1].line.cancelled).store(1, Order::relaxed);
    if (deed == kEnlistOther) enlist(*dev, kOther, slot);
    if (deed == kFailLink) block.fail(1);
    const Views<P> views{*dev};
    if (deed == kQueueUrgent)
      (void)views.ready(0).push(
          1, [&](std::uint32_t) { return only_root(*dev, dev->runs[kOther].line.constants); }, views.wait(0));
    if (deed == kEndLaunch) P::device(dev->control->broadcast.abort).store(1, Order::relaxed);
  }
};
using ChainTasks = TaskList<Link>;

/// Looks ahead as a GPU's executor does, and counts the tasks that it starts before the host has been told of the run before.
struct Executor : CpuExecutor<> {
  Executor(const DeviceState& device, unsigned char* scratch)
      : CpuExecutor(device, cpu_tasks<ChainTasks>, 0, scratch),
        dev(device) {}
  static constexpr bool kPrefetches = true;
  struct Slots : ChainSlots {
    std::uint32_t& early;
    bool is_long;
    bool has_ended() const { return !is_long && ChainSlots::has_ended(); }
    void start(const DeviceState& device, Item item) const {
      early += item.run != kOther && !P::system(device.completions[item.run - 1].word).load(Order::relaxed);
      ChainSlots::start(device, item);
    }
  };
  Slots chain_slots() { return {CpuExecutor::chain_slots(), early, bodies_are_long}; }
  const DeviceState& dev;
  std::uint32_t early = 0;
  bool bodies_are_long = false;
};

/// Runs of a task each in slots 0, 1, ..., each the follower of the one before. One worker runs them.
struct Links {
  TestDeviceState device;
  std::vector<std::uint32_t> log;
  std::uint32_t early = 0, added = 0;
  bool bodies_are_long = false;

  Links() : device(shape()) {}
  static DeviceStateShape shape() {
    DeviceStateShape shape;
    shape.run_slots = 8;
    return shape;
  }
  void add(std::uint32_t slot, LinkDeed deed, std::uint32_t priority = 1) {
    TestGraph<ChainTasks> graph;
    graph.add(Link{&device.dev, &log, slot, deed});
    RunConstants run = device.load(graph);
    run.slot = slot;
    run.generation = 1;
    run.priority = priority;
    device.open(run);
    ++added;
  }
  /// Ends the launch when so many runs have ended.
  std::jthread end_after(std::uint64_t runs) {
    return std::jthread([this, runs] {
      wait_for([&] { return P::device(device.dev.control->finished.value).load(Order::acquire) == runs; });
      P::device(device.dev.control->broadcast.abort).store(1, Order::relaxed);
    });
  }
  void run(std::uint32_t count) {
    for (std::uint32_t slot = 1; slot < count; ++slot) REQUIRE(enlist(device.dev, slot, slot - 1));
    const Views<P> views{device.dev};
    const auto first = [&](std::uint32_t) { return only_root(device.dev, device.dev.runs[0].line.constants); };
    REQUIRE(views.ready(1).push(1, first, views.wait(0)));
    unsigned char scratch[16];
    Executor executor(device.dev, scratch);
    executor.bodies_are_long = bodies_are_long;
    Worker<P, Executor>(device.dev, 0, executor, nullptr)();
    early = executor.early;
  }
  std::uint32_t code(std::uint32_t slot) const {
    const std::uint64_t word = device.dev.completions[slot].word;
    REQUIRE(word >> 32 == 1);
    return static_cast<std::uint32_t>(word);
  }
  std::uint64_t ended() const { return device.dev.control->finished.value; }
};

}  // namespace

TEST_CASE("a worker goes over to the only follower before it tells the host") {
  Links chain;
  for (std::uint32_t slot = 0; slot < 5; ++slot) chain.add(slot, slot == 4 ? kEndLaunch : kNoDeed);
  chain.run(5);
  CHECK(chain.log == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  CHECK(chain.early == 3);  // the first follower begins the chain
  for (std::uint32_t slot = 0; slot < 5; ++slot) CHECK(chain.code(slot) == 0);
  CHECK(chain.ended() == 5);
  CHECK(enlist(chain.device.dev, 5, 4) == false);  // the lists are closed
}

TEST_CASE("a follower that is cancelled while the run before it ends does not run") {
  Links chain;
  for (const LinkDeed deed : {kNoDeed, kCancelFollower, kNoDeed, kNoDeed}) chain.add(chain.added, deed);
  const auto ender = chain.end_after(4);
  chain.run(4);
  CHECK(chain.log == std::vector<std::uint32_t>{0, 1});
  CHECK(chain.code(1) == 0);
  CHECK(chain.code(2) == static_cast<std::uint32_t>(Status::cancelled));
  CHECK(chain.code(3) == static_cast<std::uint32_t>(Status::predecessor_failed));
}

TEST_CASE("a run that fails takes its follower with it, though that was fetched") {
  Links chain;
  for (const LinkDeed deed : {kNoDeed, kFailLink, kNoDeed}) chain.add(chain.added, deed);
  const auto ender = chain.end_after(3);
  chain.run(3);
  CHECK(chain.log == std::vector<std::uint32_t>{0, 1});
  CHECK(chain.code(1) == kUserStatus + 1);
  CHECK(chain.code(2) == static_cast<std::uint32_t>(Status::predecessor_failed));
}

TEST_CASE("a second follower that comes meanwhile runs, too") {
  Links chain;
  for (const LinkDeed deed : {kNoDeed, kEnlistOther, kNoDeed}) chain.add(chain.added, deed);
  chain.add(kOther, kNoDeed);
  const auto ender = chain.end_after(4);
  chain.run(3);
  CHECK(chain.log.size() == 4);
  CHECK(chain.early == 1);
  for (const std::uint32_t slot : {0u, 1u, 2u, kOther}) CHECK(chain.code(slot) == 0);
}

TEST_CASE("more urgent work that waits by then goes first") {
  Links chain;
  for (const LinkDeed deed : {kNoDeed, kQueueUrgent, kEndLaunch}) chain.add(chain.added, deed);
  chain.add(kOther, kNoDeed, 0);
  chain.run(3);
  CHECK(chain.log == std::vector<std::uint32_t>{0, 1, kOther, 2});
  CHECK(chain.early == 0);
}

TEST_CASE("a chain keeps no worker from a launch that ends, however long its bodies are") {
  for (const bool bodies_are_long : {false, true}) {
    Links chain;
    chain.bodies_are_long = bodies_are_long;
    for (const LinkDeed deed : {kNoDeed, kNoDeed, kEndLaunch, kNoDeed, kNoDeed}) chain.add(chain.added, deed);
    chain.run(5);
    CHECK(chain.log == std::vector<std::uint32_t>{0, 1, 2});
  }
}
