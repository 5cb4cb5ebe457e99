// Wrong plans must be refused, and plans that are merely different must not.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "host/load/graph_image.hpp"
#include "support/internals.hpp"
#include "support/schedule_graphs.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

#ifdef __SANITIZE_THREAD__
constexpr std::uint32_t kCheckedGraphs = 50;
#else
constexpr std::uint32_t kCheckedGraphs = 400;
#endif

std::string fault(const SchedulePlan& plan, const Graph& graph) {
  return error_of<GraphError>([&] { validate_schedule(plan, graph); });
}

/// Worker 0 has tasks 0 and 1, worker 1 has 2 and 3; 0 before 2, 1 before 3, 2 before 3.
struct Square4 {
  Graph graph;
  SchedulePlan plan;

  Square4() {
    const Tasks t = add_works(graph, {1000, 1000, 1000, 1000});
    graph.edge(t[0], t[2]);
    graph.edge(t[1], t[3]);
    graph.edge(t[2], t[3]);
    plan.tasks = {{0, 0, 0, {}}, {0, 1, 1, {}}, {1, 0, kNoCounter, {{0, 1}}}, {1, 1, kNoCounter, {{1, 1}}}};
    plan.order = {{0, 1}, {2, 3}};
    plan.arrivals = {1, 1};
    plan.sinks = 1;
    plan.leader = 1;
  }
  /// What is said of the plan after `change`.
  template <class Change>
  std::string after_change(Change&& change) {
    change(plan);
    return fault(plan, graph);
  }
};

template <class Change>
std::string fault_of(Change&& change) {
  return Square4().after_change(change);
}

/// After a change of the orders: tasks say again where they stand.
void renumber(SchedulePlan& plan) {
  for (std::uint32_t worker = 0; worker < plan.order.size(); ++worker)
    for (std::uint32_t place = 0; place < plan.order[worker].size(); ++place) {
      plan.tasks[plan.order[worker][place]].worker = worker;
      plan.tasks[plan.order[worker][place]].place = place;
    }
}

constexpr std::uint64_t bit(std::uint32_t task) { return std::uint64_t{1} << task; }

/// What comes right before what in a plan. Up to 64 tasks: row `a` has a bit for each task that comes after `a`.
std::vector<std::uint64_t> relation(const SchedulePlan& plan) {
  std::vector<std::uint64_t> after(plan.tasks.size());
  for (const auto& order : plan.order)
    for (std::size_t i = 1; i < order.size(); ++i) after[order[i - 1]] |= bit(order[i]);
  for (std::uint32_t task = 0; task < after.size(); ++task)
    for (const CounterWait& wait : plan.tasks[task].waits)
      for (std::uint32_t from = 0; from < after.size(); ++from)
        if (plan.tasks[from].signal == wait.counter) after[from] |= bit(task);
  return after;
}
/// Step by step (Warshall).
std::vector<std::uint64_t> closed(std::vector<std::uint64_t> after) {
  for (std::uint32_t through = 0; through < after.size(); ++through)
    for (std::uint64_t& row : after)
      if (row & bit(through)) row |= after[through];
  return after;
}

/// Whether no gang comes before itself, drawn together to its first task.
bool gangs_can_start(const SchedulePlan& plan, const Graph& graph) {
  const auto first = [&](std::uint32_t task) {
    const std::uint32_t gang = graph.nodes()[task].gang;
    return gang == kNoGang ? task : graph.gangs()[gang].front();
  };
  const std::vector<std::uint64_t> tasks = relation(plan);
  std::vector<std::uint64_t> after(tasks.size());
  for (std::uint32_t a = 0; a < tasks.size(); ++a)
    for (std::uint32_t b = 0; b < tasks.size(); ++b)
      if ((tasks[a] >> b) & 1) after[first(a)] |= bit(first(b));
  after = closed(after);
  for (std::uint32_t task = 0; task < after.size(); ++task)
    if ((after[task] >> task) & 1) return false;
  return true;
}

