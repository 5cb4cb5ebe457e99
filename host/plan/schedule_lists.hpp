// What the steps of make_schedule() share: millions of edges without an allocation for each.
#pragma once

#include <numeric>
#include <span>

#include "schedule.hpp"

namespace flywheel {

using Indices = std::span<const std::uint32_t>;

/// A list of indices for each task or counter, end to end in memory.
struct Lists {
  std::vector<std::size_t> ends{0};  // of the list before each, and of the last
  std::vector<std::uint32_t> items;

  std::uint32_t size() const { return static_cast<std::uint32_t>(ends.size() - 1); }
  Indices operator[](std::uint32_t i) const { return {items.data() + ends[i], ends[i + 1] - ends[i]}; }
  void append(Indices list) {
    items.insert(items.end(), list.begin(), list.end());
    ends.push_back(items.size());
  }
};

/// List `i` of the result names the lists in which `i` stands, in rising order.
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

/// From the begin of each task to the end of the last that needs it, with `hop_ns` on each edge. `order`: all tasks, each
/// before those that wait for it.
std::vector<double> path_lengths(Indices order, const Lists& after, const std::vector<double>& costs, double hop_ns);

/// All tasks, highest upward rank first, each before those that wait for it, and those of a gang in a row: a gang ranks as
/// one task that takes as long as its longest. Throws GraphError if there is no such order.
std::vector<std::uint32_t> placing_order(const Graph& graph, const Lists& before, const Lists& after,
                                         const std::vector<double>& costs, double hop_ns);

/// Gives each task its counter and the waits that it needs. `order` lists all tasks and agrees with all edges and with
/// the order of every worker.
void plan_waits(SchedulePlan& plan, const Lists& after, Indices order);

}  // namespace flywheel
