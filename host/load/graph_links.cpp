#include "graph_links.hpp"

#include <algorithm>

#include "../plan/graph_cycle.hpp"

namespace flywheel::detail {

namespace {
/// Calls `then` with each value of a list and its position.
template <class T, class Then>
void each_of(const ChunkList<T>& list, Then&& then) {
  for (std::uint32_t i = 0; i < list.size();)
    for (const T& value : list.piece(i, list.size())) then(i++, value);
}
}  // namespace

void GraphLinks::link(const Graph& graph) {
  const TaskStore& tasks = graph.tasks();
  if (tasks.may_have_cycle())
    if (const std::string cycle = find_cycle(graph); !cycle.empty())
      throw GraphError("the graph has a cycle: " + cycle + ". Remove one of these dependencies.");
  ends_.assign(tasks.size(), 0);
  awaited_.assign(tasks.size(), kNone);
  waits_.resize(tasks.size());
  roots_ = {};
  if (tasks.in_order()) link_in_order(tasks);
  else link_any(tasks);
}

/// A counting sort of the edges by predecessor. Filling moves each begin to its list's end.
void GraphLinks::link_in_order(const TaskStore& tasks) {
  const ChunkList<std::uint32_t>& before = tasks.all_predecessors();
  each_of(before, [&](std::uint32_t, std::uint32_t task) { ++ends_[task]; });
  turn_counts_to_ends();
  ChunkList<std::uint32_t>::Reader next(before, 0);
  each_of(tasks.tasks(), [&](std::uint32_t task, const StoredTask& stored) {
    note_waits(task, stored.waits);
    bool taken = false;
    for (std::uint32_t left = predecessors_in(stored.waits); left; --left) {
      const std::uint32_t before = next.next();
      successors_[ends_[before]++] = task;
      if (!taken) taken = let_await(before, task);
    }
  });
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
    note_waits(task, count << 2 | priority_in(tasks.tasks()[task].waits));
  }
  turn_counts_to_ends();
  std::fill(seen.begin(), seen.end(), 0);
  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    bool taken = false;
    each(task, task + 1, [&](std::uint32_t before) {
      successors_[ends_[before]++] = task;
      if (!taken) taken = let_await(before, task);
    });
  }
}

/// The first predecessor that awaits no other awaits the task: in grids that is its own point one step before.
bool GraphLinks::let_await(std::uint32_t before, std::uint32_t task) {
  if (awaited_[before] != kNone) return false;
  awaited_[before] = task;
  return true;
}

/// Turns counts to the begins of lists that lie end to end. A task without successors is a sink.
void GraphLinks::turn_counts_to_ends() {
  std::uint32_t begin = 0;
  sinks_ = 0;
  for (std::uint32_t& count : ends_) {
    sinks_ += count == 0;
    begin += std::exchange(count, begin);
  }
  successors_.resize(begin);
}

/// Roots come in rising order: if the last of n is task n - 1, they are the first n tasks.
void GraphLinks::describe(RunConstants& run) const {
  run.flags = 0;
  if (roots_.inherit) run.flags |= kRootsUniform;
  if (roots_.last + 1 == roots_.count) run.flags |= kRootsDense;
  run.root_task = roots_.last;
  run.root_count = roots_.count;
  run.sinks = sinks_;
}

}  // namespace flywheel::detail
