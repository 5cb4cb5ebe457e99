// The order in which make_schedule() places tasks: by upward rank, the tasks of a gang one after the other.
#include <algorithm>

#include "graph_cycle.hpp"
#include "schedule_lists.hpp"
#include "task_name.hpp"

namespace flywheel::detail {

namespace {

/// Kahn's algorithm. If there is a cycle, the result lacks the tasks in it and behind it.
std::vector<std::uint32_t> topological_order(const Lists& before, const Lists& after) {
  std::vector<std::size_t> missing(before.size());
  std::vector<std::uint32_t> order;
  for (std::uint32_t task = 0; task < before.size(); ++task)
    if ((missing[task] = before[task].size()) == 0) order.push_back(task);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::uint32_t next : after[order[i]])
      if (--missing[next] == 0) order.push_back(next);
  return order;
}

/// Sorts by falling rank. A task never ranks below its successors, and tasks of equal rank stay in topological order,
/// so the result is a topological order too.
void sort_by_rank(std::vector<std::uint32_t>& order, const Lists& after, const std::vector<double>& costs, double hop_ns) {
  const std::vector<double> ranks = path_lengths(order, after, costs, hop_ns);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return ranks[a] > ranks[b]; });
}

/// The graph with each gang merged into one node, called a unit.
class Units {
 public:
  Units(const Graph& graph, const Lists& before) : graph_(graph), of_(graph.size()) {
    std::vector<std::uint32_t> of_gang(graph.gangs().size(), kNoUnit);
    for (std::uint32_t task = 0; task < graph.size(); ++task) {
      const std::uint32_t gang = graph.nodes()[task].gang;
      if (gang != kNoGang && of_gang[gang] != kNoUnit) {
        of_[task] = of_gang[gang];
        continue;
      }
      of_[task] = static_cast<std::uint32_t>(members_.size());
      if (gang != kNoGang) of_gang[gang] = of_[task];
      members_.push_back(gang == kNoGang ? std::vector{task} : placed_first(graph.gangs()[gang]));
    }
    for (const auto& members : members_) append_before(members, before);
  }

  std::vector<std::uint32_t> placing_order(const std::vector<double>& task_costs, double hop_ns) const {
    const Lists after = turned(before_, before_.size());
    std::vector<double> costs;
    for (const auto& members : members_) {
      costs.push_back(0);
      for (const std::uint32_t task : members) costs.back() = std::max(costs.back(), task_costs[task]);
    }
    std::vector<std::uint32_t> order = topological_order(before_, after), tasks;
    if (order.size() != members_.size()) no_order(order);
    sort_by_rank(order, after, costs, hop_ns);
    for (const std::uint32_t unit : order) tasks.insert(tasks.end(), members_[unit].begin(), members_[unit].end());
    return tasks;
  }

 private:
  static constexpr std::uint32_t kNoUnit = 0xffffffffu;

  std::vector<std::uint32_t> placed_first(std::vector<std::uint32_t> gang) const {
    // Not std::ranges::stable_partition: clang before version 16 does not compile libstdc++'s.
    std::stable_partition(gang.begin(), gang.end(), [&](auto task) { return graph_.nodes()[task].worker != kAnyWorker; });
    return gang;
  }
  void append_before(const std::vector<std::uint32_t>& members, const Lists& before) {
    std::vector<std::uint32_t> units;
    for (const std::uint32_t task : members)
      for (const std::uint32_t other : before[task]) units.push_back(of_[other]);
    std::ranges::sort(units);
    units.erase(std::unique(units.begin(), units.end()), units.end());
    before_.append(units);
  }

  /// Throws GraphError that names a gang at fault. The graph has no cycle without its gangs, so the walk back from a
  /// unit that is not in `order` reaches a unit for the second time, and the cycle contains a gang.
  [[noreturn]] void no_order(const std::vector<std::uint32_t>& order) const {
    std::vector<bool> stuck(members_.size(), true), seen(members_.size());
    for (const std::uint32_t unit : order) stuck[unit] = false;
    auto unit = static_cast<std::uint32_t>(std::find(stuck.begin(), stuck.end(), true) - stuck.begin());
    while (!seen[unit] || members_[unit].size() == 1) {
      seen[unit] = true;
      unit = *std::ranges::find_if(before_[unit], [&](auto other) { return stuck[other]; });
    }
    const std::string one = name_of(graph_, members_[unit].front());
    throw GraphError("tasks that are to run together can never begin: " + one + " and the other " +
                     std::to_string(members_[unit].size() - 1) +
                     " of its Graph::together() need what some of them must end "
                     "for. Remove a dependency between them, or name fewer.");
  }

  const Graph& graph_;
  std::vector<std::uint32_t> of_;                    // of each task: its unit
  std::vector<std::vector<std::uint32_t>> members_;  // of each unit: its tasks
  Lists before_;                                     // of each unit: its predecessors
};

}  // namespace

std::vector<double> path_lengths(Indices order, const Lists& after, const std::vector<double>& costs, double hop_ns) {
  std::vector<double> lengths = costs;
  for (auto task = order.rbegin(); task != order.rend(); ++task) {
    double longest = 0;
    for (const std::uint32_t next : after[*task]) longest = std::max(longest, hop_ns + lengths[next]);
    lengths[*task] += longest;
  }
  return lengths;
}

std::vector<std::uint32_t> order_of_begins(Indices order, const Lists& before, const Lists& after,
                                           const std::vector<double>& costs, double hop_ns) {
  const std::vector<double> ranks = path_lengths(order, after, costs, hop_ns);
  std::vector<double> begins(costs.size());
  for (const std::uint32_t task : order)
    for (const std::uint32_t other : before[task]) begins[task] = std::max(begins[task], begins[other] + costs[other] + hop_ns);
  std::vector<std::uint32_t> sorted(order.begin(), order.end());
  std::ranges::stable_sort(
      sorted, [&](auto a, auto b) { return begins[a] != begins[b] ? begins[a] < begins[b] : ranks[a] > ranks[b]; });
  return sorted;
}

std::vector<std::uint32_t> placing_order(const Graph& graph, const Lists& before, const Lists& after,
                                         const std::vector<double>& costs, double hop_ns) {
  std::vector<std::uint32_t> order = topological_order(before, after);
  if (order.size() != graph.size())
    throw GraphError("the graph has a cycle: " + find_cycle(graph) + ". Remove one of these dependencies.");
  if (!graph.gangs().empty()) return Units(graph, before).placing_order(costs, hop_ns);
  sort_by_rank(order, after, costs, hop_ns);
  return order;
}

}  // namespace flywheel::detail
