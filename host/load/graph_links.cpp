#include "graph_links.hpp"

#include <algorithm>

#include "../plan/graph_cycle.hpp"

namespace flywheel::detail {

void GraphLinks::link(const Graph& graph) {
  const TaskStore& tasks = graph.tasks();
  if (tasks.may_have_cycle())
    if (const std::string cycle = find_cycle(graph); !cycle.empty())
      throw GraphError("the graph has a cycle: " + cycle + ". Remove one of these dependencies.");
  ends_.assign(tasks.size(), 0);
  waits_ = tasks.waits();
  if (tasks.in_order()) link_in_order(tasks);
  else link_any(tasks);
  const auto is_root = [](std::uint32_t waits) { return predecessors_in(waits) == 0; };
  roots_ = static_cast<std::uint32_t>(std::count_if(waits_.begin(), waits_.end(), is_root));
}

/// A counting sort of the edges by predecessor. Filling moves each begin to its list's end.
void GraphLinks::link_in_order(const TaskStore& tasks) {
  const std::vector<std::uint32_t>& before = tasks.all_predecessors();
  for (const std::uint32_t task : before) ++ends_[task];
  turn_counts_to_ends();
  const std::uint32_t* next = before.data();
  for (std::uint32_t task = 0; task < waits_.size(); ++task)
    for (std::uint32_t left = predecessors_in(waits_[task]); left; --left) successors_[ends_[*next++]++] = task;
}

/// The same with edges in any order. `seen` tells which predecessors of a task have been named before.
void GraphLinks::link_any(const TaskStore& tasks) {
  std::vector<std::uint32_t> seen(tasks.size(), 0);
  const auto each = [&](std::uint32_t task, std::uint32_t stamp, auto&& then) {
    for (const std::uint32_t before : tasks.predecessors(task))
      if (std::exchange(seen[before], stamp) != stamp) then(before);
  };
  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    std::uint32_t count = 0;
    each(task, task + 1, [&](std::uint32_t before) { ++ends_[before], ++count; });
    waits_[task] = count << 2 | priority_in(waits_[task]);
  }
  turn_counts_to_ends();
  std::fill(seen.begin(), seen.end(), 0);
  for (std::uint32_t task = 0; task < tasks.size(); ++task)
    each(task, task + 1, [&](std::uint32_t before) { successors_[ends_[before]++] = task; });
}

/// Turns counts to the begins of lists that lie end to end.
void GraphLinks::turn_counts_to_ends() {
  std::uint32_t begin = 0;
  for (std::uint32_t& count : ends_) begin += std::exchange(count, begin);
  successors_.resize(begin);
}

void GraphLinks::describe(RunConstants& run) const {
  run.flags = kRootsUniform | kRootsDense;
  for (std::uint32_t task = 0, left = roots_; left; ++task) {
    if (predecessors_in(waits_[task])) continue;
    if (priority_in(waits_[task]) != static_cast<std::uint32_t>(Priority::inherit)) run.flags &= ~kRootsUniform;
    if (task != run.root_count) run.flags &= ~kRootsDense;
    run.root_task = task;
    ++run.root_count;
    --left;
  }
  for (std::uint32_t task = 0; task < waits_.size(); ++task) run.sinks += count(task) == 0;
}

}  // namespace flywheel::detail
