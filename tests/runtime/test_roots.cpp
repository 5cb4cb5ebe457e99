// The first tasks of an iteration: a few are published one by one, of many workers take shares; each runs once.
#include "runtime/ready/roots.hpp"
#include "support/internals.hpp"

#include <algorithm>
#include <atomic>

#include "catch.hpp"
#include "support/launch.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

struct AddOne {
  std::uint32_t* cell;
  template <class Block>
  void operator()(Block&) const {
    ++*cell;
  }
};
/// Holds its worker until it is let go.
struct HoldWorker {
  std::atomic<std::uint32_t>* entered;
  std::atomic<bool>* leave;
  template <class Block>
  void operator()(Block&) const {
    ++*entered;
    wait_for([&] { return leave->load(); });
  }
};
using RootTasks = TaskList<AddOne, HoldWorker>;

std::vector<Item> drain_items(const DeviceState& dev, std::uint32_t priority) {
  std::vector<Item> items;
  const Views<P> views{dev};
  for (std::uint64_t item = 0; views.ready(priority).size_hint() && views.ready(priority).pop(1, &item, views.wait(0));)
    items.push_back(Item::unpack(item));
  return items;
}

/// `roots` independent tasks, every other one with a priority of its own if asked for; a last task waits for
/// all if there is to be one sink.
struct WideGraph {
  TestGraph<RootTasks> graph;
  std::vector<std::uint32_t> cells;

  WideGraph(std::uint32_t roots, bool mixed, bool one_sink) : cells(roots + 1) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < roots; ++i)
      all.push_back(graph.add(AddOne{&cells[i]}, {}, mixed && i % 2 ? static_cast<Priority>(i % 3) : Priority::inherit));
    if (one_sink) graph.add(AddOne{&cells[roots]}, all);
    else cells.pop_back();
  }
};
}  // namespace

TEST_CASE("few roots are published themselves, each at its priority") {
  TestDeviceState device;
  WideGraph wide(4, true, false);
  const RunConstants run = device.load(wide.graph);
  device.open(run);
  publish_roots<P>(device.dev, 0, run);
  CHECK(drain_items(device.dev, 0).size() == 1);  // task 3
  CHECK(drain_items(device.dev, 1).size() == 3);  // tasks 0 and 2, which inherit, and 1
  CHECK(drain_items(device.dev, 2).empty());
}

TEST_CASE("many roots take no room in a queue, and shares of them are disjoint") {
  TestDeviceState device;
  WideGraph wide(50, false, false);
  const RunConstants run = device.load(wide.graph);
  RunState& state = device.open(run);
  publish_roots<P>(device.dev, 0, run);
  CHECK(drain_items(device.dev, 1).empty());
  CHECK(device.dev.control->broadcast.queued[1] == kRootedRun);
  CHECK(device.dev.control->root_bits[1][0] == 1);
  std::uint32_t next = 0;
  for (const std::uint32_t wanted : {1u, 7u, 32u, 32u, 32u}) {
    const RootShare share = take_roots<P>(state, wanted);
    CHECK(share.count == std::min(wanted, 50 - next));
    if (share.count) CHECK(share.first == next);
    if (share.count) CHECK(share.left == 50 - next);
    next += share.count;
  }
  CHECK(next == 50);
}

TEST_CASE("idle workers are given a ticket for many roots") {
  TestDeviceState device;
  WideGraph wide(50, false, false);
  const RunConstants run = device.load(wide.graph);
  device.open(run);
  const IdleSet<P> idle = Views<P>{device.dev}.idle();
  idle.enroll(1);
  publish_roots<P>(device.dev, 0, run);
  CHECK(Item::unpack(device.dev.mailboxes[1].value).record == Item::kRootTicket);
  CHECK(device.dev.mailboxes[0].value == kEmptyMailbox);
}

TEST_CASE("of a root or two for each worker, idle workers get one, and the rest is counted") {
  const std::uint32_t idle_workers = GENERATE(0u, 2u, 3u);
  TestDeviceState device;
  WideGraph wide(2 * device.dev.workers, false, false);
  const RunConstants run = device.load(wide.graph);
  RunState& state = device.open(run);
  const IdleSet<P> idle = Views<P>{device.dev}.idle();
  for (std::uint32_t worker = 0; worker < idle_workers; ++worker) idle.enroll(worker);
  publish_roots<P>(device.dev, 0, run);
  std::vector<std::uint32_t> records;
  for (std::uint32_t worker = 0; worker < idle_workers; ++worker)
    records.push_back(Item::unpack(device.dev.mailboxes[worker].value).record - run.first_record);
  std::ranges::sort(records);
  for (std::uint32_t i = 0; i < idle_workers; ++i) CHECK(records[i] == i);
  CHECK(drain_items(device.dev, 1).empty());
  const RootShare rest = take_roots<P>(state, 64);
  CHECK(rest.first == idle_workers);
  CHECK(rest.count == run.root_count - idle_workers);
}

