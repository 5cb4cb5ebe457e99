#include "graph_cycle.hpp"

#include <algorithm>

#include "task_name.hpp"

namespace flywheel::detail {

TaskLists predecessors_of(const Graph& graph) {
  TaskLists all;
  for (const GraphNode& node : graph.nodes()) {
    all.push_back(node.predecessors);
    std::sort(all.back().begin(), all.back().end());
    all.back().erase(std::unique(all.back().begin(), all.back().end()), all.back().end());
  }
  return all;
}

TaskLists successors_of(const TaskLists& predecessors) {
  TaskLists all(predecessors.size());
  for (std::uint32_t task = 0; task < predecessors.size(); ++task)
    for (const std::uint32_t before : predecessors[task]) all[before].push_back(task);
  return all;
}

namespace {
/// Kahn's algorithm. Returns the tasks that can never start because they are in a cycle or behind one.
std::vector<bool> never_ready(const TaskLists& predecessors, const TaskLists& successors) {
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
  const TaskLists predecessors = predecessors_of(graph);
  const std::vector<bool> stuck = never_ready(predecessors, successors_of(predecessors));
  const auto first = std::find(stuck.begin(), stuck.end(), true);
  if (first == stuck.end()) return {};
  // Every stuck task has a stuck predecessor, so the walk back along these must reach a task for the second time.
  std::vector<std::uint32_t> path{static_cast<std::uint32_t>(first - stuck.begin())};
  for (;;) {
    const auto& before = predecessors[path.back()];
    const std::uint32_t next = *std::find_if(before.begin(), before.end(), [&](std::uint32_t t) { return stuck[t]; });
    const bool came_round = std::find(path.begin(), path.end(), next) != path.end();
    path.push_back(next);
    if (!came_round) continue;
    std::string text;
    const auto begin = std::find(path.begin(), path.end(), next);
    for (auto it = path.end(); it != begin;) {
      --it;
      text += name_of(graph, *it) + (it == begin ? "" : " -> ");
    }
    return text;
  }
}

}  // namespace flywheel::detail
