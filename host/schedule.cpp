// Compiling a graph. Placement is HEFT without insertion (Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002): highest upward
// rank first, on the worker where it ends first. Tasks are only appended, so every edge and every worker's order agree
// with one list of all tasks: following it never gets stuck.
#include "host/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "host/loader.hpp"
#include "host/schedule_lists.hpp"

namespace flywheel {

namespace {

constexpr double kUnknownCostNs = 1000;

Lists predecessors_of(const Graph& graph) {
  Lists lists;
  for (const GraphNode& node : graph.nodes()) {
    const auto own = lists.items.insert(lists.items.end(), node.predecessors.begin(), node.predecessors.end());
    std::sort(own, lists.items.end());
    lists.items.erase(std::unique(own, lists.items.end()), lists.items.end());
    lists.ends.push_back(lists.items.size());
  }
  return lists;
}

std::string name_of(const Graph& graph, std::uint32_t task) {
  return "task " + std::to_string(task) + " (" + type_name(graph.nodes()[task].type) + ")";
}

void check_input(const Graph& graph, std::uint32_t workers, const Compiled& how) {
  if (graph.size() == 0) throw GraphError("the graph has no tasks: add() some before load()");
  if (graph.phase_count() != 0)
    throw GraphError("a phased graph cannot be compiled: its phases order its tasks; leave out phase(), or load it "
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
}

std::vector<double> costs_of(const Graph& graph, const Compiled& how) {
  std::vector<double> costs = how.costs;
  if (costs.empty())
    for (const GraphNode& node : graph.nodes()) costs.push_back(node.cost_ns == 0 ? kUnknownCostNs : node.cost_ns);
  for (std::uint32_t task = 0; task < costs.size(); ++task) {
    if (!std::isfinite(costs[task]) || costs[task] < 0)
      throw GraphError(name_of(graph, task) + " costs " + std::to_string(costs[task]) + " ns: let " +
                       (how.costs.empty() ? "its cost_ns()" : "Compiled::costs") +
                       " say nanoseconds, 0 or more (0: not known)");
    costs[task] = std::max(costs[task], 1.0);
  }
  return costs;
}

/// Kahn's algorithm.
std::vector<std::uint32_t> topological_order(const Graph& graph, const Lists& before, const Lists& after) {
  std::vector<std::size_t> missing(graph.size());
  std::vector<std::uint32_t> order;
  for (std::uint32_t task = 0; task < graph.size(); ++task)
    if ((missing[task] = before[task].size()) == 0) order.push_back(task);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::uint32_t next : after[order[i]])
      if (--missing[next] == 0) order.push_back(next);
  if (order.size() == graph.size()) return order;
  throw GraphError("the graph has a cycle: " + find_cycle(graph) + ". Remove one of these dependencies.");
}

/// From the begin of each task to the end of the last that needs it, with `hop_ns` on each edge.
std::vector<double> path_lengths(const std::vector<std::uint32_t>& order, const Lists& after,
                                 const std::vector<double>& costs, double hop_ns) {
  std::vector<double> lengths = costs;
  for (auto task = order.rbegin(); task != order.rend(); ++task) {
    double longest = 0;
    for (const std::uint32_t next : after[*task]) longest = std::max(longest, hop_ns + lengths[next]);
    lengths[*task] += longest;
  }
  return lengths;
}

/// When the results of all predecessors are there: on the worker of the one that ends last, and on every other.
struct Arrival {
  std::uint32_t home = kAnyWorker;
  double home_ns = 0;
  double elsewhere_ns = 0;
  double on(std::uint32_t worker) const { return worker == home ? home_ns : elsewhere_ns; }
};

class Placer {
 public:
  Placer(SchedulePlan& plan, std::uint32_t workers, double hop_ns)
      : plan_(plan), free_ns_(workers), busy_ns_(workers), hop_ns_(hop_ns) {
    plan_.order.resize(workers);
  }

  void append(std::uint32_t task, Indices before, double cost_ns, std::uint32_t wanted) {
    const Arrival arrival = arrival_of(before);
    const std::uint32_t worker = wanted == kAnyWorker ? best_worker(arrival) : wanted;
    TaskPlan& placed = plan_.tasks[task];
    placed.worker = worker;
    placed.place = static_cast<std::uint32_t>(plan_.order[worker].size());
    placed.begin_ns = begin_on(worker, arrival);
    placed.end_ns = free_ns_[worker] = placed.begin_ns + cost_ns;
    busy_ns_[worker] += cost_ns;
    plan_.order[worker].push_back(task);
    plan_.makespan_ns = std::max(plan_.makespan_ns, placed.end_ns);
  }

 private:
  /// The latest end of all and the latest on any other worker than that: enough for every worker's answer.
  Arrival arrival_of(Indices before) const {
    std::uint32_t home = kAnyWorker;
    double latest = -hop_ns_, second = -hop_ns_;  // with no predecessors: time 0 everywhere
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
  double begin_on(std::uint32_t worker, const Arrival& arrival) const {
    return std::max(free_ns_[worker], arrival.on(worker));
  }
  /// A task takes the same everywhere, so it ends first where it begins first.
  std::uint32_t best_worker(const Arrival& arrival) const {
    std::uint32_t best = 0;
    for (std::uint32_t worker = 1; worker < free_ns_.size(); ++worker) {
      const double begin = begin_on(worker, arrival), best_begin = begin_on(best, arrival);
      if (begin < best_begin || (begin == best_begin && busy_ns_[worker] < busy_ns_[best])) best = worker;
    }
    return best;
  }

  SchedulePlan& plan_;
  std::vector<double> free_ns_;  // of each worker: when its last task so far ends
  std::vector<double> busy_ns_;
  double hop_ns_;
};

void count_sinks(SchedulePlan& plan, const Lists& after) {
  double latest = 0;
  for (std::uint32_t task = 0; task < after.size(); ++task) {
    if (!after[task].empty()) continue;
    ++plan.sinks;
    if (plan.tasks[task].end_ns > latest) {
      latest = plan.tasks[task].end_ns;
      plan.speaker = plan.tasks[task].worker;
    }
  }
}

}  // namespace

SchedulePlan make_schedule(const Graph& graph, std::uint32_t workers, const Compiled& how) {
  check_input(graph, workers, how);
  const std::vector<double> costs = costs_of(graph, how);
  const Lists before = predecessors_of(graph), after = turned(before, graph.size());
  std::vector<std::uint32_t> order = topological_order(graph, before, after);
  SchedulePlan plan;
  plan.tasks.resize(graph.size());
  plan.edges = before.items.size();
  plan.critical_ns = std::ranges::max(path_lengths(order, after, costs, 0));
  const std::vector<double> ranks = path_lengths(order, after, costs, how.hop_ns);
  // No task ranks below its successors, and those of equal rank stay in topological order.
  std::ranges::stable_sort(order, [&](auto a, auto b) { return ranks[a] > ranks[b]; });
  Placer placer(plan, workers, how.hop_ns);
  for (const std::uint32_t task : order) placer.append(task, before[task], costs[task], graph.nodes()[task].worker);
  count_sinks(plan, after);
  plan_waits(plan, after, order);
  return plan;
}

}  // namespace flywheel