TEST_CASE("roots that somebody has already are not published") {
  // Each in its queue; counted, for workers none of whom is idle; of which workers take shares. And those of mixed priorities.
  for (const std::uint32_t count : {2u, 4u, 6u, 50u})
    for (const bool mixed : {false, true})
      for (const bool dense : {true, false}) {
        INFO(count << " roots, mixed " << mixed << ", dense " << dense);
        TestDeviceState device;
        WideGraph wide(count, mixed, false);
        RunConstants run = device.load(wide.graph);
        if (!dense) run.flags &= ~static_cast<std::uint32_t>(kRootsDense);
        RunState& state = device.open(run);
        publish_roots<P>(device.dev, 0, run, 1);
        std::vector<std::uint32_t> records;
        for (std::uint32_t level = 0; level < kPriorities; ++level)
          if (device.dev.control->broadcast.queued[level] < kRootedRun)
            for (const Item item : drain_items(device.dev, level)) records.push_back(item.record - run.first_record);
        for (RootShare share = take_roots<P>(state, 3); share.count; share = take_roots<P>(state, 3))
          for (std::uint32_t i = 0; i < share.count; ++i) records.push_back(share.first + i);
        std::ranges::sort(records);
        REQUIRE(records.size() == count - 1);
        for (std::uint32_t i = 0; i + 1 < count; ++i) CHECK(records[i] == i + 1);
      }
}

TEST_CASE("idle workers get the roots behind those that somebody has") {
  TestDeviceState device;
  WideGraph wide(2 * device.dev.workers, false, false);
  const RunConstants run = device.load(wide.graph);
  RunState& state = device.open(run);
  Views<P>{device.dev}.idle().enroll(1);
  publish_roots<P>(device.dev, 0, run, 1);
  CHECK(Item::unpack(device.dev.mailboxes[1].value).record == run.first_record + 1);
  const RootShare rest = take_roots<P>(state, 64);
  CHECK(rest.first == 2);
  CHECK(rest.count == run.root_count - 2);
}

TEST_CASE("the consumer of the last root closes its run to others") {
  TestDeviceState device;
  WideGraph wide(50, false, false);
  const RunConstants run = device.load(wide.graph);
  device.open(run);
  publish_roots<P>(device.dev, 0, run);
  LocalWork work{};
  REQUIRE(find_roots<P>(device.dev, work, 1));
  for (std::uint32_t i = 0; i < 50; ++i) {
    INFO(i);
    CHECK(Item::unpack(take_local<P>(device.dev, work)).record == run.first_record + i);
  }
  CHECK(take_local<P>(device.dev, work) == kEmptyMailbox);
  CHECK(device.dev.control->broadcast.queued[1] == 0);
  CHECK(device.dev.control->root_bits[1][0] == 0);
  CHECK_FALSE(find_roots<P>(device.dev, work, 1));
}

TEST_CASE("pass after pass of many roots fits the queue while other workers are busy") {
  DeviceStateShape shape;
  shape.workers = 4;
  shape.queue_capacity = 16;
  TestDeviceState device(shape);
  std::atomic<std::uint32_t> entered{0};
  std::atomic<bool> leave{false};
  TestGraph<RootTasks> hold;
  for (int i = 0; i < 3; ++i) hold.add(HoldWorker{&entered, &leave});
  WideGraph wide(9, false, false);
  const RunConstants held = device.load(hold), empty = device.load(wide.graph);
  Launch<RootTasks> launch(device);
  launch.submit(held, 0);
  REQUIRE(wait_for([&] { return entered == 3; }));
  launch.submit(empty, 1, 500);
  CHECK(launch.finish(1, 0) == 0);
  CHECK(device.dev.queue_words[1].peak.value <= 9);
  leave = true;
  CHECK(launch.finish(0, 0) == 0);
  CHECK(wide.cells == std::vector<std::uint32_t>(9, 500));
}

namespace {
/// A run of 50 roots at level 1, whose first root a worker has taken with a share of the others behind it.
struct SharedRun {
  TestDeviceState device;
  WideGraph wide{50, false, false};
  RunConstants run = device.load(wide.graph);
  LocalWork work{};

  SharedRun() {
    device.open(run).line.constants.priority = 1;
    publish_roots<P>(device.dev, 0, run);
    REQUIRE(find_roots<P>(device.dev, work, 1));
    take_local<P>(device.dev, work);
  }
};
}  // namespace

