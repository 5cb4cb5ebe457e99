// Counters and the pruning of waits.
#include "support/schedule_graphs.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("stages joined all to all have one counter each, and a task one wait") {
  constexpr std::uint32_t kStages = 6, kWidth = 8;
  const SchedulePlan plan = compile(stages(kStages, kWidth), kWidth);
  CHECK(plan.arrivals == std::vector<std::uint32_t>(kStages - 1, kWidth));
  for (std::uint32_t task = 0; task < kStages * kWidth; ++task) {
    const std::uint32_t stage = task / kWidth;
    CHECK(waits(plan, task) == (stage ? std::to_string(stage - 1) + "(8)" : ""));
    CHECK(plan.tasks[task].signal == (stage + 1 < kStages ? stage : kNoCounter));
    CHECK(plan.tasks[task].place == stage);
  }
  CHECK(plan.edges == (kStages - 1) * kWidth * kWidth);
  CHECK(plan.makespan_ns == kStages * 5000 + (kStages - 1) * 1500);
  CHECK(compile(stages(kStages, kWidth), 1).waits == 0);
}

TEST_CASE("a second task of a stage on one worker does not wait again") {
  const SchedulePlan plan = compile(stages(3, 8), 4);
  for (const auto& order : plan.order) {
    REQUIRE(order.size() == 6);
    for (std::uint32_t place = 0; place < 6; ++place)
      CHECK(plan.tasks[order[place]].waits.size() == (place == 2 || place == 4 ? 1 : 0));
  }
}

TEST_CASE("a wait that another wait implies is left out") {
  Graph graph;
  const Tasks t = add_placed(graph, {0, 1, 2});
  graph.edge(t[0], t[1]);
  graph.edge(t[1], t[2]);
  graph.edge(t[0], t[2]);
  const SchedulePlan plan = compile(graph, 3);
  CHECK(waits(plan, 1) == "0(1)");
  CHECK(waits(plan, 2) == "1(1)");
}

TEST_CASE("of two tasks in one worker's order only the later is waited for") {
  Graph graph;
  const Tasks t = add_placed(graph, {0, 0, 1, 2});
  graph.edge(t[0], t[2]);
  graph.edge(t[1], t[2]);
  graph.edge(t[1], t[3]);
  Compiled how;
  how.costs = {5000, 1000, 1000, 1000};  // 0 goes first
  const SchedulePlan plan = compile(graph, 3, how);
  CHECK(plan.order[0] == std::vector<std::uint32_t>{0, 1});
  CHECK(plan.tasks[0].signal == kNoCounter);
  CHECK(plan.arrivals == std::vector<std::uint32_t>{1});
  CHECK(waits(plan, 2) == "0(1)");
  CHECK(waits(plan, 3) == "0(1)");
}

TEST_CASE("what the task before has waited for is not waited for again") {
  Graph graph;
  const Tasks t = add_placed(graph, {0, 1, 1, 2});
  graph.edge(t[0], t[1]);
  graph.edge(t[1], t[2]);
  graph.edge(t[0], t[2]);
  graph.edge(t[2], t[3]);
  const SchedulePlan plan = compile(graph, 3);
  CHECK(waits(plan, 1) == "0(1)");
  CHECK(waits(plan, 2).empty());
  CHECK(waits(plan, 3) == "1(1)");
}

TEST_CASE("no counter gets more arrivals than 16 bits of failures can count") {
  constexpr std::uint32_t kMost = 65'535, kMore = 1000;
  Graph graph;
  const auto last = graph.add(Work{1000});
  graph.place(last, 2);
  for (std::uint32_t i = 0; i < kMost + kMore; ++i) {
    const auto task = graph.add(Work{1000});
    graph.place(task, i < kMost ? 0 : 1);
    graph.edge(task, last);
  }
  const SchedulePlan plan = compile(graph, 3);
  CHECK(plan.arrivals == std::vector<std::uint32_t>{kMost, kMore});
  CHECK(waits(plan, 0) == "0(65535) 1(1000)");
}