/// The oracle: nothing comes before itself, every edge is there, placed tasks are in place, the leader has a sink.
bool is_right(const SchedulePlan& plan, const Graph& graph) {
  const std::vector<std::uint64_t> after = closed(relation(plan));
  std::uint64_t sinks = ~std::uint64_t{0};
  bool right = gangs_can_start(plan, graph);
  for (std::uint32_t task = 0; task < after.size(); ++task) {
    const GraphNode& node = graph.nodes()[task];
    if ((after[task] >> task) & 1) right = false;
    if (node.worker != kAnyWorker && node.worker != plan.tasks[task].worker) right = false;
    for (const std::uint32_t before : node.predecessors) {
      if (!((after[before] >> task) & 1)) right = false;
      sinks &= ~bit(before);
    }
  }
  const auto& spoken = plan.order[plan.leader];
  return right && std::any_of(spoken.begin(), spoken.end(), [&](auto task) { return (sinks >> task) & 1; });
}

std::uint32_t any_task(Random& random, const SchedulePlan& plan) {
  return pick(random, 0, static_cast<std::uint32_t>(plan.tasks.size()) - 1);
}

void drop_a_wait(Random& random, SchedulePlan& plan) {
  auto& waits = plan.tasks[any_task(random, plan)].waits;
  if (!waits.empty()) waits.erase(waits.begin() + pick(random, 0, static_cast<std::uint32_t>(waits.size()) - 1));
}
void add_a_wait(Random& random, SchedulePlan& plan) {
  if (plan.arrivals.empty()) return;
  const std::uint32_t counter = pick(random, 0, static_cast<std::uint32_t>(plan.arrivals.size()) - 1);
  plan.tasks[any_task(random, plan)].waits.push_back({counter, plan.arrivals[counter]});
}
void swap_tasks(Random& random, SchedulePlan& plan) {
  const TaskPlan &a = plan.tasks[any_task(random, plan)], &b = plan.tasks[any_task(random, plan)];
  std::swap(plan.order[a.worker][a.place], plan.order[b.worker][b.place]);
  renumber(plan);
}
void swap_neighbours(Random& random, SchedulePlan& plan) {
  const TaskPlan& task = plan.tasks[any_task(random, plan)];
  if (task.place) std::swap(plan.order[task.worker][task.place - 1], plan.order[task.worker][task.place]);
  renumber(plan);
}
void move_a_task(Random& random, SchedulePlan& plan) {
  const std::uint32_t task = any_task(random, plan);
  auto& from = plan.order[plan.tasks[task].worker];
  from.erase(from.begin() + plan.tasks[task].place);
  auto& to = plan.order[pick(random, 0, static_cast<std::uint32_t>(plan.order.size()) - 1)];
  to.insert(to.begin() + pick(random, 0, static_cast<std::uint32_t>(to.size())), task);
  renumber(plan);
}
void change_leader(Random& random, SchedulePlan& plan) {
  plan.leader = pick(random, 0, static_cast<std::uint32_t>(plan.order.size()) - 1);
}

}  // namespace

TEST_CASE("a plan made by hand is proven") {
  CHECK(fault_of([](SchedulePlan&) {}).empty());
}

TEST_CASE("load() makes nothing for workers of a plan that is not proven") {
  Square4 square;
  const auto image = [&] { return image_of_plan(square.plan, square.graph, kernel_entry<Work>()); };
  const GraphImage right = image();
  CHECK(right.schedule.instructions.size() == 4);
  CHECK(right.schedule.counters == 2);
  square.plan.tasks[2].waits.clear();
  check_says(error_of<GraphError>(image), {"task 2", "worker 1", "task 0", "there is an edge between them"});
}