TEST_CASE("what is in hand goes back to the queue of its level, each task once") {
  SharedRun shared;
  auto& [device, wide, run, work] = shared;
  const std::uint32_t in_hand = work.roots_end - work.roots_next;
  REQUIRE(in_hand > 0);
  put_back_all<P>(device.dev, work, 0);
  CHECK(take_local<P>(device.dev, work) == kEmptyMailbox);
  const std::vector<Item> back = drain_items(device.dev, 1);
  REQUIRE(back.size() == in_hand);
  for (std::uint32_t i = 0; i < in_hand; ++i) CHECK(back[i].record == run.first_record + 1 + i);
}

TEST_CASE("while bodies last, nothing stays in hand and shares are single tasks") {
  SharedRun shared;
  auto& [device, wide, run, work] = shared;
  const std::uint32_t in_hand = work.roots_end - work.roots_next;
  REQUIRE(in_hand > 0);
  std::uint32_t next = 1 + in_hand;
  for (int i = 0; i < 5; ++i) {
    take_singly<P>(device.dev, work, 0);
    CHECK(Item::unpack(take_local<P>(device.dev, work)).record == run.first_record + next++);
    CHECK(work.roots_next == work.roots_end);
  }
  CHECK(drain_items(device.dev, 1).size() == in_hand);
  CHECK(Item::unpack(take_local<P>(device.dev, work)).record == run.first_record + next++);
  CHECK(work.roots_next == work.roots_end);
  CHECK(Item::unpack(take_local<P>(device.dev, work)).record == run.first_record + next);
  CHECK(work.roots_next < work.roots_end);
}

TEST_CASE("the more runs wait with roots left, the larger is a share of one") {
  const std::uint32_t runs = GENERATE(1u, 2u, 6u, 100u);
  SharedRun shared;
  auto& [device, wide, run, work] = shared;
  put_back_tasks<P>(device.dev, work, 0);
  const std::uint32_t left = work.roots_left;
  device.dev.control->broadcast.queued[1] = runs * kRootedRun + 20;  // tasks in the queue do not count
  REQUIRE(take_local<P>(device.dev, work) != kEmptyMailbox);
  const std::uint32_t wanted = std::min((left * runs >> device.dev.share_shift) + 1, 64u);
  CHECK(left - work.roots_left == std::min(wanted, left));
}

TEST_CASE("threads that take shares at once take each root once, round after round") {
  TestDeviceState device;
  RunState& state = device.dev.runs[0];
  std::vector<std::uint32_t> taken(500);
  std::atomic<std::uint32_t> count{0};
  for (std::uint64_t round = 0; round < 50; ++round) {
    state.roots = std::uint64_t{500} << 32;
    run_together(3, [&](std::uint32_t i) {
      for (RootShare share = take_roots<P>(state, i + 1); share.count; share = take_roots<P>(state, 5 * i + 1)) {
        for (std::uint32_t r = 0; r < share.count; ++r) ++taken[share.first + r];
        count.fetch_add(share.count, std::memory_order_relaxed);
      }
    });
  }
  CHECK(count == 50 * 500);
  CHECK(std::count(taken.begin(), taken.end(), 50u) == 500);
}

TEST_CASE("wide graphs of all kinds run every task once a pass, also with stale tickets about") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 30; ++round) {
    DeviceStateShape shape;
    shape.workers = pick(random, 1, 4);
    TestDeviceState device(shape);
    std::vector<std::unique_ptr<WideGraph>> wides;
    std::vector<RunConstants> runs;
    for (std::uint32_t g = 0; g < 3; ++g) {
      wides.push_back(std::make_unique<WideGraph>(pick(random, 1, 60), pick(random, 0, 1), pick(random, 0, 1)));
      runs.push_back(device.load(wides[g]->graph));
      runs[g].priority = pick(random, 0, 2);
    }
    Launch<RootTasks> launch(device);
    std::uint32_t passes[3] = {};
    for (std::uint32_t r = 0; r < 40; ++r) {
      for (std::uint32_t g = 0; g < 3; ++g) {
        passes[g] += r % 3 + 1;
        launch.submit(runs[g], (g + r) % 3, r % 3 + 1);
      }
      for (std::uint32_t g = 0; g < 3; ++g) REQUIRE(launch.finish(g, r) == 0);
      for (std::uint32_t g = 0; g < 3; ++g)
        REQUIRE(wides[g]->cells == std::vector<std::uint32_t>(wides[g]->cells.size(), passes[g]));
    }
  }
}
