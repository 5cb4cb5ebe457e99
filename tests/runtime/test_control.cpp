// Control by hand, one worker and no thread: what continuations and spawned tasks inherit, and what finishing a task that has
// asked for something leaves behind, in the counters, the pool and the queues.
#include "runtime/dynamic/control.hpp"
#include "support/internals.hpp"

#include "catch.hpp"
#include "runtime/dynamic/finish.hpp"
#include "support/launch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

struct Work {
  std::uint32_t unused;
  template <class Block>
  void operator()(Block&) const {}
};
/// Goes on as its own continuation until `turns` is 0, and spawns a leaf before and one behind each.
struct Onward {
  std::uint32_t* count;  // atomic
  std::uint32_t turns;
  template <class Block>
  void operator()(Block& block) const {
    P::device(*count).add(1, Order::relaxed);
    if (!turns) return;
    const Onward leaf{count, 0}, next{count, turns - 1};
    if (!block.spawn(leaf)) leaf(block);
    const bool later = block.then(next);
    if (!block.spawn(leaf)) leaf(block);
    if (!later) next(block);
  }
};
using ControlTasks = TaskList<Work, Onward>;
using Block = BlockCore<P, ControlTasks>;
using Items = std::vector<std::uint64_t>;

/// Of each task of a graph, whom it waits for.
using After = std::vector<std::vector<std::uint32_t>>;
const After kAlone(1), kSinks(3), kChain{{}, {0}}, kJoin{{}, {}, {0, 1}};

/// A graph of which a worker runs what the test says.
struct Control {
  TestDeviceState device;
  const DeviceState& dev = device.dev;
  RunConstants run;
  LocalWork work{};
  Finisher<P> finisher{dev, 0, work};

  explicit Control(const After& after, std::uint32_t pool = 8) : device(shape(pool)) {
    TestGraph<ControlTasks> graph;
    for (const auto& before : after) graph.add(Work{}, before);
    run = device.load(graph);
    run.generation = 1;
    device.open(run);
  }
  static DeviceStateShape shape(std::uint32_t pool) {
    DeviceStateShape all;
    all.spawn_capacity = pool;
    all.keep_successor = 0;
    return all;
  }

  TaskHeader& header(std::uint32_t record) { return dev.records[record].header; }
  /// As graph_image.cpp does.
  void control(std::uint32_t task, std::uint8_t flags, std::uint32_t label = 0) {
    header(task).flags |= flags;
    header(task).edge_predecessors = 0;
    for (std::uint32_t e = 0; e < header(task).edge_count; ++e) dev.edges[header(task).first_edge + e].label = label;
  }
  void loop(std::uint32_t first, std::uint32_t last, Priority priority = Priority::inherit) {
    control(last, kTaskLoops);
    header(last).edge_task = first;
    header(last).edge_priority = static_cast<std::uint32_t>(priority);
  }

  template <class Body>
  Outcome body(std::uint32_t record, const Body& body) {
    TaskContext context{&dev, &header(record), &dev.runs[0], Item{record, 0, false}, 0, {}};
    Block block(context);
    body(block);
    return context.outcome;
  }
  void finish(std::uint32_t record, const Outcome& outcome = {}) { end(record, outcome, true, nullptr); }
  void skip(std::uint32_t record) { end(record, {}, false, nullptr); }
  template <class Body>
  void perform(std::uint32_t record, const Body& b) {
    finish(record, body(record, b));
  }
  /// The worker runs `next` afterwards.
  void finish_before(std::uint32_t record, std::uint32_t next) {
    const TaskSlot behind{dev.records[next], dev.runs[0].line};
    end(record, {}, true, &behind);
  }