TEST_CASE("orders that are no orders of the graph's tasks are refused") {
  check_says(fault_of([](SchedulePlan& p) { p.tasks.pop_back(); }), {"has 3 tasks, and the graph 4", "make_schedule()"});
  check_says(fault_of([](SchedulePlan& p) { p.order[1].pop_back(); }),
             {"task 3 (flywheel::testing::Work)", "no worker's order"});
  check_says(fault_of([](SchedulePlan& p) { p.order[1].push_back(1); }), {"task 1 (", "two places", "worker 1"});
  check_says(fault_of([](SchedulePlan& p) { p.order[0].push_back(4); }), {"worker 0 names task 4", "has 4"});
  check_says(fault_of([](SchedulePlan& p) { p.tasks[3].place = 0; }),
             {"task 3 (", "place 0 of worker 1", "place 1 of worker 1"});
  check_says(fault_of([](SchedulePlan& p) { p.tasks[2].worker = 0; }),
             {"task 2 (", "place 0 of worker 0", "place 0 of worker 1"});
  check_says(fault_of([](SchedulePlan& p) { p.order.clear(); }), {"task 0 (", "no worker's order"});
  Square4 placed;
  placed.graph.place(TaskRef<void>{2, kNoResult, placed.graph.id()}, 0);
  check_says(fault(placed.plan, placed.graph), {"task 2 (", "worker 1", "Graph::place()", "on worker 0"});
}

TEST_CASE("counters that do not add up are refused") {
  check_says(fault_of([](SchedulePlan& p) { p.arrivals[1] = 2; }), {"counter c1 gets 1 arrivals", "not 2"});
  check_says(fault_of([](SchedulePlan& p) { p.arrivals[0] = 0; }), {"counter c0 gets 1 arrivals", "not 0"});
  check_says(fault_of([](SchedulePlan& p) { p.tasks[3].waits[0].arrivals = 0; }),
             {"task 3 (", "waits for 0 arrivals at counter c1", "gets 1"});
  check_says(fault_of([](SchedulePlan& p) { p.tasks[3].waits[0].counter = 2; }), {"task 3 (", "counter c2", "only 2"});
  check_says(fault_of([](SchedulePlan& p) { p.tasks[0].signal = 7; }), {"task 0 (", "counter c7", "only 2"});
}

TEST_CASE("sinks and leader are checked") {
  check_says(fault_of([](SchedulePlan& p) { p.sinks = 2; }), {"1 sinks, and the plan 2"});
  check_says(fault_of([](SchedulePlan& p) { p.leader = 0; }), {"worker 0, has no sink"});
  check_says(fault_of([](SchedulePlan& p) { p.leader = 2; }), {"worker 2, has no sink"});
  check_says(fault_of([](SchedulePlan& p) {
               p.tasks[3].signal = 1;
               p.arrivals[1] = 2;
               p.tasks[3].waits.clear();
             }),
             {"task 3 (", "sink", "counter c1"});
}

TEST_CASE("an edge that nothing implies is refused, and both its tasks named") {
  check_says(fault_of([](SchedulePlan& p) { p.tasks[2].waits.clear(); }),
             {"task 2 (", "of worker 1 may start before task 0 (", "of worker 0 has ended"});
  check_says(fault_of([](SchedulePlan& p) { p.tasks[3].waits[0].counter = 0; }),
             {"task 3 (", "of worker 1 may start before task 1 (", "of worker 0 has ended"});
  check_says(fault_of([](SchedulePlan& p) {
               p.tasks[1].signal = kNoCounter;
               p.tasks[3].waits.clear();
               p.arrivals.pop_back();
             }),
             {"task 1 (", "the latter arrives at no counter"});
  // Worker 0 the other way round: then who waits for 0 knows of 1 as well.
  const auto turn = [](SchedulePlan& p) {
    p.order[0] = {1, 0};
    renumber(p);
  };
  CHECK(fault_of([&](SchedulePlan& p) { turn(p), p.tasks[3].waits.clear(); }).empty());
  CHECK_FALSE(fault_of([&](SchedulePlan& p) { p.tasks[3].waits.clear(); }).empty());
}

