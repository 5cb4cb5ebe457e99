// Workers and inbox poller as a whole, on a device state that a test has filled: graphs run in order, once for each submission.
#include "runtime/dynamic/worker.hpp"
#include "support/internals.hpp"

#include <algorithm>

#include "catch.hpp"
#include "support/launch.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Appends to plain memory: only the edges of the graph order these writes, so a missing one is a race.
struct Append {
  std::vector<std::uint32_t>* log;
  std::uint32_t value;
  template <class Block>
  void operator()(Block&) const {
    log->push_back(value);
  }
};

/// value[self] = 1 + the sum of the values it waits for; a cell is plain memory.
struct Sum {
  std::uint64_t* values;
  const std::uint32_t* before;
  std::uint32_t count, self;
  template <class Block>
  void operator()(Block&) const {
    std::uint64_t sum = 1;
    for (std::uint32_t i = 0; i < count; ++i) sum += values[before[i]];
    values[self] = values[self] * 3 + sum;
  }
};

struct Give {
  std::uint64_t value;
  template <class Block>
  std::uint64_t operator()(Block& block) const {
    return value + block.iteration();
  }
};

/// One of four, each with a successor: the first finds that two more workers become idle, the last ends the launch.
struct Nth {
  const DeviceState* dev;
  std::uint32_t* claimed;  // workers that are claimed and have got nothing while the third runs
  std::uint32_t n;
  template <class Block>
  void operator()(Block&) const {
    const IdleSet<CpuPlatform> idle = Views<CpuPlatform>{*dev}.idle();
    if (n == 0) idle.enroll(1), idle.enroll(2);
    if (n == 2)
      for (std::uint32_t w = 1; w < 3; ++w)
        *claimed +=
            !(idle.seen(0) >> w & 1) && CpuPlatform::device(dev->mailboxes[w].value).load(Order::relaxed) == kEmptyMailbox;
    if (n == 3) CpuPlatform::device(dev->control->broadcast.abort).store(1, Order::relaxed);
  }
};

/// Announces a phased run in slot 1, or ends the launch.
struct Tell {
  const DeviceState* dev;
  std::vector<std::uint32_t>* log;
  bool phased;
  template <class Block>
  void operator()(Block&) const {
    if (phased) CpuPlatform::device(dev->control->broadcast.announcement).store(announcement_word(1, 1, 0), Order::release);
    else CpuPlatform::device(dev->control->broadcast.abort).store(1, Order::relaxed);
    log->push_back(phased ? 1000 : 2000);
  }
};

/// One of several sinks: notes how many of its run have not arrived by then. The last one ends the launch.
struct Sink {
  const DeviceState* dev;
  std::vector<std::uint32_t>* outstanding;
  bool fails, last;
  template <class Block>
  void operator()(Block& block) const {
    outstanding->push_back(CpuPlatform::device(dev->runs[0].outstanding).load(Order::relaxed));
    if (fails) block.fail(1);
    if (last) CpuPlatform::device(dev->control->broadcast.abort).store(1, Order::relaxed);
  }
};

/// An executor that looks ahead, as a GPU's does.
struct PrefetchingExecutor : CpuExecutor<> {
  using CpuExecutor::CpuExecutor;
  static constexpr bool kPrefetches = true;
};

/// An executor whose bodies are all long, and that looks ahead as a GPU's does.
struct LongExecutor : CpuExecutor<> {
  using CpuExecutor::CpuExecutor;
  static constexpr bool kPrefetches = true;
  template <class Slow, class Settle, class Last>
  Outcome wait(std::uint32_t slot, Slow&& slow, Settle&& signal_done, Last&& last) {
    signal_done();
    last();
    return CpuExecutor::wait(slot, slow, signal_done, last);
  }
};

using WorkerTasks = TaskList<Append, Sum, Give, Nth, Tell, Sink>;

/// A random graph of Sum tasks, and the same sums one after another.
struct RandomSums {
  TestGraph<WorkerTasks> graph;
  std::vector<std::vector<std::uint32_t>> before;
  std::vector<std::uint64_t> values, oracle;

  RandomSums(Random& random, std::uint32_t tasks) : before(tasks), values(tasks), oracle(tasks) {
    const std::uint32_t density = pick(random, 0, 4);
    for (std::uint32_t t = 0; t < tasks; ++t) {
      for (std::uint32_t d = 0; t && d < density; ++d) {
        const std::uint32_t other = pick(random, 0, t - 1);
        if (std::find(before[t].begin(), before[t].end(), other) == before[t].end()) before[t].push_back(other);
      }
      const auto priority = pick(random, 0, 3) ? Priority::inherit : static_cast<Priority>(pick(random, 0, 2));
      graph.add(Sum{values.data(), before[t].data(), static_cast<std::uint32_t>(before[t].size()), t}, before[t], priority);
    }
  }

  void serially() {
    for (std::size_t t = 0; t < oracle.size(); ++t) {
      std::uint64_t sum = 1;
      for (const std::uint32_t other : before[t]) sum += oracle[other];
      oracle[t] = oracle[t] * 3 + sum;
    }
  }
};

