#include "graph_cycle.hpp"

#include <algorithm>

#include "schedule_lists.hpp"
#include "task_name.hpp"

namespace flywheel::detail {

namespace {
/// Kahn's algorithm. Returns the tasks that can never start because they are in a cycle or behind one.
std::vector<bool> never_ready(const Lists& predecessors, const Lists& successors) {
  std::vector<std::uint32_t> waits, ready;
  for (std::uint32_t task = 0; task < predecessors.size(); ++task) {
    waits.push_back(static_cast<std::uint32_t>(predecessors[task].size()));
    if (waits[task] == 0) ready.push_back(task);
  }
  std::vector<bool> stuck(predecessors.size(), true);
  while (!ready.empty()) {
    const std::uint32_t task = ready.back();
    ready.pop_back();
    stuck[task] = false;
    for (const std::uint32_t next : successors[task])
      if (--waits[next] == 0) ready.push_back(next);
  }
  return stuck;
}
}  // namespace

std::string find_cycle(const Graph& graph) {
  const Lists predecessors = predecessors_of(graph);
  const std::vector<bool> stuck = never_ready(predecessors, turned(predecessors, graph.size()));
  const auto first = std::find(stuck.begin(), stuck.end(), true);
  if (first == stuck.end()) return {};
  // Every stuck task has a stuck predecessor, so the walk back along these must reach a task for the second time.
  std::vector<std::uint32_t> path{static_cast<std::uint32_t>(first - stuck.begin())};
  std::vector<bool> passed(graph.size());
  while (!passed[path.back()]) {
    passed[path.back()] = true;
    const Indices before = predecessors[path.back()];
    path.push_back(*std::find_if(before.begin(), before.end(), [&](std::uint32_t t) { return stuck[t]; }));
  }
  const std::vector<std::uint32_t> cycle(path.rbegin(),
                                         std::make_reverse_iterator(std::find(path.begin(), path.end(), path.back())));
  constexpr std::size_t kMostTold = 100;
  std::string text;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    if (const std::size_t left_out = cycle.size() - kMostTold; cycle.size() > kMostTold && i == kMostTold / 2) {
      text += "... " + std::to_string(left_out) + " more ... -> ";
      i += left_out;
    }
    text += name_of(graph, cycle[i]) + (i + 1 == cycle.size() ? "" : " -> ");
  }
  return text;
}

}  // namespace flywheel::detail