TEST_CASE("a plan that gets stuck is refused: worker, task and what is missing") {
  // 3 goes before 2 and waits for 1; 1 now waits for 2, which stands behind 3.
  const std::string message = fault_of([](SchedulePlan& p) {
    p.order[1] = {3, 2};
    renumber(p);
    p.tasks[2].signal = 2;
    p.arrivals.push_back(1);
    p.tasks[1].waits = {{2, 1}};
  });
  check_says(message, {"worker 0 gets stuck at task 1 (", "counter c2", "0 of 1 arrive", "task 2 (", "of worker 1"});
  check_says(fault_of([](SchedulePlan& p) { p.tasks[0].waits = {{0, 1}}; }), {"worker 0 gets stuck at task 0 (", "c0"});
}

TEST_CASE("tasks that run together: each on a worker of its own, and none behind what waits for another") {
  // 0 and 3 run together. As planned, 3 is behind 2, which waits for 0.
  const auto with_gang = [](std::vector<std::uint32_t> gang, auto&& change) {
    Square4 square;
    Tasks tasks;
    for (const std::uint32_t task : gang) tasks.push_back({task, kNoResult, square.graph.id()});
    square.graph.together(tasks);
    return square.after_change(change);
  };
  const auto as_it_is = [](SchedulePlan&) {};
  check_says(with_gang({0, 3}, as_it_is), {"worker 0 gets stuck at task 0 (", "together with task 3 (", "of worker 1"});
  check_says(with_gang({0, 1}, as_it_is), {"task 0 (", "and task 1 (", "run together", "order of worker 0"});
  CHECK(with_gang({1, 2}, as_it_is).empty());
}

TEST_CASE("random graphs: no wait of a plan can be spared") {
  FLYWHEEL_TEST_SEED(seed);
  for (std::uint32_t i = 0; i < kCheckedGraphs / 4; ++i) {
    INFO("graph " << i);
    Random random(seed + i);
    const Graph graph = random_dag(random, 100, 6);
    const SchedulePlan plan = make_schedule(graph, 6, {});
    REQUIRE(fault(plan, graph).empty());
    for (std::uint32_t task = 0; task < plan.tasks.size(); ++task)
      for (std::size_t w = 0; w < plan.tasks[task].waits.size(); ++w) {
        SchedulePlan less = plan;
        auto& waits = less.tasks[task].waits;
        waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
        REQUIRE(fault(less, graph).find("may start before") != std::string::npos);
      }
  }
}

TEST_CASE("random changes of a plan: refused if and only if they break something") {
  FLYWHEEL_TEST_SEED(seed);
  constexpr void (*kChanges[])(Random&, SchedulePlan&) = {&drop_a_wait,     &add_a_wait,  &swap_tasks,
                                                          &swap_neighbours, &move_a_task, &change_leader};
  std::uint32_t right = 0, wrong = 0;
  for (std::uint32_t i = 0; i < kCheckedGraphs; ++i) {
    Random random(seed + i);
    const Graph graph = random_dag(random, 40, 4, i % 2 == 0);
    const SchedulePlan plan = make_schedule(graph, 4, {});
    REQUIRE(is_right(plan, graph));
    for (int changed = 0; changed < 20; ++changed) {
      SchedulePlan other = plan;
      for (std::uint32_t n = pick(random, 1, 2); n > 0; --n) kChanges[pick(random, 0, 5)](random, other);
      const bool as_it_should = is_right(other, graph);
      ++(as_it_should ? right : wrong);
      INFO("graph " << i << ": " << fault(other, graph));
      REQUIRE(fault(other, graph).empty() == as_it_should);
      if (as_it_should) REQUIRE(PaperRun(other, graph, 2).go(random).empty());
    }
  }
  CHECK(right > kCheckedGraphs);  // of 20 for each graph
  CHECK(wrong > kCheckedGraphs);
}
