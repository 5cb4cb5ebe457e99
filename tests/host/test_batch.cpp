// Batches: every task runs once with its own arguments, results come back at their places, and failures name the task.
#include "host/futures/batch.hpp"
#include "support/internals.hpp"

#include <numeric>
#include <random>

#include "support/seed.hpp"
#include "support/small_runtime.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
/// Not in the runtime's list.
struct Stranger {
  int x;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block&) const {
    return x;
  }
};

/// The number of results that are wrong.
std::size_t wrong_of(Batch<std::uint64_t>& batch, std::uint32_t first) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::uint64_t x = first + i;
    wrong += batch.get(i) != x * x;
  }
  return wrong;
}
}  // namespace

TEST_CASE("batches of all sizes give every task's result at its place") {
  FLYWHEEL_TEST_SEED(seed);
  std::mt19937_64 random(seed);
  Bench bench(on_cpu());
  for (const std::size_t count : {0, 1, 2, 511, 512, 513, 1000, 1024, 1025, 40000}) {
    const std::uint32_t first = random() % 1000;
    Batch<std::uint64_t> batch = bench.runtime.submit(squares_from(first, count));
    CAPTURE(count);
    CHECK(batch.size() == count);
    CHECK(wrong_of(batch, first) == 0);
    CHECK(batch.done());
    CHECK(batch.status() == Status::ok);
  }
}

TEST_CASE("a batch of tasks without results runs each once") {
  Bench bench(on_cpu());
  const std::vector<Count> tasks(3000, Count{bench.at(0)});
  Batch<void> batch = bench.runtime.submit(tasks, Priority::high);
  batch.wait();
  CHECK(bench.get(0) == 3000);
}

TEST_CASE("results are streamed as parts end, each once") {
  Bench bench(on_cpu());
  Batch<std::uint64_t> batch = bench.runtime.submit(squares_from(3, 5000));
  std::vector<int> seen(5000);
  std::size_t wrong = 0;
  batch.for_each([&](std::size_t i, std::uint64_t value) {
    ++seen[i];
    wrong += value != (3 + i) * (3 + i);
  });
  CHECK(wrong == 0);
  CHECK(std::ranges::count(seen, 1) == 5000);
}

TEST_CASE("more batches than blocks, from several threads, and none of them collected meanwhile") {
  Bench bench(on_cpu());
  run_together(3, [&](std::uint32_t self) {
    std::vector<Batch<std::uint64_t>> all;
    for (std::uint32_t b = 0; b < 60; ++b) all.push_back(bench.runtime.submit(squares_from(self * 100 + b, 700)));
    std::size_t wrong = 0;
    for (std::uint32_t b = 0; b < 60; ++b) wrong += wrong_of(all[b], self * 100 + b);
    CHECK(wrong == 0);
  });
}

TEST_CASE("a mixed batch keeps each task's type, arguments and result") {
  FLYWHEEL_TEST_SEED(seed);
  std::mt19937_64 random(seed);
  Bench bench(on_cpu());
  bench.put(1, 4711);
  BatchBuilder tasks;
  std::vector<std::pair<BatchRef<std::uint64_t>, std::uint32_t>> squares;
  std::vector<BatchRef<std::uint32_t>> loads;
  std::uint32_t counts = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::uint32_t kind = random() % 3;
    if (kind == 0) squares.push_back({tasks.add(Square{static_cast<std::uint32_t>(random() % 5000)}), 0});
    else if (kind == 1) loads.push_back(tasks.add(Load{bench.at(1)}));
    else tasks.add(Count{bench.at(0)}), ++counts;
  }
  std::mt19937_64 again(seed);
  std::size_t s = 0;
  for (int i = 0; i < 3000; ++i)
    if (again() % 3 == 0) squares[s++].second = again() % 5000;
  for (std::uint32_t turn = 1; turn <= 2; ++turn) {
    MixedBatch batch = bench.runtime.submit_batch(tasks);
    std::size_t wrong = 0;
    for (const auto& [ref, x] : squares) wrong += batch.get(ref) != std::uint64_t{x} * x;
    for (const auto& ref : loads) wrong += batch.get(ref) != 4711;
    CHECK(wrong == 0);
    batch.wait();
    CHECK(bench.get(0) == turn * counts);
  }
}

TEST_CASE("a task of a batch that fails is named, and so is its status") {
  Bench bench(on_cpu());
  std::vector<Fail> tasks(1300, Fail{0, ~0u});
  tasks[1111] = {9, 0};
  Batch<void> batch = bench.runtime.submit(tasks);
  check_says(error_of<RunError>([&] { batch.wait(); }), {"task 1111", "Fail", "9"});
  CHECK(batch.status() == Status::task_failed);

  BatchBuilder mixed;
  mixed.add(Square{1});
  mixed.add(Fail{3, 0});
  MixedBatch few = bench.runtime.submit_batch(mixed);
  check_says(error_of<RunError>([&] { few.wait(); }), {"task 1", "Fail", "3"});
}

TEST_CASE("what a batch cannot do says so") {
  Bench bench(on_cpu());
  check_says(error_of<GraphError>([&] { bench.runtime.submit(std::vector<Stranger>(2)); }), {"Stranger", "flywheel::start"});
  check_says(error_of<GraphError>([&] { bench.runtime.submit(std::vector<Count>(2)); }), {"task 0", "Count", "'word'", "null"});
  BatchBuilder bad;
  bad.add(Square{1});
  bad.add(Count{nullptr});
  check_says(error_of<GraphError>([&] { bench.runtime.submit_batch(bad); }), {"task 1", "Count", "'word'"});
  Batch<std::uint64_t> batch = bench.runtime.submit(squares_from(0, 5));
  check_says(error_of<UsageError>([&] { batch.get(5); }), {"5 tasks", "no task 5"});
  bench.runtime.shutdown();
  CHECK(batch.get(4) == 16);
  check_says(error_of<UsageError>([&] { bench.runtime.submit(squares_from(0, 5)); }), {"shut down"});
}

TEST_CASE("a cancelled batch ends, and its blocks come back") {
  Bench bench(on_cpu());
  for (int round = 0; round < 3; ++round) {
    bench.put(1, 0);
    const std::vector<Gate> gates(20000, Gate{bench.at(0), bench.at(1)});
    Batch<void> batch = bench.runtime.submit(gates);
    REQUIRE(eventually([&] { return bench.get(0) > 0; }));
    CHECK_FALSE(batch.wait_for(std::chrono::milliseconds(1)));
    CHECK_FALSE(batch.wait_for(std::chrono::nanoseconds::min()));
    batch.cancel();
    CHECK(batch.wait_for(std::chrono::seconds(20)));
    CHECK(batch.status() == Status::cancelled);
  }
  Batch<std::uint64_t> after = bench.runtime.submit(squares_from(0, 40000));
  CHECK(wrong_of(after, 0) == 0);
}
