// Single tasks: submitted without a graph from many threads at once, each with its own arguments and result.
#include "host/futures/future.hpp"
#include "support/internals.hpp"

#include <random>
#include <thread>

#include "support/seed.hpp"
#include "support/small_runtime.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("a single task gives its result") {
  Bench bench(on_cpu());
  Future<std::uint64_t> square = bench.runtime.submit(Square{12});
  CHECK(square.get() == 144);
  CHECK(square.done());
  CHECK(square.status() == Status::ok);
  Future<void> count = bench.runtime.submit(Count{bench.at(0)}, Priority::high);
  count.get();
  CHECK(bench.get(0) == 1);
  Future<std::uint64_t> follower = bench.runtime.submit(Square{3}, after(count));
  CHECK(follower.get() == 9);  // a run, not a single task
  const Stats stats = bench.runtime.stats();
  CHECK(stats.singles_submitted == 2);
  CHECK(stats.singles_completed == 2);
  CHECK(stats.submitted == 1);
}

TEST_CASE("the statistics count single tasks in flight") {
  Bench bench(on_cpu(1));
  Future<void> gate = bench.runtime.submit(Gate{bench.at(0), bench.at(1)});
  REQUIRE(eventually([&] { return bench.get(0) == 1; }));
  Future<void> behind = bench.runtime.submit(Count{bench.at(2)});
  Stats stats = bench.runtime.stats();
  CHECK(stats.singles_submitted == 2);
  CHECK(stats.singles_completed == 0);
  bench.put(1, 1);
  behind.wait();
  gate.wait();
  stats = bench.runtime.stats();
  CHECK(stats.singles_completed == 2);
}

TEST_CASE("many threads submit single tasks, 16 in flight each, and every result is right") {
  FLYWHEEL_TEST_SEED(seed);
  Bench bench(on_cpu());
  run_together(3, [&](std::uint32_t self) {
    std::mt19937_64 random(seed + self);
    std::vector<std::pair<Future<std::uint64_t>, std::uint64_t>> open(16);
    std::size_t wrong = 0;
    for (int i = 0; i < 500; ++i) {
      auto& [future, x] = open[i % 16];
      if (i >= 16) wrong += future.get() != x * x;
      x = random() % 100000;
      future = bench.runtime.submit(Square{static_cast<std::uint32_t>(x)});
    }
    for (auto& [future, x] : open) wrong += future.get() != x * x;
    CHECK(wrong == 0);
  });
}

TEST_CASE("more single tasks than slots, none of them collected meanwhile") {
  Bench bench(on_cpu());
  std::vector<Future<std::uint64_t>> all;
  for (std::uint32_t i = 0; i < 1500; ++i) all.push_back(bench.runtime.submit(Square{i}));
  std::size_t wrong = 0;
  for (std::uint64_t i = 0; i < 1500; ++i) wrong += all[i].get() != i * i;
  CHECK(wrong == 0);
  for (std::uint32_t i = 0; i < 1500; ++i) bench.runtime.submit(Count{bench.at(0)});  // futures dropped at once
  CHECK(eventually([&] { return bench.get(0) == 1500; }));
}

TEST_CASE("single tasks come while the kernel parks, and after it has") {
  Options options = on_cpu();
  options.park_after = std::chrono::milliseconds(1);
  FLYWHEEL_TEST_SEED(seed);
  std::mt19937_64 random(seed);
  Bench bench(options);
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    wrong += bench.runtime.submit(Square{i}).get() != std::uint64_t{i} * i;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2500));
  }
  CHECK(wrong == 0);
  CHECK(bench.runtime.stats().parks > 0);
}

TEST_CASE("single tasks spawn, beside graphs and batches") {
  Bench bench(on_cpu());
  Graph graph;
  const auto square = graph.add(Square{7});
  const Executable executable = bench.runtime.load(graph);
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    Run run = bench.runtime.submit(executable);
    Future<std::uint64_t> single = bench.runtime.submit(Square{i});
    Batch<std::uint64_t> batch = bench.runtime.submit(std::vector<Square>(3, Square{i + 1}));
    wrong += run.get(square) != 49;
    wrong += single.get() != std::uint64_t{i} * i;
    wrong += batch.get(2) != std::uint64_t{i + 1} * (i + 1);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a single task that fails, is cancelled or streams says so, and its slot comes back") {
  Bench bench(on_cpu());
  for (int i = 0; i < 3; ++i) {
    Future<void> failing = bench.runtime.submit(Fail{5, 0});
    check_says(error_of<RunError>([&] { failing.wait(); }), {"5", "single task", "Fail"});
    CHECK(failing.status() == Status::task_failed);
    Future<void> streams = bench.runtime.submit(EmitRange{1, 1});
    check_says(error_of<RunError>([&] { streams.wait(); }), {"without a graph", "emit()", "load a graph"});
    bench.put(0, 0);
    Future<void> gate = bench.runtime.submit(Gate{bench.at(0), bench.at(1)});
    REQUIRE(eventually([&] { return bench.get(0) == 1; }));
    CHECK_FALSE(gate.wait_for(std::chrono::milliseconds(1)));
    gate.cancel();
    CHECK(gate.wait_for(std::chrono::seconds(20)));
    CHECK(gate.status() == Status::cancelled);
  }
}

TEST_CASE("what a single task cannot do says so") {
  Bench bench(on_cpu());
  Future<void> empty;
  check_says(error_of<UsageError>([&] { empty.wait(); }), {"Future is empty", "Runtime::submit()"});
  check_says(error_of<GraphError>([&] { bench.runtime.submit(Count{nullptr}); }), {"Count", "'word'", "null"});
  Future<std::uint64_t> before = bench.runtime.submit(Square{3});
  bench.runtime.shutdown();
  CHECK(before.get() == 9);
  check_says(error_of<UsageError>([&] { bench.runtime.submit(Square{3}); }), {"shut down"});
}

TEST_CASE("shutdown cancels single tasks that do not end") {
  Options options = on_cpu();
  options.shutdown_timeout = std::chrono::milliseconds(100);
  options.log_level = "off";
  Bench bench(options);
  Future<void> gate = bench.runtime.submit(Gate{bench.at(0), bench.at(1)});
  REQUIRE(eventually([&] { return bench.get(0) == 1; }));
  bench.runtime.shutdown();
  CHECK(gate.done());
  CHECK((gate.status() == Status::cancelled || gate.status() == Status::aborted));
}

TEST_CASE("a single task that exceeds the stall limit fails, and others go on") {
  Options options = on_cpu();
  options.stall_limit = std::chrono::milliseconds(100);
  options.log_level = "off";
  Bench bench(options);
  Future<void> gate = bench.runtime.submit(Gate{bench.at(0), bench.at(1)});
  check_says(error_of<RunError>([&] { gate.wait(); }), {"stall_limit", "single task", "Gate"});
  CHECK(bench.runtime.submit(Square{5}).get() == 25);
}
