// New work on the GPU without a graph: single tasks from several threads, batches of all sizes, beside graphs.
#include <random>
#include <thread>

#include "catch.hpp"
#include "support/seed.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

std::size_t wrong_of(Batch<std::uint64_t>& batch, std::uint32_t first) {
  std::size_t wrong = 0;
  batch.for_each([&](std::size_t i, std::uint64_t value) { wrong += value != (first + i) * (first + i); });
  return wrong;
}

/// Keeps 16 single tasks in flight. The number of wrong results.
std::size_t submit_singly(Runtime& runtime, std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::vector<std::pair<Future<std::uint64_t>, std::uint64_t>> open(16);
  std::size_t wrong = 0;
  for (int i = 0; i < count + 16; ++i) {
    auto& [future, x] = open[i % 16];
    if (i >= 16) wrong += future.get() != x * x;
    if (i >= count) continue;
    x = random() % 1'000'000;
    future = runtime.submit(Square{static_cast<std::uint32_t>(x)}, static_cast<Priority>(random() % 3));
  }
  return wrong;
}

}  // namespace

TEST_CASE("single tasks from several threads give their results") {
  FLYWHEEL_TEST_SEED(seed);
  Bench bench(on_gpu());
  std::vector<std::size_t> wrong(6);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] { wrong[t] = submit_singly(bench.runtime, seed + t, 50'000); });
  for (std::thread& thread : threads) thread.join();
  for (const std::size_t of_thread : wrong) CHECK(of_thread == 0);
}

TEST_CASE("batches of all sizes give every result at its place") {
  FLYWHEEL_TEST_SEED(seed);
  std::mt19937_64 random(seed);
  Bench bench(on_gpu());
  for (const std::size_t count : {1, 2, 263, 264, 265, 511, 512, 513, 1000, 1025, 200'000}) {
    const auto first = static_cast<std::uint32_t>(random() % 1000);
    Batch<std::uint64_t> batch = bench.runtime.submit(squares_from(first, count));
    CAPTURE(count);
    CHECK(wrong_of(batch, first) == 0);
  }
  Batch<void> counts = bench.runtime.submit(std::vector<Count>(100'000, Count{bench.at(0)}));
  counts.wait();
  CHECK(bench.get(0) == 100'000);
}

TEST_CASE("batches, single tasks and graphs together, from several threads") {
  FLYWHEEL_TEST_SEED(seed);
  Bench bench(on_gpu());
  std::vector<std::size_t> wrong(6);
  const auto batches = [&](std::size_t self) {
    std::mt19937_64 random(seed + self);
    for (int i = 0; i < 300; ++i) {
      const auto first = static_cast<std::uint32_t>(random() % 1000);
      Batch<std::uint64_t> batch =
          bench.runtime.submit(squares_from(first, random() % 3000), static_cast<Priority>(random() % 3));
      wrong[self] += wrong_of(batch, first);
    }
  };
  const auto graphs = [&](std::size_t self) {
    Graph graph;
    const auto param = graph.param<std::uint64_t>(5);
    const auto read = graph.add(Read{param}, after(graph.add(Square{3})));
    const Executable executable = bench.runtime.load(graph);
    for (std::uint64_t i = 0; i < 5000; ++i) wrong[self] += bench.runtime.submit(executable, set(param, i)).get(read) != i;
  };
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      if (t < 2) batches(t);
      else if (t < 4) graphs(t);
      else wrong[t] = submit_singly(bench.runtime, seed + t, 20'000);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::size_t of_thread : wrong) CHECK(of_thread == 0);
}

TEST_CASE("failures and cancels of new work on the GPU end it, and nothing is left") {
  Bench bench(on_gpu());
  std::vector<Fail> tasks(1300, Fail{0, ~0u});
  tasks[1111] = {9, 0};
  Batch<void> failing = bench.runtime.submit(tasks);
  check_says(error_of<RunError>([&] { failing.wait(); }), {"task 1111", "Fail", "9"});
  for (int round = 0; round < 5; ++round) {
    bench.put(0, 0);
    Batch<void> gates = bench.runtime.submit(std::vector<Gate>(20'000, Gate{bench.at(0), bench.at(1)}));
    REQUIRE(eventually([&] { return bench.get(0) > 0; }));
    Future<void> gate = bench.runtime.submit(Gate{bench.at(2), bench.at(3)});
    gates.cancel();
    gate.cancel();
    CHECK(gates.wait_for(std::chrono::seconds(20)));
    CHECK(gates.status() == Status::cancelled);
    CHECK(gate.status() == Status::cancelled);
  }
  Batch<std::uint64_t> after = bench.runtime.submit(squares_from(0, 50'000));
  CHECK(wrong_of(after, 0) == 0);
}
