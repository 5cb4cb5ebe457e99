// Lists of indices, and the steps of make_schedule() that use them. The lists lie end to end in one allocation, since a
// graph may have millions of edges. Included by the schedule*.cpp files and by graph_cycle.cpp.
#pragma once

#include <numeric>
#include <span>

#include "schedule.hpp"

namespace flywheel::detail {

using Indices = std::span<const std::uint32_t>;

/// A list of indices for each task or counter.
struct Lists {
  std::vector<std::size_t> ends{0};  // where each list begins, and the end of the last one
  std::vector<std::uint32_t> items;

  std::uint32_t size() const { return static_cast<std::uint32_t>(ends.size() - 1); }
  Indices operator[](std::uint32_t i) const { return {items.data() + ends[i], ends[i + 1] - ends[i]}; }
  void append(Indices list) {
    items.insert(items.end(), list.begin(), list.end());
    ends.push_back(items.size());
  }
};

/// The inverse lists: list `i` of the result contains, in rising order, the numbers of the lists that contain `i`.
inline Lists turned(const Lists& lists, std::uint32_t count) {
  Lists result;
  result.ends.resize(count + std::size_t{1});
  for (const std::uint32_t item : lists.items) ++result.ends[item + std::size_t{1}];
  std::partial_sum(result.ends.begin(), result.ends.end(), result.ends.begin());
  result.items.resize(lists.items.size());
  std::vector<std::size_t> next(result.ends.begin(), result.ends.end() - 1);
  for (std::uint32_t i = 0; i < lists.size(); ++i)
    for (const std::uint32_t item : lists[i]) result.items[next[item]++] = i;
  return result;
}

/// The predecessors of each task, in rising order and each once.
Lists predecessors_of(const Graph& graph);

/// The longest path in ns from the start of each task to the end of the graph, with `hop_ns` for each edge. In `order`
/// each task comes before its successors.
std::vector<double> path_lengths(Indices order, const Lists& after, const std::vector<double>& costs, double hop_ns);

/// All tasks in the order in which they are placed: falling upward rank, each task before its successors, the tasks of
/// a gang one after the other. A gang ranks as one task that takes as long as its longest. Throws GraphError if there
/// is no such order.
std::vector<std::uint32_t> placing_order(const Graph& graph, const Lists& before, const Lists& after,
                                         const std::vector<double>& costs, double hop_ns);

/// All tasks by when they could begin if each had a worker to itself, those with the longest path to the end first among
/// equals. In `order` each task comes before its successors, and so it does here, since no task takes no time.
std::vector<std::uint32_t> order_of_begins(Indices order, const Lists& before, const Lists& after,
                                           const std::vector<double>& costs, double hop_ns);

/// Gives each task its counter and its waits. `order` lists all tasks and agrees with all edges and with the order of
/// every worker.
void plan_waits(SchedulePlan& plan, const Lists& after, Indices order);

}  // namespace flywheel::detail