void random_graphs_agree_with_the_oracle(const DeviceStateShape& shape, std::uint64_t seed, int graphs) {
  Random random(seed);
  for (int g = 0; g < graphs; ++g) {
    TestDeviceState device(shape);
    RandomSums sums(random, pick(random, 1, 120));
    RunConstants run = device.load(sums.graph);
    run.priority = pick(random, 0, 2);
    Launch<WorkerTasks> launch(device);
    for (int r = 0; r < 3; ++r) {
      const std::uint32_t repeat = pick(random, 1, 5);
      REQUIRE(launch.run(run, static_cast<std::uint32_t>(r), repeat) == 0);
      for (std::uint32_t i = 0; i < repeat; ++i) sums.serially();
      REQUIRE(sums.values == sums.oracle);
    }
  }
}
}  // namespace

TEST_CASE("a chain runs in order, again and again") {
  TestDeviceState device;
  TestGraph<WorkerTasks> graph;
  std::vector<std::uint32_t> log, expected;
  for (std::uint32_t i = 0; i < 100; ++i)
    graph.add(Append{&log, i}, i ? std::vector<std::uint32_t>{i - 1} : std::vector<std::uint32_t>{});
  for (std::uint32_t i = 0; i < 1000; ++i) expected.push_back(i % 100);
  Launch<WorkerTasks> launch(device);
  CHECK(launch.run(device.load(graph), 0, 10) == 0);
  CHECK(log == expected);
}

TEST_CASE("random graphs give what a serial run gives") {
  FLYWHEEL_TEST_SEED(seed);
  random_graphs_agree_with_the_oracle({}, seed, 80);
  DeviceStateShape plain;
  plain.keep_successor = 0;
  plain.workers = 2;
  random_graphs_agree_with_the_oracle(plain, seed + 1, 40);
  DeviceStateShape alone;
  alone.workers = 1;
  random_graphs_agree_with_the_oracle(alone, seed + 2, 20);
}

TEST_CASE("many independent tasks all run once") {
  TestDeviceState device;
  TestGraph<WorkerTasks> graph;
  std::vector<std::uint64_t> values(200);
  for (std::uint32_t i = 0; i < 200; ++i) graph.add(Sum{values.data(), nullptr, 0, i});
  const RunConstants run = device.load(graph);
  Launch<WorkerTasks> launch(device);
  for (std::uint64_t times = 1, expected = 1; times <= 20; ++times, expected = expected * 3 + 1) {
    REQUIRE(launch.run(run) == 0);
    CHECK(values == std::vector<std::uint64_t>(200, expected));
  }
}

TEST_CASE("two runs of one graph overlap on banks of their own") {
  TestDeviceState device;
  TestGraph<WorkerTasks> graph;
  std::uint64_t zeros[2] = {};
  for (std::uint32_t i = 0; i < 30; ++i)
    graph.add(Give{i}, i < 10 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{i - 10, (i * 7) % 10},
              Priority::inherit, i == 29 ? 8 : kNoResult);
  const RunConstants first = device.load(graph, 2);
  const RunConstants runs[2] = {first, device.on_bank(first, 0, 1)};
  Launch<WorkerTasks> launch(device);
  for (std::uint32_t round = 0; round < 50; ++round) {
    launch.submit(runs[0], 0, 7);
    launch.submit(runs[1], 1, 9);
    REQUIRE(launch.finish(1, round) == 0);
    REQUIRE(launch.finish(0, round) == 0);
    for (std::uint32_t s = 0; s < 2; ++s) std::memcpy(&zeros[s], device.dev.results + s * device.dev.result_bytes + 8, 8);
    CHECK(zeros[0] == 29 + 6);
    CHECK(zeros[1] == 29 + 8);
  }
}

TEST_CASE("a launch parks, and the next goes on where it was") {
  TestDeviceState device;
  TestGraph<WorkerTasks> graph;
  std::vector<std::uint32_t> log;
  graph.add(Append{&log, 1});
  const RunConstants run = device.load(graph);
  std::uint64_t messages = 0;
  for (std::uint32_t round = 1; round <= 20; ++round) {
    Launch<WorkerTasks> launch(device, messages);
    if (round % 4) REQUIRE(launch.run(run) == 0);
    launch.park();
    messages = launch.messages();
  }
  CHECK(log.size() == 15);
  CHECK(device.dev.control->poller.epoch == 20);
  CHECK(device.dev.control->poller.admitted == 15);
}

namespace {
/// What a worker alone does that looks ahead, with the graph's tasks in its queue: `run` is in slot 0.
template <class Executor = LongExecutor>
void work_alone(TestDeviceState& device, const RunConstants& run, std::uint32_t tasks) {
  device.open(run);
  const Views<CpuPlatform> views{device.dev};
  const auto item = [&](std::uint32_t n) { return Item{run.first_record + n, 0, false}.pack(); };
  REQUIRE(views.ready(run.priority).push(tasks, item, views.wait(0)));
  unsigned char scratch[16];
  Executor executor(device.dev, cpu_tasks<WorkerTasks>, 0, scratch);
  Worker<CpuPlatform, Executor>(device.dev, 0, executor, nullptr)();
}
}  // namespace

