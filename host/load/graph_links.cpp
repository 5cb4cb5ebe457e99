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

/// Which predecessors of a task have been named before. For one task after the other.
class Seen {
 public:
  explicit Seen(std::size_t tasks) : stamp_of_(tasks, 0) {}
  bool is_new(std::uint32_t before, std::uint32_t task) { return std::exchange(stamp_of_[before], task + 1) != task + 1; }
  void forget() { std::fill(stamp_of_.begin(), stamp_of_.end(), 0); }

 private:
  std::vector<std::uint32_t> stamp_of_;
};

std::uint32_t with_count(std::uint32_t wait_word, std::uint32_t count) { return count << 2 | priority_in(wait_word); }
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

/// A counting sort of the edges by predecessor. Filling moves each begin to its list's end. What is named twice counts once.
void GraphLinks::link_in_order(const TaskStore& tasks) {
  const ChunkList<std::uint32_t>& before = tasks.all_predecessors();
  each_of(before, [ends = ends_.data()](std::uint32_t, std::uint32_t task) { ++ends[task]; });
  const std::vector<std::uint32_t>& repeats = tasks.repeats();
  Seen seen(repeats.empty() ? 0 : tasks.size());
  for (const std::uint32_t task : repeats)
    for (const std::uint32_t again : tasks.predecessors(task)) ends_[again] -= !seen.is_new(again, task);
  turn_counts_to_ends();
  seen.forget();
  std::uint32_t from = 0;
  for (const std::uint32_t task : repeats) {
    link_range(tasks, from, task);
    std::uint32_t count = 0;
    bool taken = false;
    for (const std::uint32_t before : tasks.predecessors(task))
      if (seen.is_new(before, task)) ++count, taken = link_one(before, task, taken);
    roots_.note(task, waits_[task] = with_count(tasks.tasks()[task].waits, count));
    from = task + 1;
  }
  link_range(tasks, from, tasks.size());
}

/// Adds the tasks [task, end), of which none names a predecessor twice, to the successors of those that they wait for. The
/// loop works on copies of what it could change: the compiler would fetch them from memory for each task.
void GraphLinks::link_range(const TaskStore& tasks, std::uint32_t task, std::uint32_t end) {
  if (task == end) return;
  ChunkList<std::uint32_t>::Reader next(tasks.all_predecessors(), tasks.tasks()[task].first_predecessor);
  std::uint32_t *const ends = ends_.data(), *const successors = successors_.data(), *const awaited = awaited_.data(),
                       *const waits = waits_.data();
  Roots roots = roots_;
  while (task < end)
    for (const StoredTask& stored : tasks.tasks().piece(task, end - task)) {
      roots.note(task, waits[task] = stored.waits);
      bool taken = false;
      for (std::uint32_t left = predecessors_in(stored.waits); left; --left) {
        const std::uint32_t before = next.next();
        successors[ends[before]++] = task;
        if (!taken && awaited[before] == kNone) taken = true, awaited[before] = task;
      }
      ++task;
    }
  roots_ = roots;
}

/// Adds a task to the successors of another. The first predecessor that awaits no other awaits the task: in grids that is its
/// own point one step before. `taken`: there is one. Returns the same.
bool GraphLinks::link_one(std::uint32_t before, std::uint32_t task, bool taken) {
  successors_[ends_[before]++] = task;
  if (taken || awaited_[before] != kNone) return taken;
  awaited_[before] = task;
  return true;
}

/// The same with edges in any order.
void GraphLinks::link_any(const TaskStore& tasks) {
  Seen seen(tasks.size());
  const auto each = [&](std::uint32_t task, auto&& then) {
    for (const std::uint32_t before : tasks.predecessors(task))
      if (seen.is_new(before, task)) then(before);
  };
  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    std::uint32_t count = 0;
    each(task, [&](std::uint32_t before) { ++ends_[before], ++count; });
    roots_.note(task, waits_[task] = with_count(tasks.tasks()[task].waits, count));
  }
  turn_counts_to_ends();
  seen.forget();
  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    bool taken = false;
    each(task, [&](std::uint32_t before) { taken = link_one(before, task, taken); });
  }
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
