// Compiles a graph. Placement is HEFT without insertion (Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002): tasks in order
// of falling upward rank, each on the worker where it ends first. Tasks are only appended to a worker's order, and the
// tasks of a gang one after the other. So one list of all tasks and gangs agrees with every edge and with every
// worker's order, and execution cannot get stuck.
//
// Rank is a poor guide where workers are short and few tasks are on a long path, as in a tree whose trunk goes on: all of the
// trunk is placed before the first branch. So tasks are also placed in the order in which they could begin, and the plan with
// the clearly shorter makespan is taken.
#include "schedule.hpp"

#include <algorithm>
#include <cmath>

#include "schedule_lists.hpp"
#include "task_name.hpp"

namespace flywheel::detail {

Lists predecessors_of(const Graph& graph) {
  Lists lists;
  for (std::uint32_t task = 0; task < graph.size(); ++task) {
    const Predecessors named = graph.tasks().predecessors(task);
    const auto own = lists.items.insert(lists.items.end(), named.begin(), named.end());
    std::sort(own, lists.items.end());
    lists.items.erase(std::unique(own, lists.items.end()), lists.items.end());
    lists.ends.push_back(lists.items.size());
  }
  return lists;
}

namespace {

constexpr double kUnknownCostNs = 2000;
constexpr double kClearlyLess = 0.98;  // a plan's makespan, as a share of another's
constexpr std::uint32_t kNoTask = 0xffffffffu;

void check_gang(const Graph& graph, std::uint32_t workers, const std::vector<std::uint32_t>& gang) {
  if (gang.size() > workers)
    throw GraphError(std::to_string(gang.size()) + " tasks are to run together, " + name_of(graph, gang.front()) +
                     " among them, on " + std::to_string(workers) +
                     " workers: name fewer in Graph::together(), or raise "
                     "Options::workers");
  std::vector<std::uint32_t> holds(workers, kNoTask);  // of each worker: the task of the gang that is placed there
  for (const std::uint32_t task : gang) {
    const std::uint32_t worker = graph.nodes()[task].worker;
    if (worker == kAnyWorker) continue;
    if (holds[worker] != kNoTask)
      throw GraphError(name_of(graph, holds[worker]) + " and " + name_of(graph, task) +
                       " are to run together, and both are "
                       "placed on worker " +
                       std::to_string(worker) + ": change Graph::place()");
    holds[worker] = task;
  }
}

void check_input(const Graph& graph, std::uint32_t workers, const Compiled& how) {
  if (graph.size() == 0) throw GraphError("the graph has no tasks: add() some before load()");
  if (graph.phase_count() != 0)
    throw GraphError(
        "a phased graph cannot be compiled: its phases order its tasks; leave out phase(), or load it "
        "without `compiled`");
  if (workers == 0) throw GraphError("there is no worker to compile for: raise Options::workers");
  if (!std::isfinite(how.hop_ns) || how.hop_ns < 0)
    throw GraphError("Compiled::hop_ns is " + std::to_string(how.hop_ns) + ": give nanoseconds, 0 or more");
  if (!how.costs.empty() && how.costs.size() != graph.size())
    throw GraphError("Compiled::costs has " + std::to_string(how.costs.size()) + " entries, but the graph has " +
                     std::to_string(graph.size()) + " tasks: give one for each, in the order of add(), or none");
  for (std::uint32_t task = 0; task < graph.size(); ++task) {
    const std::uint32_t worker = graph.nodes()[task].worker;
    if (worker != kAnyWorker && worker >= workers)
      throw GraphError(name_of(graph, task) + " is placed on worker " + std::to_string(worker) + ", but there are " +
                       std::to_string(workers) + ", from 0: change Graph::place() or raise Options::workers");
  }
  for (const auto& gang : graph.gangs()) check_gang(graph, workers, gang);
}

/// The cost in ns, at least 1, or 0 if it is not known. `who` names its source in the error message.
double known_cost(const Graph& graph, std::uint32_t task, double ns, const char* who) {
  if (std::isfinite(ns) && ns >= 0) return ns == 0 ? 0 : std::max(ns, 1.0);
  throw GraphError(name_of(graph, task) + " costs " + std::to_string(ns) + " ns: let " + who +
                   " say nanoseconds, 0 or more (0: not known)");
}

std::vector<double> costs_of(const Graph& graph, const Compiled& how) {
  std::vector<double> costs;
  for (std::uint32_t task = 0; task < graph.size(); ++task) {
    const double given = how.costs.empty() ? 0 : known_cost(graph, task, how.costs[task], "Compiled::costs");
    const double own = given == 0 ? known_cost(graph, task, graph.nodes()[task].cost_ns, "its cost_ns()") : given;
    costs.push_back(own == 0 ? kUnknownCostNs : own);
  }
  return costs;
}

/// When the results of all predecessors are available: `home_ns` on the worker of the predecessor that ends last,
/// `elsewhere_ns` on every other worker.
struct TaskArrival {
  std::uint32_t home = kAnyWorker;
  double home_ns = 0;
  double elsewhere_ns = 0;
  double on(std::uint32_t worker) const { return worker == home ? home_ns : elsewhere_ns; }
};

class Placer {
 public:
  Placer(SchedulePlan& plan, std::uint32_t workers, double hop_ns)
      : plan_(plan),
        workers_(workers),
        free_ns_(workers * std::max(plan.warps, 1u)),
        busy_ns_(free_ns_.size()),
        taken_(free_ns_.size()),
        hop_ns_(hop_ns) {
    plan_.order.resize(free_ns_.size());
  }

