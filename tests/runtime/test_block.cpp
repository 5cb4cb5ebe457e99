// What a body can ask of its block, seen through the runs it takes part in.
#include "runtime/dynamic/block.hpp"
#include "support/internals.hpp"

#include "catch.hpp"
#include "support/launch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

struct Settings {
  double scale;
  std::uint32_t shift;
};

/// Reads two parameters and returns what it makes of them.
struct Compute {
  Param<Settings> settings;
  Param<std::uint8_t> small;
  template <class Block>
  double operator()(Block& block) const {
    const Settings s = block.param(settings);
    return s.scale * block.param(small) + s.shift;
  }
};

struct Emit {
  std::uint32_t count;
  template <class Block>
  void operator()(Block& block) const {
    for (std::uint32_t i = 0; i < count; ++i)
      if (!block.emit(i * 0.5f)) return;
  }
};

struct StopInPass {
  std::uint32_t pass;
  std::uint32_t* passes;
  template <class Block>
  void operator()(Block& block) const {
    ++*passes;
    if (block.iteration() == pass) block.stop();
  }
};

struct FailTwice {
  template <class Block>
  void operator()(Block& block) const {
    block.fail(7);
    block.fail(8);
  }
};
struct FailWith {
  std::uint32_t code;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.fail(code);
  }
};

/// Arrives at a word, and counts the times that it was the last.
struct Arrive {
  std::uint64_t* word;
  std::uint32_t* times;
  std::uint32_t of;
  template <class Block>
  void operator()(Block& block) const {
    *times += block.arrives_last(*word, of);
  }
};

/// Uses the helpers that share work out among the threads of a block.
struct Together {
  std::uint64_t* sum;
  int n;
  template <class Block>
  void operator()(Block& block) const {
    auto* cells = block.template scratch<std::uint64_t>(n);
    auto* bytes = block.template scratch<unsigned char>(3);
    if (!cells || !bytes) return;
    block.for_each(n, [&](int i) { cells[i] = static_cast<std::uint64_t>(i) * i; });
    block.sync();
    std::uint64_t mine = 0;
    block.for_each(n, [&](int i) { mine += cells[i]; });
    const std::uint64_t all = block.reduce(mine, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    if (block.leader()) *sum = all + block.workers();
  }
};

using BlockTasks = TaskList<Compute, Emit, StopInPass, FailTwice, FailWith, Arrive, Together>;

template <class Task>
std::uint32_t run_alone(TestDeviceState& device, const Task& task, std::uint32_t repeat = 1) {
  TestGraph<BlockTasks> graph;
  graph.add(task, {}, Priority::inherit, 16);
  const RunConstants run = device.load(graph);
  return Launch<BlockTasks>(device).run(run, 1, repeat);
}
}  // namespace

TEST_CASE("a body reads the run's parameters and its result reaches the host") {
  TestDeviceState device;
  const Settings settings{2.5, 4};
  const std::uint8_t small = 200;
  TestGraph<BlockTasks> graph;
  graph.add(Compute{{8, 0}, {3, 0}}, {}, Priority::inherit, 16);
  RunConstants run = device.load(graph);
  run.param_bytes = 24;
  std::memcpy(device.dev.params + kParamBytes + 8, &settings, sizeof(settings));
  std::memcpy(device.dev.params + kParamBytes + 3, &small, 1);
  CHECK(Launch<BlockTasks>(device).run(run, 1) == 0);
  double result = 0;
  std::memcpy(&result, device.dev.results + device.dev.result_bytes + 16, sizeof(result));
  CHECK(result == 504);
}

TEST_CASE("a body streams more values than the stream holds, while the host reads") {
  TestDeviceState device;
  TestGraph<BlockTasks> graph;
  graph.add(Emit{100});
  const RunConstants run = device.load(graph);
  Launch<BlockTasks> launch(device);
  const Stream<P> stream = Views<P>{device.dev}.stream(2);
  std::uint64_t ticket = 0;
  for (std::uint32_t round = 0; round < 5; ++round) {
    launch.submit(run, 2);
    for (std::uint32_t i = 0; i < 100; ++i, ++ticket) {
      std::uint64_t bits = 0;
      REQUIRE(wait_for([&] { return stream.read(ticket, bits); }));
      float value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      REQUIRE(value == i * 0.5f);
    }
    REQUIRE(launch.finish(2, round) == 0);
  }
}

TEST_CASE("a body whose values nobody reads fails its run and no other") {
  TestDeviceState device;
  device.dev.spin_budget_ns = 2'000'000;
  TestGraph<BlockTasks> graph;
  graph.add(Emit{100});
  const RunConstants run = device.load(graph);
  Launch<BlockTasks> launch(device);
  CHECK(launch.run(run) == static_cast<std::uint32_t>(Status::stream_stalled));
  CHECK(P::device(device.dev.control->broadcast.abort).load(Order::relaxed) == 0);
  CHECK(device.dev.completions[0].emitted > 8);  // tickets taken, also by those that gave up
}

TEST_CASE("a body stops a repeated run and knows the pass it is in") {
  TestDeviceState device;
  std::uint32_t passes = 0;
  CHECK(run_alone(device, StopInPass{4, &passes}, 1000) == 0);
  CHECK(passes == 5);
  CHECK(device.dev.completions[1].iterations == 5);
}

TEST_CASE("arrivals of a run that was cut short do not count for the next one") {
  TestDeviceState device;
  TestGraph<BlockTasks> graph;
  std::uint64_t word = 0;
  std::uint32_t times = 0;
  graph.add(Arrive{&word, &times, 3}, {}, Priority::inherit, 16);
  const RunConstants run = device.load(graph);
  Launch<BlockTasks> launch(device);
  CHECK(launch.run(run, 1, 8) == 0);
  CHECK(times == 2);  // after 3 and 6; two arrivals are left
  CHECK(launch.run(run, 1, 2) == 0);
  CHECK(times == 2);
  CHECK(launch.run(run, 1, 3) == 0);
  CHECK(times == 3);
  CHECK(launch.run(run, 1, 2) == 0);
  CHECK(launch.run(run, 0, 1) == 0);  // the same number of another slot
  CHECK(times == 3);
}

TEST_CASE("the first code that a body fails with counts") {
  TestDeviceState device;
  CHECK(run_alone(device, FailTwice{}) == kUserStatus + 7);
  CHECK(device.dev.completions[1].fault_task == 1);
}

TEST_CASE("a code that leaves no room for the library's own is told as the largest, and the run has failed") {
  const auto told = [](std::uint32_t code) {
    TestDeviceState device;
    return run_alone(device, FailWith{code});
  };
  for (const std::uint32_t code : {~0u, 0u - kUserStatus, 0u - 60u, kMostUserCode})
    CHECK(told(code) == kUserStatus + kMostUserCode);
  CHECK(told(kMostUserCode - 1) == kUserStatus + kMostUserCode - 1);
}

TEST_CASE("a body shares work, scratch memory and a sum among its threads") {
  TestDeviceState device;
  std::uint64_t sum = 0;
  CHECK(run_alone(device, Together{&sum, 100}) == 0);
  CHECK(sum == 328350 + device.dev.workers);
}

TEST_CASE("a body that asks for more scratch memory than there is fails with a status of its own") {
  TestDeviceState device;
  std::uint64_t sum = 1;
  CHECK(run_alone(device, Together{&sum, 1000}) == static_cast<std::uint32_t>(Status::scratch_exhausted));
  CHECK(sum == 1);
}
