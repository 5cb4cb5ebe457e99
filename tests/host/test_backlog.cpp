#include "host/submit/backlog.hpp"
#include "support/internals.hpp"

#include <atomic>
#include <set>

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// One run at a time, four in the backlog.
Options short_backlog() {
  Options options = on_cpu();
  options.overlap = 1;
  options.max_waiting = 4;
  return options;
}

/// Of each priority two runs of one executable, two of another and two that need all workers, the low ones first.
std::vector<Backlog::RunPtr> fill(Backlog& backlog) {
  auto one = std::make_shared<LoadedGraph>(nullptr), two = std::make_shared<LoadedGraph>(nullptr);
  auto phased = std::make_shared<LoadedGraph>(nullptr);
  one->kind = two->kind = GraphKind::dynamic;
  phased->kind = GraphKind::phased;
  std::vector<Backlog::RunPtr> runs;
  for (std::uint32_t priority = kPriorities; priority-- > 0;)
    for (const auto& graph : {one, two, phased, one, two, phased}) {
      runs.push_back(std::make_shared<RunRecord>(graph));
      runs.back()->priority = priority;
      backlog.enqueue(runs.back());
    }
  CHECK(backlog.drain());
  CHECK_FALSE(backlog.drain());
  return runs;
}

}  // namespace

TEST_CASE("try_submit() declines when the backlog is full, and accepts again when there is room") {
  Bench bench(short_backlog());
  Executable held;
  std::vector<Run> runs{bench.hold(0, held)};
  for (int i = 0; i < 4; ++i) {
    auto run = bench.runtime.try_submit(held);
    REQUIRE(run);
    runs.push_back(*run);
  }
  CHECK_FALSE(bench.runtime.try_submit(held));
  CHECK_FALSE(bench.runtime.try_submit(bench.counter(2)));
  bench.put(1, 1);
  for (Run& run : runs) run.wait();
  CHECK(bench.get(0) == 5);
  CHECK(bench.runtime.try_submit(held));
}

TEST_CASE("submit() waits while the backlog is full") {
  Bench bench(short_backlog());
  Executable held;
  Run first = bench.hold(0, held);
  for (int i = 0; i < 4; ++i) bench.runtime.submit(held);
  std::atomic<bool> through{false};
  std::thread submitter([&] {
    bench.runtime.submit(held);
    through = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK_FALSE(through);
  bench.put(1, 1);
  submitter.join();
  CHECK(eventually([&] { return bench.get(0) == 6; }));
}

TEST_CASE("a run that cannot go yet does not hold up those behind it") {
  Bench bench(short_backlog());
  Executable held;
  Run first = bench.hold(0, held), second = bench.runtime.submit(held);
  Run other = bench.runtime.submit(bench.counter(2));
  CHECK(other.wait_for(std::chrono::seconds(20)));
  CHECK_FALSE(second.done());
  bench.put(1, 1);
  second.wait();
}

TEST_CASE("collective runs that wait for each other hold up no others, and go in the order of their submission") {
  Bench bench(on_cpu());
  Graph standing, phased;
  standing.add(Gate{bench.at(0), bench.at(1)});
  std::vector<Executable> logs;
  for (std::uint32_t i = 0; i < 3; ++i) {
    Graph graph;
    graph.add(Log{bench.at(3), bench.at(4), i});
    if (i == 2) graph.phase();
    logs.push_back(i == 2 ? bench.runtime.load(graph) : bench.runtime.load(graph, compiled));
  }
  Run held = bench.runtime.submit(bench.runtime.load(standing, compiled));
  std::vector<Run> runs;
  for (std::size_t i = 0; i < 48; ++i) runs.push_back(bench.runtime.submit(logs[i % 3]));
  Run other = bench.runtime.submit(bench.counter(2)), last = bench.runtime.submit(logs[0]);
  CHECK(other.wait_for(std::chrono::seconds(20)));
  last.cancel();
  CHECK(last.status() == Status::cancelled);
  CHECK(bench.get(3) == 0);
  bench.put(1, 1);
  for (Run& run : runs) run.wait();
  REQUIRE(bench.get(3) == 48);
  for (std::size_t i = 0; i < 48; ++i) CHECK(bench.get(4 + i) == i % 3);
}

TEST_CASE("a queue that holds only one graph's tasks lets the second in when the first is done") {
  Options options = on_cpu();
  options.queue_capacity = 64;
  options.spawn_capacity = 16;
  Bench bench(options, 128);
  std::vector<Executable> all;
  for (std::size_t i = 0; i < 4; ++i) {
    Graph graph;
    for (int k = 0; k < 40; ++k) graph.add(Count{bench.at(i)});
    all.push_back(bench.runtime.load(graph));
  }
  std::vector<Run> runs;
  for (int i = 0; i < 100; ++i) runs.push_back(bench.runtime.submit(all[i % 4]));
  for (Run& run : runs) run.wait();
  for (std::size_t i = 0; i < 4; ++i) CHECK(bench.get(i) == 1000);
  CHECK(bench.runtime.stats().peak_live == 1);
}

TEST_CASE("the backlog keeps what it is given, in order, from many threads") {
  Backlog backlog;
  auto graph = std::make_shared<LoadedGraph>(nullptr);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 500; ++i) {
        auto run = std::make_shared<RunRecord>(graph);
        run->repeat = t * 1000 + i;
        backlog.enqueue(std::move(run));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(backlog.size() == 1500);
  CHECK_FALSE(backlog.no_arrivals());
  backlog.drain();
  CHECK(backlog.no_arrivals());
  const std::vector<Backlog::RunPtr> all = backlog.take_all();
  REQUIRE(all.size() == 1500);
  std::uint32_t next[3] = {0, 0, 0};
  for (const auto& run : all) CHECK(run->repeat % 1000 == next[run->repeat / 1000]++);
}

TEST_CASE("each run in the backlog, in whichever run queue, leaves it once, alone or with all others by priority") {
  for (const bool one_by_one : {true, false}) {
    Backlog backlog;
    const std::vector<Backlog::RunPtr> runs = fill(backlog);
    if (one_by_one) {
      for (const auto& run : runs) CHECK(backlog.remove(run));
      for (const auto& run : runs) CHECK_FALSE(backlog.remove(run));
    } else {
      std::vector<Backlog::RunPtr> by_priority(runs.begin() + 12, runs.end());
      by_priority.insert(by_priority.end(), runs.begin() + 6, runs.begin() + 12);
      by_priority.insert(by_priority.end(), runs.begin(), runs.begin() + 6);
      CHECK(backlog.take_all() == by_priority);
    }
    CHECK(backlog.size() == 0);
    CHECK(backlog.take_all().empty());
  }
}

TEST_CASE("the heads of a priority are its queues by their first runs, and a queue that cannot go is passed") {
  Backlog backlog;
  const std::vector<Backlog::RunPtr> runs = fill(backlog);
  Backlog::Heads heads(backlog.queues(0));
  Backlog::RunQueue* one = heads.take();
  REQUIRE(one);
  CHECK(one->front() == runs[12]);
  std::vector<Backlog::RunPtr> others;
  while (Backlog::RunQueue* queue = heads.take()) {
    others.push_back(queue->front());
    queue->pop_front();
    heads.give_back(*queue);
  }
  CHECK(others == std::vector<Backlog::RunPtr>{runs[13], runs[14], runs[16], runs[17]});
  backlog.forget_empty_queues();
  CHECK(backlog.queues(0).size() == 1);
}
