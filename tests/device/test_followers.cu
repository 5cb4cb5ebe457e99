// Runs that follow runs on the GPU: chains, all kinds, failures, and random graphs of them beside a kernel that comes and goes.
#include <thread>

#include "catch.hpp"
#include "support/random_followers.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("a chain of 1000 runs keeps its order, with few and many slots") {
  for (const std::uint32_t slots : {1, 2, 3, 256, 1100}) {
    Options options = on_gpu();
    options.max_runs = slots;
    options.overlap = 1100;
    Bench bench(options, 1100);
    std::vector<Executable> loggers;
    for (std::uint32_t i = 0; i < 10; ++i) {
      Graph graph;
      graph.add(Log{bench.at(1), bench.at(2), i});
      loggers.push_back(bench.runtime.load(graph));
    }
    Run last = bench.runtime.submit(loggers[0]);
    for (std::uint32_t i = 1; i < 1000; ++i) last = bench.runtime.submit(loggers[i % 10], after(last));
    last.wait();
    const std::vector<std::uint32_t> words = bench.words.read();
    CHECK(words[1] == 1000);
    for (std::uint32_t i = 0; i < 1000; ++i) CHECK(words[2 + i] == i % 10);
  }
}

TEST_CASE("followers of all kinds start when those before have ended, also while the kernel yields") {
  Bench bench(on_gpu());
  std::vector<Executable> all;
  for (int kind = 0; kind < 3; ++kind) {
    Graph graph;
    graph.add(Count{bench.at(2)});
    if (kind == 1) graph.phase();
    all.push_back(kind == 2 ? bench.runtime.load(graph, compiled) : bench.runtime.load(graph));
  }
  Executable held;
  for (std::uint32_t round = 0; round < 20; ++round) {
    bench.put(1, 0);
    Run last = bench.hold(0, held);
    for (std::uint32_t i = 0; i < 9; ++i) last = bench.runtime.submit(all[(i / 3 + i) % 3], after(last));
    CHECK_FALSE(last.done());
    CHECK(bench.get(2) == round * 9);
    bench.put(1, 1);
    bench.runtime.yield();
    last.wait();
    CHECK(bench.get(2) == (round + 1) * 9);
  }
}

TEST_CASE("a failure passes down a chain on the device") {
  Bench bench(on_gpu());
  Executable held;
  Run gate = bench.hold(0, held);
  Graph graph;
  graph.add(Fail{9, 0});
  std::vector<Run> chain{bench.runtime.submit(bench.runtime.load(graph), after(gate))};
  const Executable count = bench.counter(2);
  for (int i = 0; i < 100; ++i) chain.push_back(bench.runtime.submit(count, after(chain.back())));
  bench.put(1, 1);
  CHECK(chain.back().status() == Status::predecessor_failed);
  check_says(error_of<RunError>([&] { chain.back().wait(); }), {"own code, 9"});
  for (std::size_t i = 1; i < chain.size(); ++i) CHECK(chain[i].status() == Status::predecessor_failed);
  CHECK(bench.get(2) == 0);
}

TEST_CASE("single tasks follow runs, batches and single tasks") {
  Bench bench(on_gpu());
  Executable held;
  Run gate = bench.hold(0, held);
  Run first = bench.runtime.submit(bench.counter(2), after(gate));
  Batch<void> counts = bench.runtime.submit(std::vector<Count>(1999, Count{bench.at(2)}), after(first));
  std::vector<Future<std::uint32_t>> chain{bench.runtime.submit(Load{bench.at(2)}, after(counts))};
  for (int i = 0; i < 300; ++i) chain.push_back(bench.runtime.submit(Load{bench.at(2)}, after(chain.back())));
  Future<void> fails = bench.runtime.submit(Fail{3, 0}, after(chain.back()));
  Future<void> behind = bench.runtime.submit(Count{bench.at(2)}, after(fails));
  CHECK_FALSE(chain[0].done());
  bench.put(1, 1);
  for (Future<std::uint32_t>& one : chain) CHECK(one.get() == 2000);
  CHECK(fails.status() == Status::task_failed);
  CHECK(behind.status() == Status::predecessor_failed);
  CHECK(bench.get(2) == 2000);
}

TEST_CASE("random graphs of followers do what a plain loop does") {
  for (int round = 0; round < 20; ++round) {
    FLYWHEEL_TEST_SEED(seed);
    Random random(seed);
    Options options = on_gpu();
    options.max_runs = pick(random, 0, 1) ? pick(random, 1, 8) : 256;
    options.overlap = pick(random, 1, 16);
    Runtime runtime = start<FollowerStep, FollowerBeside>(options);
    RandomFollowers graph(runtime, random(), 2'000);
    graph(pick(random, 1, 4), pick(random, 0, 1));
  }
}