  /// The tasks that have become ready at a level, and are in its queue no more.
  Items ready(Priority level = Priority::normal) {
    const Views<P> views{dev};
    Items items;
    std::uint64_t item = 0;
    while (views.ready(static_cast<std::uint32_t>(level)).pop(1, &item, views.wait(0))) items.push_back(item);
    return items;
  }
  static std::uint64_t item(std::uint32_t record, bool skip = false) { return Item{record, 0, skip}.pack(); }
  std::uint64_t counter(std::uint32_t task) const { return run.bank()[task]; }
  std::uint32_t outstanding() const { return dev.runs[0].outstanding; }
  bool ended() const { return dev.completions[0].word >> 32 == 1; }
  std::size_t pooled() const { return Views<P>{dev}.spawn_pool().size_hint(); }

 private:
  void end(std::uint32_t record, const Outcome& outcome, bool runs, const TaskSlot* behind) {
    const TaskSlot slot{dev.records[record], dev.runs[0].line};
    PrefetchedTask task{};
    task.item = {record, 0, !runs};
    task.task_slot = &slot;
    task.outcome = outcome;
    task.runs = runs;
    task.failed = !runs;
    Finisher<P>::prepare(dev, task);
    finisher(
        task, behind, [] {}, [](const PrefetchedTask&) { return false; });
  }
};

std::uint32_t continuation_in(const Outcome& outcome) { return outcome.control & ~kContinues; }
const auto kSpawns = [](Block& block) { REQUIRE(block.spawn(Work{})); };
const auto kContinuesOnce = [](Block& block) { REQUIRE(block.then(Work{})); };
const auto kGoesAgain = [](Block& block) { block.again(); };
}  // namespace

TEST_CASE("a continuation stands in for a task of the graph, and what is spawned does not") {
  constexpr std::uint32_t kOfGraph[] = {0, kTaskControls, kTaskLoops, kTaskControls | kTaskLoops};
  for (const std::uint32_t flags : kOfGraph) {
    CAPTURE(flags);
    Control control(kChain);
    control.header(0).flags = static_cast<std::uint8_t>(flags);
    const Outcome outcome = control.body(0, [](Block& block) {
      REQUIRE(block.spawn(Work{}));
      REQUIRE(block.then(Work{}));
      REQUIRE(block.spawn(Work{}));
    });
    const std::uint32_t next = continuation_in(outcome);
    CHECK(control.header(next).flags == (kTaskSpawned | kTaskStandsIn | flags));
    CHECK(control.header(next).first_edge == control.header(0).first_edge);
    CHECK(control.header(next).edge_predecessors == 2);  // the task and the one spawned behind then()
    CHECK(control.counter(1) == 2);                      // the task, in whose place the continuation is, and the one before
    const Items items = control.ready();
    REQUIRE(items.size() == 2);
    const TaskHeader &before = control.header(Item::unpack(items[0]).record),
                     &behind = control.header(Item::unpack(items[1]).record);
    CHECK(before.flags == (kTaskSpawned | (flags & kTaskControls)));
    CHECK(before.first_edge == control.header(0).first_edge);
    CHECK(behind.flags == (kTaskSpawned | kTaskContinued));
    CHECK(behind.first_edge == next);
    CHECK(behind.edge_count == 1);
  }
}

TEST_CASE("continuations of continuations stand in, too, and those of spawned tasks do not") {
  constexpr std::uint32_t kStandsIn = kTaskSpawned | kTaskStandsIn | kTaskLoops | kTaskControls;
  constexpr std::uint32_t kChild = kTaskSpawned | kTaskControls, kBehind = kTaskSpawned | kTaskContinued;
  for (const std::uint32_t flags : {kStandsIn, kChild, kBehind}) {
    CAPTURE(flags);
    Control control(kChain);
    control.header(0).flags = static_cast<std::uint8_t>(flags);
    const Outcome outcome = control.body(0, kContinuesOnce);
    CHECK(control.header(continuation_in(outcome)).flags == flags);
    CHECK(control.header(continuation_in(outcome)).first_edge == control.header(0).first_edge);
  }
}

