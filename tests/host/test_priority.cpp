// Priorities: urgent work overtakes what waits, and never what runs.
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// The numbers that Log tasks wrote, in the order in which they ran.
std::vector<std::uint32_t> log_of(Bench& bench, std::size_t cursor, std::size_t log) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < bench.get(cursor); ++i) order.push_back(bench.get(log + i));
  return order;
}

Executable logs(Bench& bench, std::uint32_t count, std::uint32_t number, Priority priority = Priority::inherit) {
  Graph graph;
  for (std::uint32_t i = 0; i < count; ++i) graph.add(Log{bench.at(2), bench.at(3), number}, priority);
  return bench.runtime.load(graph);
}

}  // namespace

TEST_CASE("on one worker an urgent run overtakes a backlog") {
  Bench bench(on_cpu(1), 256);
  Executable held;
  Run gate = bench.hold(0, held);
  std::vector<Run> runs;
  for (const Priority priority : {Priority::low, Priority::normal, Priority::high})
    runs.push_back(bench.runtime.submit(logs(bench, 40, static_cast<std::uint32_t>(priority)), priority));
  REQUIRE(eventually([&] { return bench.runtime.stats().submitted == 4; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // all are queued behind the gate
  bench.put(1, 1);
  for (Run& run : runs) run.wait();
  const std::vector<std::uint32_t> order = log_of(bench, 2, 3);
  REQUIRE(order.size() == 120);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("a task's own priority counts, and inherit means the run's") {
  Bench bench(on_cpu(1), 256);
  Executable held;
  Run gate = bench.hold(0, held);
  Graph graph;
  const auto root = graph.add(Square{1});
  for (int i = 0; i < 10; ++i)
    for (const Priority priority : {Priority::low, Priority::high, Priority::inherit})
      graph.add(Log{bench.at(2), bench.at(3), priority == Priority::inherit ? 1 : static_cast<std::uint32_t>(priority)},
                after(root), priority);
  Run run = bench.runtime.submit(bench.runtime.load(graph), Priority::normal);
  bench.put(1, 1);
  run.wait();
  std::vector<std::uint32_t> order = log_of(bench, 2, 3);
  REQUIRE(order.size() == 30);
  order.erase(order.begin());  // the successor that the worker kept was ready before any other was queued
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("so it does for tasks that wait for nothing") {
  Bench bench(on_cpu(1), 256);
  Executable held;
  Run gate = bench.hold(0, held);
  Graph graph;
  for (int i = 0; i < 10; ++i)
    for (const Priority priority : {Priority::low, Priority::inherit, Priority::high})
      graph.add(Log{bench.at(2), bench.at(3), priority == Priority::inherit ? 1 : static_cast<std::uint32_t>(priority)},
                priority);
  Run run = bench.runtime.submit(bench.runtime.load(graph), Priority::normal);
  REQUIRE(eventually([&] { return bench.runtime.stats().submitted == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // all are queued behind the gate
  bench.put(1, 1);
  run.wait();
  const std::vector<std::uint32_t> order = log_of(bench, 2, 3);
  REQUIRE(order.size() == 30);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("the priority inherit for a run means normal") {
  Bench bench(on_cpu(1), 64);
  bench.runtime.submit(logs(bench, 3, 1), Priority::inherit).wait();
  CHECK(bench.get(2) == 3);
}
