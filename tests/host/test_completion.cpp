// What comes back from a run while it goes on: streamed values.
#include "host/submit/completion.hpp"

#include <set>

#include "host/futures/core.hpp"
#include "support/internals.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options small_ring() {
  Options options = on_cpu();
  options.stream_capacity = 4;
  return options;
}

Run emit(Bench& bench, std::uint32_t count, std::uint32_t passes) {
  Graph graph;
  graph.add(EmitRange{0, count});
  return bench.runtime.submit(bench.runtime.load(graph), repeat(passes));
}

}  // namespace

TEST_CASE("a stream far longer than its ring arrives complete and in order") {
  Bench bench(small_ring());
  Run run = emit(bench, 1000, 3);
  std::uint32_t next = 0;
  while (const auto value = run.next<std::uint32_t>()) REQUIRE(*value == next++);
  CHECK(next == 3000);
  CHECK_FALSE(run.next<std::uint32_t>());
  CHECK_FALSE(run.try_next<std::uint32_t>());
}

TEST_CASE("a reader that is slow, or comes after the end, misses nothing") {
  Bench bench(small_ring());
  Run slow = emit(bench, 40, 1), late = emit(bench, 500, 1);
  for (std::uint32_t i = 0; i < 40; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    CHECK(slow.next<std::uint32_t>() == i);
  }
  CHECK_FALSE(slow.next<std::uint32_t>());
  late.wait();
  for (std::uint32_t i = 0; i < 500; ++i) CHECK(late.try_next<std::uint32_t>() == i);
  CHECK_FALSE(late.try_next<std::uint32_t>());
}

TEST_CASE("values that the program has read take no memory") {
  Bench bench(on_cpu());
  Graph graph;
  graph.add(EmitRange{0, 1000});
  const auto record = std::make_shared<RunRecord>(bench.runtime.load(graph).loaded());
  const auto& core = record->graph->core;
  core->dispatcher.submit(record);
  Run run(core, record);
  for (std::uint32_t next = 0; next < 1000; ++next) REQUIRE(run.next<std::uint32_t>() == next);
  std::scoped_lock lock(record->mutex);
  CHECK(record->streamed.empty());
}

TEST_CASE("try_next() does not wait") {
  Bench bench(small_ring());
  Graph graph;
  const auto gate = graph.add(Gate{bench.at(0), bench.at(1)});
  graph.add(EmitRange{7, 1}, after(gate));
  Run run = bench.runtime.submit(bench.runtime.load(graph));
  CHECK_FALSE(run.try_next<std::uint32_t>());
  bench.put(1, 1);
  CHECK(run.next<std::uint32_t>() == 7u);
}

TEST_CASE("tasks that stream at once share one stream; each keeps its own order") {
  Bench bench(small_ring());
  Graph graph;
  for (std::uint32_t t = 0; t < 6; ++t) graph.add(EmitRange{t * 1000, 200});
  Run run = bench.runtime.submit(bench.runtime.load(graph));
  std::uint32_t next[6] = {};
  while (const auto value = run.next<std::uint32_t>()) REQUIRE(*value % 1000 == next[*value / 1000]++);
  for (const std::uint32_t count : next) CHECK(count == 200);
}

TEST_CASE(
    "a slot's next run begins with a fresh stream, even after values nobody read, failures and "
    "cancellation") {
  Options options = small_ring();
  options.max_runs = 1;
  Bench bench(options);
  for (std::uint32_t round = 0; round < 20; ++round) {
    emit(bench, 30, 1);  // nobody reads it
    Graph graph;
    graph.add(EmitRange{5, 3}, after(graph.add(EmitRange{0, 5})));
    graph.add(Fail{1, 0});
    Run failing = bench.runtime.submit(bench.runtime.load(graph));
    std::uint32_t count = 0;
    while (failing.next<std::uint32_t>()) ++count;
    CHECK(count == 8);
    Run cancelled = emit(bench, 10, 1'000'000);
    CHECK(cancelled.next<std::uint32_t>() == 0u);
    cancelled.cancel();
    std::uint32_t next = 1;
    while (const auto value = cancelled.next<std::uint32_t>()) REQUIRE(*value == next++);
    CHECK(cancelled.status() == Status::cancelled);
  }
}

TEST_CASE("two threads may read one stream: each value goes to one of them") {
  Bench bench(small_ring());
  Run run = emit(bench, 2000, 1);
  std::vector<std::uint32_t> got[2];
  const auto read = [&](int t, Run mine) {
    while (const auto value = mine.next<std::uint32_t>()) got[t].push_back(*value);
  };
  std::thread other(read, 1, run);
  read(0, run);
  other.join();
  std::set<std::uint32_t> all(got[0].begin(), got[0].end());
  all.insert(got[1].begin(), got[1].end());
  CHECK(all.size() == 2000);
  CHECK(got[0].size() + got[1].size() == 2000);
  for (const auto& part : got) CHECK(std::is_sorted(part.begin(), part.end()));
}

TEST_CASE("the host keeps so many unread values of a run, and its task waits for the program to read them") {
  Options options = small_ring();
  options.stream_unread = 10;
  options.spin_budget = std::chrono::milliseconds(100);
  Bench bench(options);
  Run unread = emit(bench, 100, 1), fits = emit(bench, 14, 1), read = emit(bench, 100, 1);
  for (std::uint32_t i = 0; i < 100; ++i) CHECK(read.next<std::uint32_t>() == i);
  CHECK(read.status() == Status::ok);
  CHECK(fits.status() == Status::ok);  // 10 on the host, and 4 in the ring
  for (std::uint32_t i = 0; i < 14; ++i) CHECK(fits.try_next<std::uint32_t>() == i);
  CHECK(unread.status() == Status::stream_stalled);
  check_says(error_of<RunError>([&] { unread.wait(); }), {"Options::stream_unread", "nobody read"});
}