TEST_CASE("without a record in the pool then() changes nothing") {
  Control control(kChain, 2);
  const Outcome outcome = control.body(0, [](Block& block) {
    while (block.spawn(Work{})) {}
    CHECK_FALSE(block.then(Work{}));
  });
  CHECK(outcome.control == kHasSpawned);
  CHECK(outcome.code == 0);
  CHECK(control.counter(1) == 3);
  CHECK(control.outstanding() == 1);
  const Items spawned = control.ready();
  REQUIRE(spawned.size() == 2);
  control.finish(0, outcome);
  for (const std::uint64_t one : spawned) {
    CHECK(control.ready().empty());
    control.finish(Item::unpack(one).record);
  }
  CHECK(control.ready() == Items{Control::item(1)});
  CHECK(control.pooled() == 2);
  CHECK(continuation_in(control.body(1, kContinuesOnce)) >= control.dev.spawn_base);
}

TEST_CASE("a continuation is ready when all before it have ended, and its record comes back behind it") {
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    Control control(kChain, 4);
    const Outcome outcome = control.body(0, [](Block& block) {
      REQUIRE(block.then(Work{}, Priority::high));
      REQUIRE(block.spawn(Work{}));
      REQUIRE(block.spawn(Work{}));
    });
    const std::uint32_t next = continuation_in(outcome);
    const Items spawned = control.ready();
    REQUIRE(spawned.size() == 2);
    control.finish(Item::unpack(spawned[0]).record, control.body(Item::unpack(spawned[0]).record, [&](Block& block) {
      if (fails) block.fail(5);
    }));
    control.finish(0, outcome);
    CHECK(control.ready(Priority::high).empty());
    control.finish(Item::unpack(spawned[1]).record);
    CHECK(control.ready(Priority::high) == Items{Control::item(next, fails)});
    CHECK(control.pooled() == 3);
    CHECK(control.ready().empty());
    if (fails) control.skip(next);
    else control.finish(next);
    CHECK(control.ready() == Items{Control::item(1, fails)});
    CHECK(control.pooled() == 4);
    CHECK(control.counter(1) == 1);
  }
}

TEST_CASE("a pool is full again after chains of continuations") {
  for (const std::uint32_t pool : {1u, 2u, 4u, 32u}) {
    CAPTURE(pool);
    TestDeviceState device(Control::shape(pool));
    TestGraph<ControlTasks> graph;
    std::uint32_t count = 0;
    for (int i = 0; i < 3; ++i) graph.add(Onward{&count, 40});
    const RunConstants run = device.load(graph);
    Launch<ControlTasks> launch(device);
    for (std::uint32_t round = 1; round <= 10; ++round) {
      REQUIRE(launch.run(run, 0, 2) == 0);
      CHECK(P::device(count).load(Order::relaxed) == round * 2 * 3 * 121);  // 40 turns of 3, and the last
    }
    launch.park();
    CHECK(Views<P>{device.dev}.spawn_pool().size_hint() == pool);
  }
}

TEST_CASE("a sink that left its arrival to the next one counts, though that one has a continuation") {
  Control control(kSinks);
  control.finish_before(0, 1);
  REQUIRE(control.work.sinks_done == 1);
  REQUIRE(control.outstanding() == 3);
  const Outcome outcome = control.body(1, kContinuesOnce);
  control.finish(1, outcome);
  CHECK(control.work.sinks_done == 0);
  CHECK(control.outstanding() == 2);
  CHECK(control.ready() == Items{Control::item(continuation_in(outcome))});
  control.finish(continuation_in(outcome));
  CHECK(control.outstanding() == 1);
  CHECK_FALSE(control.ended());
  control.finish(2);
  CHECK(control.ended());
}

TEST_CASE("no sink leaves its arrival to the last task of a loop") {
  Control control(kSinks);
  control.loop(1, 1);
  control.finish_before(0, 1);
  CHECK(control.work.sinks_done == 0);
  CHECK(control.outstanding() == 2);
}