TEST_CASE("no idle worker is claimed for the successor of a task that is still to come") {
  TestDeviceState device;
  TestGraph<WorkerTasks> graph;
  std::uint32_t claimed = 0;
  std::vector<std::uint32_t> log;
  for (std::uint32_t n = 0; n < 4; ++n) graph.add(Nth{&device.dev, &claimed, n});
  for (std::uint32_t n = 0; n < 4; ++n) graph.add(Append{&log, n}, {n});
  device.dev.share_shift = 0;  // all four are one batch
  work_alone(device, device.load(graph), 4);
  CHECK(claimed == 0);
}

TEST_CASE("sinks that end one behind the other arrive together, and one that fails tells those before it, too") {
  constexpr std::uint32_t kSinks = 8;
  for (const std::uint32_t failing : {kSinks, 3u, kSinks - 1}) {
    TestDeviceState device;
    TestGraph<WorkerTasks> graph;
    std::vector<std::uint32_t> outstanding, expected;
    for (std::uint32_t n = 0; n < kSinks; ++n) graph.add(Sink{&device.dev, &outstanding, n == failing, n + 1 == kSinks});
    for (std::uint32_t n = 0; n < kSinks; ++n) expected.push_back(n > failing ? kSinks - failing - 1 : kSinks);
    device.dev.share_shift = 0;  // all are one batch
    const RunConstants run = device.load(graph);
    work_alone<PrefetchingExecutor>(device, run, kSinks);
    CHECK(outstanding == expected);
    const std::uint64_t word = CpuPlatform::system(device.dev.completions[0].word).load(Order::acquire);
    CHECK(word == completion_word(run.generation, failing < kSinks ? kUserStatus + 1 : 0));
  }
}

TEST_CASE("a long queue keeps no worker from a collective run, nor from the end") {
  constexpr std::uint32_t kTasks = 200, kInHand = 24;
  DeviceStateShape alone;
  alone.workers = 1;
  for (const bool phased : {true, false}) {
    TestDeviceState device(alone);
    TestGraph<WorkerTasks> graph, phases;
    std::vector<std::uint32_t> log;
    graph.add(Tell{&device.dev, &log, phased});
    for (std::uint32_t n = 1; n + 1 < kTasks; ++n) graph.add(Append{&log, n});
    graph.add(Tell{&device.dev, &log, false});
    phases.add(Append{&log, 3000});
    phases.phases = {{0, 1, 0, 0}};
    RunConstants of_all = device.load(phases);
    of_all.slot = 1;
    device.open(of_all);
    work_alone(device, device.load(graph), kTasks);
    const auto seen = phased ? std::find(log.begin(), log.end(), 3000u) : log.end();
    CHECK(seen - log.begin() < kInHand);
  }
}

TEST_CASE("nor does a long chain") {
  DeviceStateShape alone;
  alone.workers = 1;
  TestDeviceState device(alone);
  TestGraph<WorkerTasks> graph;
  std::vector<std::uint32_t> log;
  graph.add(Tell{&device.dev, &log, false});
  for (std::uint32_t n = 1; n < 500; ++n) graph.add(Append{&log, n}, {n - 1});
  work_alone(device, device.load(graph), 1);
  CHECK(log.size() < 100);
}

TEST_CASE("a kept successor that the worker gives up waits at its own level") {
  for (const Priority own : {Priority::high, Priority::low, Priority::inherit}) {
    DeviceStateShape alone;
    alone.workers = 1;
    TestDeviceState device(alone);
    TestGraph<WorkerTasks> graph;
    std::uint32_t claimed = 0;
    std::vector<std::uint32_t> log;
    graph.add(Nth{&device.dev, &claimed, 3});  // all workers are to leave
    graph.add(Append{&log, 1}, {0}, own);
    const RunConstants run = device.load(graph);
    work_alone(device, run, 1);
    CHECK(log.empty());
    const std::uint32_t level = level_of(static_cast<std::uint32_t>(own), run.priority);
    CHECK(Views<CpuPlatform>{device.dev}.ready(level).size_hint() == 1);
  }
}

TEST_CASE("a worker counts what it did") {
  TestDeviceState device;
  TestGraph<WorkerTasks> graph;
  std::vector<std::uint32_t> log;
  for (std::uint32_t i = 0; i < 50; ++i)
    graph.add(Append{&log, i}, i ? std::vector<std::uint32_t>{i - 1} : std::vector<std::uint32_t>{});
  Launch<WorkerTasks> launch(device);
  REQUIRE(launch.run(device.load(graph)) == 0);
  launch.park();
  WorkerStats all{};
  for (std::uint32_t w = 0; w < device.dev.workers; ++w) {
    const WorkerStats& one = device.dev.stats[w];
    all.tasks += one.tasks, all.skipped += one.skipped, all.kept += one.kept, all.queued += one.queued,
        all.handed += one.handed;
  }
  CHECK(all.tasks == 50);
  CHECK(all.skipped == 0);
  CHECK(all.kept + all.queued + all.handed == 50);
  CHECK(all.kept == 49);
}