  /// From here on, append() uses no worker twice until the next call.
  void begin_gang() { std::fill(taken_.begin(), taken_.end(), false); }
  void append(std::uint32_t task, Indices before, double cost_ns, std::uint32_t wanted) {
    const TaskArrival arrival = arrival_of(before);
    const std::uint32_t worker = wanted == kAnyWorker ? best_worker(arrival, 0, 1) : best_worker(arrival, wanted, workers_);
    TaskPlan& placed = plan_.tasks[task];
    placed.worker = worker;
    placed.place = static_cast<std::uint32_t>(plan_.order[worker].size());
    placed.begin_ns = begin_on(worker, arrival);
    placed.end_ns = free_ns_[worker] = placed.begin_ns + cost_ns;
    busy_ns_[worker] += cost_ns;
    plan_.order[worker].push_back(task);
    taken_[worker] = true;
    plan_.makespan_ns = std::max(plan_.makespan_ns, placed.end_ns);
  }

 private:
  /// Keeps the latest end of all predecessors, and the latest end on any other worker. These two give the time for
  /// every worker.
  TaskArrival arrival_of(Indices before) const {
    std::uint32_t home = kAnyWorker;
    double latest = -hop_ns_, second = -hop_ns_;  // without predecessors: time 0 everywhere
    for (const std::uint32_t task : before) {
      const TaskPlan& placed = plan_.tasks[task];
      if (placed.worker != home && placed.end_ns > latest) {
        second = latest;
        home = placed.worker;
      }
      double& of_its_kind = placed.worker == home ? latest : second;
      of_its_kind = std::max(of_its_kind, placed.end_ns);
    }
    return {home, std::max(latest, second + hop_ns_), latest + hop_ns_};
  }
  double begin_on(std::uint32_t worker, const TaskArrival& arrival) const {
    return std::max(free_ns_[worker], arrival.on(worker));
  }
  /// Of the free ones among workers `first`, `first` + `stride`, ... that on which the task begins first. A task takes equally
  /// long on all workers, so it also ends first there. The caller has seen to it that one is free.
  std::uint32_t best_worker(const TaskArrival& arrival, std::uint32_t first, std::uint32_t stride) const {
    std::uint32_t best = first;
    while (taken_[best]) best += stride;
    for (std::uint32_t worker = best + stride; worker < free_ns_.size(); worker += stride) {
      if (taken_[worker]) continue;
      const double begin = begin_on(worker, arrival), best_begin = begin_on(best, arrival);
      if (begin < best_begin || (begin == best_begin && busy_ns_[worker] < busy_ns_[best])) best = worker;
    }
    return best;
  }

  SchedulePlan& plan_;
  const std::uint32_t workers_;
  std::vector<double> free_ns_;  // of each worker: the end of its last task so far
  std::vector<double> busy_ns_;
  std::vector<bool> taken_;  // of each worker: used by the gang that is being appended
  double hop_ns_;
};

/// Appends all tasks. In `order` the tasks of a gang follow each other, those with a fixed worker first.
void place_all(Placer& placer, const Graph& graph, Indices order, const Lists& before, const std::vector<double>& costs) {
  std::uint32_t last = kNoGang;
  for (const std::uint32_t task : order) {
    const GraphNode& node = graph.nodes()[task];
    if (node.gang == kNoGang || node.gang != last) placer.begin_gang();
    last = node.gang;
    placer.append(task, before[task], costs[task], node.worker);
  }
}

/// The most tasks that are as far from the begin of the graph as one another. In `order` each task comes after its
/// predecessors.
std::uint32_t widest_level(Indices order, const Lists& before) {
  std::vector<std::uint32_t> level(before.size()), width(before.size());
  for (const std::uint32_t task : order) {
    for (const std::uint32_t other : before[task]) level[task] = std::max(level[task], level[other] + 1);
    ++width[level[task]];
  }
  return std::ranges::max(width);
}

void count_sinks(SchedulePlan& plan, const Lists& after) {
  double latest = 0;
  for (std::uint32_t task = 0; task < after.size(); ++task) {
    if (!after[task].empty()) continue;
    ++plan.sinks;
    if (plan.tasks[task].end_ns > latest) {
      latest = plan.tasks[task].end_ns;
      plan.leader = plan.tasks[task].worker;
    }
  }
}

}  // namespace

SchedulePlan make_schedule(const Graph& graph, std::uint32_t workers, const Compiled& how, std::uint32_t most_warps) {
  check_input(graph, workers, how);
  const std::vector<double> costs = costs_of(graph, how);
  const Lists before = predecessors_of(graph), after = turned(before, graph.size());
  std::vector<std::uint32_t> order = placing_order(graph, before, after, costs, how.hop_ns);
  SchedulePlan empty;
  empty.tasks.resize(graph.size());
  empty.edges = before.items.size();
  empty.critical_ns = std::ranges::max(path_lengths(order, after, costs, 0));
  if (graph.all_warp_tasks() && graph.gangs().empty())
    empty.warps = std::min((widest_level(order, before) + workers - 1) / workers, most_warps);
  const auto placed = [&](Indices in_order) {
    SchedulePlan plan = empty;
    Placer placer(plan, workers, how.hop_ns);
    place_all(placer, graph, in_order, before, costs);
    return plan;
  };
  SchedulePlan plan = placed(order);
  if (graph.gangs().empty()) {
    std::vector<std::uint32_t> by_begins = order_of_begins(order, before, after, costs, how.hop_ns);
    if (SchedulePlan other = placed(by_begins); other.makespan_ns < kClearlyLess * plan.makespan_ns)
      plan = std::move(other), order = std::move(by_begins);
  }
  count_sinks(plan, after);
  plan_waits(plan, after, order);
  return plan;
}

}  // namespace flywheel::detail