TEST_CASE("the counter of a join of any is armed again as it was") {
  for (const bool first : {false, true})
    for (const bool second : {false, true}) {
      CAPTURE(first, second);
      Control control(kJoin);
      for (const std::uint32_t task : {0u, 1u}) control.control(task, kTaskControls, kAnyEdge);
      for (int pass = 0; pass < 2; ++pass) {
        first ? control.finish(0) : control.skip(0);
        CHECK(control.counter(2) == (first ? kHasRun + 1 : (std::uint64_t{1} << 32) + 1));
        second ? control.finish(1) : control.skip(1);
        CHECK(control.ready() == Items{Control::item(2, !first && !second)});
        CHECK(control.counter(2) == 2);
      }
    }
}

TEST_CASE("a task before a join of any that has failed skips it") {
  Control control(kJoin);
  for (const std::uint32_t task : {0u, 1u}) control.control(task, kTaskControls, kAnyEdge);
  control.finish(0);
  control.perform(1, [](Block& block) { block.fail(3); });
  CHECK(control.ready() == Items{Control::item(2, true)});
  CHECK(control.counter(2) == 2);
}

TEST_CASE("a failure elsewhere in the run skips no join of any whose tasks have run") {
  Control control(kJoin);
  for (const std::uint32_t task : {0u, 1u}) control.control(task, kTaskControls, kAnyEdge);
  control.dev.runs[0].line.fault = 1;
  control.finish(0);
  control.finish(1);
  CHECK(control.ready() == Items{Control::item(2)});
}

TEST_CASE("what a task has spawned makes no join of any run that the task did not choose") {
  for (const bool chooses : {false, true}) {
    CAPTURE(chooses);
    Control control(kJoin);
    for (const std::uint32_t task : {0u, 1u}) control.control(task, kTaskControls, kAnyEdge | kFirstCase);
    const Outcome outcome = control.body(0, [&](Block& block) {
      kSpawns(block);
      block.choose(chooses ? 0 : 1);
    });
    const Items spawned = control.ready();
    REQUIRE(spawned.size() == 1);
    control.finish(Item::unpack(spawned[0]).record);
    CHECK(control.counter(2) == 2);
    control.finish(0, outcome);
    control.finish(1);
    CHECK(control.ready() == Items{Control::item(2, !chooses)});
    CHECK(control.counter(2) == 2);
  }
}

TEST_CASE("the last task of a loop is never alone: an earlier turn may have spawned") {
  const auto turn = [](Block& block) {
    kSpawns(block);
    block.again();
  };
  SECTION("as the only sink") {
    Control control(kAlone);
    control.loop(0, 0);
    control.perform(0, turn);
    const Items items = control.ready();  // the spawned one, and the next turn
    REQUIRE(items.size() == 2);
    control.finish(0);
    CHECK_FALSE(control.ended());
    CHECK(control.outstanding() == 1);
    control.finish(Item::unpack(items[0]).record);
    CHECK(control.ended());
  }
  SECTION("with one successor that waits for nothing else") {
    Control control(kChain);
    control.loop(0, 0);
    control.perform(0, turn);
    const Items items = control.ready();
    REQUIRE(items.size() == 2);
    control.finish(0);
    CHECK(control.ready().empty());
    CHECK(control.counter(1) == 1);
    control.finish(Item::unpack(items[0]).record);
    CHECK(control.ready() == Items{Control::item(1)});
    CHECK(control.counter(1) == 1);
  }
}

TEST_CASE("a loop begins again at the priority of its first task, also from a continuation") {
  Control control(kChain);
  control.loop(0, 1, Priority::low);
  control.perform(1, kGoesAgain);
  CHECK(control.ready(Priority::low) == Items{Control::item(0)});
  const Outcome outcome = control.body(1, kContinuesOnce);
  control.finish(1, outcome);
  CHECK(control.ready() == Items{Control::item(continuation_in(outcome))});
  control.perform(continuation_in(outcome), kGoesAgain);
  CHECK(control.ready(Priority::low) == Items{Control::item(0)});
  CHECK(control.ready(Priority::high).empty());
}
