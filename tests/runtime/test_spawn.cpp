// Spawned tasks take their parent's place: whatever waits for the parent waits for them, and their records
// come back.
#include "runtime/ready/spawn.hpp"
#include "support/internals.hpp"

#include "catch.hpp"
#include "support/launch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

std::uint32_t add_one(std::uint32_t& word) { return P::device(word).fetch_add(1, Order::relaxed); }

/// A tree of tasks; each node counts itself. Where the pool is used up, the parent does the work in its own
/// body.
struct SpawnTree {
  std::uint32_t* count;
  std::uint32_t* done_here;
  std::uint32_t depth;
  template <class Block>
  void operator()(Block& block) const {
    add_one(*count);
    for (std::uint32_t child = 0; depth && child < 2; ++child) {
      if (block.spawn(SpawnTree{count, done_here, depth - 1})) continue;
      add_one(*done_here);
      SpawnTree{count, done_here, depth - 1}(block);
    }
  }
};

/// Reads plainly what all the tree counted: its edges must order it after every spawned task.
struct Reader {
  const std::uint32_t* count;
  std::uint32_t* seen;
  template <class Block>
  void operator()(Block&) const {
    *seen = *count;
  }
};

struct Fails {
  std::uint32_t spawns;
  template <class Block>
  void operator()(Block& block) const {
    if (spawns && !block.spawn(Fails{spawns - 1})) block.fail(98);
    if (spawns == 0) block.fail(99);
  }
};

using SpawnTasks = TaskList<SpawnTree, Reader, Fails>;

bool pool_is_full(const DeviceState& dev) { return Views<P>{dev}.spawn_pool().size_hint() == dev.spawn_capacity; }

/// A parent that could spawn, in a device state where nothing runs.
struct Parent {
  TestDeviceState device;
  RunConstants run;
  TaskHeader header;

  explicit Parent(std::uint32_t successors) {
    TestGraph<SpawnTasks> graph;
    graph.add(Reader{});
    for (std::uint32_t s = 0; s < successors; ++s) graph.add(Reader{}, {0});
    run = device.load(graph);
    device.open(run);
    header = device.dev.records[0].header;
  }
  bool spawn(Priority priority = Priority::inherit) {
    const SpawnTree task{nullptr, nullptr, 5};
    return spawn_task<P>(device.dev, 0, 0, header, 0, 0, &task, sizeof(task), priority);
  }
};
}  // namespace

TEST_CASE("a spawned task inherits the successors and raises what they wait for") {
  Parent parent(3);
  REQUIRE(parent.spawn());
  for (std::uint32_t s = 1; s <= 3; ++s) CHECK(parent.run.bank()[s] == 2);
  CHECK(parent.device.dev.runs[0].outstanding == 3);
  std::uint64_t item = 0;
  const Views<P> views{parent.device.dev};
  REQUIRE(views.ready(static_cast<std::uint32_t>(Priority::normal)).pop(1, &item, views.wait(0)) == 1);
  const TaskRecord& record = parent.device.dev.records[Item::unpack(item).record];
  CHECK(record.header.flags == kTaskSpawned);
  CHECK(record.header.first_edge == parent.header.first_edge);
  CHECK(record.header.edge_count == 3);
  CHECK(record.header.result_offset == kNoResult);
  CHECK(reinterpret_cast<const SpawnTree*>(record.args)->depth == 5);
}

TEST_CASE("a task spawned by a sink is one more that the run waits for") {
  Parent parent(0);
  REQUIRE(parent.spawn(Priority::high));
  CHECK(parent.device.dev.runs[0].outstanding == 2);
  CHECK(Views<P>{parent.device.dev}.ready(0).size_hint() == 1);
}

TEST_CASE("an exhausted pool declines and works again when records come back") {
  Parent parent(1);
  DeviceState& dev = parent.device.dev;
  for (std::uint32_t i = 0; i < dev.spawn_capacity; ++i) REQUIRE(parent.spawn());
  CHECK_FALSE(parent.spawn());
  CHECK(parent.run.bank()[1] == 1 + dev.spawn_capacity);
  for (std::uint32_t i = 0; i < dev.spawn_capacity; ++i) recycle_spawned<P>(dev, dev.spawn_base + i, Views<P>{dev}.wait(0));
  CHECK(pool_is_full(dev));
  CHECK(parent.spawn());
}

TEST_CASE("trees of tasks run whole before what waits for their root, with a pool large or small") {
  for (const std::uint32_t pool : {1u, 2u, 8u, 256u}) {
    DeviceStateShape shape;
    shape.spawn_capacity = pool;
    shape.queue_capacity = 1024;
    TestDeviceState device(shape);
    TestGraph<SpawnTasks> graph;
    std::uint32_t count = 0, here = 0, seen = 0;
    graph.add(SpawnTree{&count, &here, 6});
    graph.add(Reader{&count, &seen}, {0});
    const RunConstants run = device.load(graph);
    Launch<SpawnTasks> launch(device);
    for (std::uint32_t round = 1; round <= 20; ++round) {
      REQUIRE(launch.run(run, 0, round % 3 + 1) == 0);
      CHECK(seen == count);
      CHECK(count % 127 == 0);
    }
    launch.park();
    CHECK(pool_is_full(device.dev));
    INFO("pool " << pool);
    CHECK((here > 0 || pool >= 127));
  }
}

TEST_CASE("a spawned sink's tree ends before its run does") {
  TestDeviceState device;
  TestGraph<SpawnTasks> graph;
  std::uint32_t count = 0, here = 0;
  graph.add(SpawnTree{&count, &here, 5});
  const RunConstants run = device.load(graph);
  Launch<SpawnTasks> launch(device);
  for (std::uint32_t round = 1; round <= 50; ++round) {
    REQUIRE(launch.run(run) == 0);
    CHECK(P::device(count).load(Order::relaxed) == 63 * round);
  }
}

TEST_CASE("a spawned task that fails fails its run, and skips what waits for its parent") {
  TestDeviceState device;
  TestGraph<SpawnTasks> graph;
  std::uint32_t count = 7, seen = 0;
  graph.add(Fails{3});
  graph.add(Reader{&count, &seen}, {0});
  const RunConstants run = device.load(graph);
  Launch<SpawnTasks> launch(device);
  for (std::uint32_t round = 0; round < 20; ++round) CHECK(launch.run(run) == kUserStatus + 99);
  CHECK(device.dev.completions[0].fault_task == 1);
  CHECK(seen == 0);
  launch.park();
  CHECK(pool_is_full(device.dev));
}
