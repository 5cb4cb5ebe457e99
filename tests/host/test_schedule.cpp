#include "host/plan/schedule.hpp"
#include "support/internals.hpp"

#include <chrono>
#include <limits>

#include "support/schedule_graphs.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

#ifdef __SANITIZE_THREAD__
constexpr std::uint32_t kRandomGraphs = 60, kManyStages = 12;
#else
constexpr std::uint32_t kRandomGraphs = 200, kManyStages = 82;
#endif

std::string plan_refusal(const Graph& graph, std::uint32_t workers, const Compiled& how = compiled) {
  return error_of<GraphError>([&] { make_schedule(graph, workers, how); });
}

Graph chain(std::uint32_t length) {
  Graph graph;
  const Tasks tasks = add_works(graph, std::vector<double>(length, 2000));
  for (std::uint32_t i = 1; i < length; ++i) graph.edge(tasks[i - 1], tasks[i]);
  return graph;
}

/// 0 before 1 and 2, both before 3; one edge twice.
Graph diamond() {
  Graph graph;
  const Tasks t = add_works(graph, {1000, 10'000, 10'000, 1000});
  graph.edge(t[0], t[1]);
  graph.edge(t[0], t[2]);
  graph.edge(t[1], t[3]);
  graph.edge(t[2], t[3]);
  graph.edge(t[2], t[3]);
  return graph;
}

/// Every task begins once the one before it on its worker has ended and all results are there, and lasts its cost.
void check_times(const SchedulePlan& plan, const Graph& graph, double hop_ns) {
  for (const auto& order : plan.order) {
    double begin = 0;
    for (const std::uint32_t task : order) {
      const TaskPlan& own = plan.tasks[task];
      for (const std::uint32_t before : graph.nodes()[task].predecessors) {
        const TaskPlan& other = plan.tasks[before];
        begin = std::max(begin, other.end_ns + (other.worker == own.worker ? 0 : hop_ns));
      }
      REQUIRE(own.begin_ns == begin);
      const double cost = graph.nodes()[task].cost_ns;
      REQUIRE(own.end_ns == begin + (cost == 0 ? 2000 : cost));
      begin = own.end_ns;
    }
  }
}

}  // namespace

TEST_CASE("a chain stays on one worker and waits for nothing") {
  const SchedulePlan plan = compile(chain(9), 4);
  CHECK(plan.order[0] == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(plan.waits == 0);
  CHECK(plan.arrivals.empty());
  CHECK(plan.edges == 8);
  CHECK(plan.makespan_ns == 18'000);
  CHECK(plan.critical_ns == 18'000);
  CHECK(plan.sinks == 1);
}

TEST_CASE("a diamond takes two workers when its sides are longer than a hop") {
  const SchedulePlan plan = compile(diamond(), 3);
  CHECK(plan.order == std::vector<std::vector<std::uint32_t>>{{0, 1}, {2, 3}, {}});
  CHECK(plan.arrivals == std::vector<std::uint32_t>{1, 2});
  CHECK(plan.tasks[0].signal == 0);
  CHECK(plan.tasks[1].signal == 1);
  CHECK(plan.tasks[2].signal == 1);
  CHECK(plan.tasks[3].signal == kNoCounter);
  CHECK(waits(plan, 1).empty());
  CHECK(waits(plan, 2) == "0(1)");
  CHECK(waits(plan, 3) == "1(2)");
  CHECK(plan.tasks[2].begin_ns == 2500);
  CHECK(plan.makespan_ns == 13'500);
  CHECK(plan.critical_ns == 12'000);
  CHECK(plan.edges == 4);
  CHECK(plan.waits == 2);
  CHECK(plan.leader == 1);
  Compiled far;
  far.hop_ns = 20'000;
  CHECK(compile(diamond(), 3, far).order[0].size() == 4);
}

TEST_CASE("tasks stand where Graph::place() wants them, and waits follow") {
  Graph graph = chain(6);
  for (std::uint32_t i = 0; i < 6; ++i) graph.place(TaskRef<void>{i, kNoResult, graph.id()}, i % 3);
  const SchedulePlan plan = compile(graph, 5);
  for (std::uint32_t i = 0; i < 6; ++i) CHECK(plan.tasks[i].worker == i % 3);
  CHECK(plan.waits == 5);
  CHECK(plan.makespan_ns == 6 * 2000 + 5 * 1500);
  CHECK(plan.critical_ns == 6 * 2000);
}

TEST_CASE("costs steer placement: Compiled::costs before cost_ns(), 2000 where nothing is known") {
  Graph graph;
  add_works(graph, {0, 250, 0.25});
  const SchedulePlan own = compile(graph, 1);
  CHECK(own.makespan_ns == 2000 + 250 + 1);
  Compiled how;
  how.costs = {0.5, 70, 30};
  CHECK(compile(graph, 1, how).makespan_ns == 1 + 70 + 30);
  CHECK(compile(graph, 2, how).makespan_ns == 70);
  how.costs = {0, 0, 30};  // as of a trace that saw only the last
  CHECK(compile(graph, 1, how).makespan_ns == 2000 + 250 + 30);
}

TEST_CASE("one long task and many short ones are balanced") {
  Graph graph;
  std::vector<double> costs(300, 1000);
  costs[150] = 60'000;
  add_works(graph, costs);
  for (const std::uint32_t workers : {2u, 3u, 5u, 8u}) {
    const double least = std::max(60'000.0, 359'000.0 / workers);
    CHECK(compile(graph, workers).makespan_ns <= 1.1 * least);
  }
  CHECK(compile(graph, 8).order[0] == std::vector<std::uint32_t>{150});
}

TEST_CASE("of workers on which a task begins at the same time the least loaded is taken") {
  Graph graph;
  const Tasks t = add_works(graph, {10'000, 10'000, 5000, 1000, 1000});
  for (std::uint32_t i = 0; i < 3; ++i) graph.place(t[i], i);
  graph.edge(t[0], t[3]);
  graph.edge(t[1], t[3]);  // a hop from one side or the other: 11'500 everywhere
  graph.edge(t[3], t[4]);
  CHECK(compile(graph, 3).order[2] == std::vector<std::uint32_t>{2, 3, 4});
  CHECK(compile(graph, 5).order[3] == std::vector<std::uint32_t>{3, 4});
}

TEST_CASE("sinks are counted, and the last to end speaks") {
  Graph graph;
  const Tasks t = add_placed(graph, {0, 1, 2, 3});
  graph.edge(t[0], t[2]);
  const SchedulePlan plan = compile(graph, 5);  // 2 ends at 3500, 1 and 3 at 1000
  CHECK(plan.sinks == 3);
  CHECK(plan.leader == 2);
  CHECK(plan.order[4].empty());
}

TEST_CASE("what cannot be compiled is refused with words") {
  check_says(plan_refusal(Graph(), 2), {"no tasks", "add() some"});
  Graph cycle = chain(3);
  cycle.edge(TaskRef<void>{2, 0, cycle.id()}, TaskRef<void>{1, 0, cycle.id()});
  check_says(plan_refusal(cycle, 2), {"cycle: ", "1 (flywheel::testing::Work)", " -> ", "Remove one of these"});
  CHECK(plan_refusal(cycle, 2).find("0 (flywheel") == std::string::npos);
  Graph phased;
  phased.add(Work{1});
  phased.phase();
  phased.add(Work{1});
  check_says(plan_refusal(phased, 2),
             {"a phased graph cannot be compiled", "leave out phase(), or load it without `compiled`"});
  Graph placed;
  add_placed(placed, {0, 4});
  check_says(plan_refusal(placed, 4),
             {"task 1 (flywheel::testing::Work)", "on worker 4", "there are 4", "Graph::place()", "Options::workers"});
  CHECK(plan_refusal(placed, 5).empty());
  check_says(plan_refusal(chain(1), 0), {"no worker", "Options::workers"});
}

TEST_CASE("costs that are no costs are refused with words") {
  Compiled how;
  how.costs = {1, 2};
  check_says(plan_refusal(chain(3), 2, how), {"Compiled::costs", "2 entries", "3 tasks"});
  for (const double wrong : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    how.costs = {1, wrong, 1};
    check_says(plan_refusal(chain(3), 2, how), {"task 1 (", std::to_string(wrong) + " ns", "Compiled::costs"});
    Graph graph;
    graph.add(Work{wrong});
    check_says(plan_refusal(graph, 2), {"task 0 (", std::to_string(wrong) + " ns", "cost_ns()"});
    Compiled hop;
    hop.hop_ns = wrong;
    check_says(plan_refusal(chain(3), 2, hop), {"Compiled::hop_ns", std::to_string(wrong)});
  }
}

TEST_CASE("random graphs: proven, in order under every timing tried, and the same each time") {
  FLYWHEEL_TEST_SEED(seed);
  for (std::uint32_t i = 0; i < kRandomGraphs; ++i) {
    INFO("graph " << i);
    Random random(seed + i);
    const std::uint32_t workers = pick(random, 1, 7);
    const Graph graph = random_dag(random, 120, workers, i % 2 == 0);
    Compiled how;
    how.hop_ns = pick(random, 0, 4000);
    const SchedulePlan plan = compile(graph, workers, how);
    check_times(plan, graph, how.hop_ns);
    for (int timing = 0; timing < 5; ++timing) REQUIRE(PaperRun(plan, graph, 3).go(random).empty());
    REQUIRE(plan.critical_ns <= plan.makespan_ns);
    const SchedulePlan again = make_schedule(graph, workers, how);
    REQUIRE(describe_schedule(again, graph) == describe_schedule(plan, graph));
    REQUIRE(again.makespan_ns == plan.makespan_ns);
  }
}

TEST_CASE("a decode step's worth of stages compiles and is proven in seconds") {
  constexpr std::uint32_t kWidth = 132;
  const Graph graph = stages(kManyStages, kWidth);
  const auto begin = std::chrono::steady_clock::now();
  const SchedulePlan plan = compile(graph, kWidth);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK(plan.arrivals == std::vector<std::uint32_t>(kManyStages - 1, kWidth));
  CHECK(plan.waits == (kManyStages - 1) * kWidth);
}

TEST_CASE("the description names everything") {
  const std::string name = "(" + type_name(typeid(Work)) + ")";
  CHECK(describe_schedule(compile(diamond(), 3), diamond()) ==
        "schedule: 4 tasks, 2 of 3 workers used, 1 sinks, worker 1 speaks\n"
        "edges: 4, as 2 waits for 2 counters\n"
        "makespan: 13.5 us by the cost model, critical path 12.0 us, workers idle 45.7%\n"
        "worker 0: 2 tasks, busy 11.0 of 13.5 us\n"
        "  w0[0] 0.000..1.000 us  task 0 " +
            name +
            "  signals c0\n"
            "  w0[1] 1.000..11.000 us  task 1 " +
            name +
            "  signals c1\n"
            "worker 1: 2 tasks, busy 11.0 of 13.5 us\n"
            "  w1[0] 2.500..12.500 us  task 2 " +
            name +
            "  waits c0(1)  signals c1\n"
            "  w1[1] 12.500..13.500 us  task 3 " +
            name +
            "  waits c1(2)  sink\n"
            "worker 2: 0 tasks, busy 0.0 of 13.5 us\n");
}

namespace {
struct OfWarp {
  using Grain = flywheel::Warp;
  template <class Block>
  void operator()(Block&) const {}
};
}  // namespace

TEST_CASE("warp tasks get as many warps of each worker as the widest level needs, and those that are placed their worker's") {
  Graph graph;
  std::vector<TaskRef<>> first;
  for (int i = 0; i < 10; ++i) first.push_back(graph.add(OfWarp{}));
  graph.place(first[4], 2);
  const auto last = graph.add(OfWarp{}, after(first));
  graph.place(last, 1);
  const SchedulePlan plan = make_schedule(graph, 4, {}, 8);
  validate_schedule(plan, graph);
  CHECK(plan.warps == 3);
  CHECK(plan.order.size() == 12);
  CHECK(plan.tasks[first[4].index].worker % 4 == 2);
  CHECK(plan.tasks[last.index].worker % 4 == 1);
  CHECK(plan.makespan_ns < 2 * 2000 + 1501);  // all of the first level at once
  CHECK(describe_schedule(plan, graph).find("of 12 warps used") != std::string::npos);
  CHECK(describe_schedule(plan, graph).find("worker 1.2: ") != std::string::npos);
  CHECK(make_schedule(graph, 4, {}, 2).warps == 2);
  CHECK(make_schedule(graph, 4, {}).warps == 0);
}
