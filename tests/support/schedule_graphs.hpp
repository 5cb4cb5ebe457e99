// Graphs to compile, and a run of a plan on paper.
#pragma once

#include <algorithm>

#include "host/plan/schedule.hpp"
#include "support/expect.hpp"
#include "support/internals.hpp"
#include "support/seed.hpp"

namespace flywheel::testing {

/// Says what it takes; 0 says nothing.
struct Work {
  double ns;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  double cost_ns() const { return ns; }
};

using Tasks = std::vector<TaskRef<void>>;

inline Tasks add_works(Graph& graph, const std::vector<double>& costs) {
  Tasks tasks;
  for (const double ns : costs) tasks.push_back(graph.add(Work{ns}));
  return tasks;
}

/// Every task of a stage waits for every task of the stage before.
inline Graph stages(std::uint32_t count, std::uint32_t width, double cost_ns = 5000) {
  Graph graph;
  Tasks before;
  for (std::uint32_t stage = 0; stage < count; ++stage) {
    const Tasks now = add_works(graph, std::vector<double>(width, cost_ns));
    for (const auto& then : now)
      for (const auto& b : before) graph.edge(b, then);
    before = now;
  }
  return graph;
}

/// Two or more of these tasks, none of them placed where another is; or none.
inline void add_random_gang(Random& random, Graph& graph, const Tasks& tasks, std::uint32_t workers) {
  Tasks gang;
  std::vector<bool> taken(workers);
  for (const auto& task : tasks) {
    const std::uint32_t worker = graph.nodes()[task.index].worker;
    if (gang.size() == workers || pick(random, 0, 1) || (worker != kAnyWorker && taken[worker])) continue;
    if (worker != kAnyWorker) taken[worker] = true;
    gang.push_back(task);
  }
  if (gang.size() > 1) graph.together(gang);
}

/// Blocks of tasks, some of them joined all to all, with loose and double edges; some tasks are placed, some of the same block
/// run together if there are `gangs`. The numbers of the tasks say nothing about their order.
inline Graph random_dag(Random& random, std::uint32_t most, std::uint32_t workers, bool gangs = false) {
  const std::uint32_t n = pick(random, 1, most);
  Graph graph;
  Tasks tasks;
  for (std::uint32_t i = 0; i < n; ++i) {
    tasks.push_back(graph.add(Work{pick(random, 0, 3) == 0 ? 0.0 : pick(random, 1, 9000)}));
    if (pick(random, 0, 7) == 0) graph.place(tasks.back(), pick(random, 0, workers - 1));
  }
  std::shuffle(tasks.begin(), tasks.end(), random);
  for (std::uint32_t previous = 0, begin = 0; begin < n;) {
    const std::uint32_t end = std::min(n, begin + pick(random, 1, 8));
    const bool all_to_all = pick(random, 0, 1) == 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      for (std::uint32_t b = previous; all_to_all && b < begin; ++b) graph.edge(tasks[b], tasks[i]);
      for (std::uint32_t loose = begin ? pick(random, 0, 3) : 0; loose > 0; --loose)
        graph.edge(tasks[pick(random, 0, begin - 1)], tasks[i]);
    }
    if (gangs && pick(random, 0, 1)) add_random_gang(random, graph, {tasks.begin() + begin, tasks.begin() + end}, workers);
    previous = begin;
    begin = end;
  }
  return graph;
}

/// Tasks of 1 us, each on the worker given.
inline Tasks add_placed(Graph& graph, const std::vector<std::uint32_t>& workers) {
  const Tasks tasks = add_works(graph, std::vector<double>(workers.size(), 1000));
  for (std::size_t i = 0; i < workers.size(); ++i) graph.place(tasks[i], workers[i]);
  return tasks;
}

/// Made and proven.
inline SchedulePlan compile(const Graph& graph, std::uint32_t workers, const Compiled& how = compiled) {
  SchedulePlan plan = make_schedule(graph, workers, how);
  validate_schedule(plan, graph);
  return plan;
}

/// "0(3) 2(1)": the counters a task waits for.
inline std::string waits(const SchedulePlan& plan, std::uint32_t task) {
  std::string text;
  for (const CounterWait& wait : plan.tasks[task].waits)
    text += (text.empty() ? "" : " ") + std::to_string(wait.counter) + "(" + std::to_string(wait.arrivals) + ")";
  return text;
}

/// A run of several passes in which chance decides who moves next. Counters go on counting from pass to pass, as they
/// do in a Schedule.
class PaperRun {
 public:
  PaperRun(const SchedulePlan& plan, const Graph& graph, std::uint32_t passes)
      : plan_(plan),
        graph_(graph),
        passes_(passes),
        done_(plan.order.size()),
        runs_(plan.order.size()),
        arrived_(plan.arrivals.size()),
        ended_(graph.size()),
        sink_(graph.size(), true) {
    for (const GraphNode& node : graph.nodes())
      for (const std::uint32_t before : node.predecessors) sink_[before] = false;
  }

  /// What went wrong; empty if nothing did.
  std::string go(Random& random) {
    while (problem_.empty() && move_someone(random)) {}
    const bool all_ended = std::all_of(ended_.begin(), ended_.end(), [&](auto times) { return times == passes_; });
    return !problem_.empty() || all_ended ? problem_ : "the run got stuck";
  }

 private:
  bool move_someone(Random& random) {
    const auto workers = static_cast<std::uint32_t>(plan_.order.size());
    const std::uint32_t first = pick(random, 0, workers - 1);
    for (std::uint32_t i = 0; i < workers; ++i)
      if (move((first + i) % workers)) return true;
    return false;
  }
  bool move(std::uint32_t worker) {
    const auto& order = plan_.order[worker];
    if (done_[worker] == order.size() * passes_) return false;
    const std::uint32_t pass = static_cast<std::uint32_t>(done_[worker] / order.size());
    const std::uint32_t task = order[done_[worker] % order.size()];
    if (runs_[worker]) {
      if (!may_end(task, pass)) return false;
      end(task);
      ++done_[worker];
    } else {
      if (!may_start(task, pass)) return false;
      check_start(task, pass);
    }
    runs_[worker] = !runs_[worker];
    return true;
  }
  bool may_start(std::uint32_t task, std::uint32_t pass) const {
    const auto& waits = plan_.tasks[task].waits;
    return gate_ >= std::uint64_t{pass} * plan_.sinks && std::all_of(waits.begin(), waits.end(), [&](const auto& wait) {
             return arrived_[wait.counter] >= (pass + 1) * wait.arrivals;
           });
  }
  /// Those of a gang wait until all of them have started.
  bool may_end(std::uint32_t task, std::uint32_t pass) const {
    const std::uint32_t gang = graph_.nodes()[task].gang;
    return gang == kNoGang || std::ranges::all_of(graph_.gangs()[gang], [&](auto other) {
             const TaskPlan& plan = plan_.tasks[other];
             const std::size_t done = done_[plan.worker], at = pass * plan_.order[plan.worker].size() + plan.place;
             return done > at || (done == at && runs_[plan.worker]);
           });
  }
  void check_start(std::uint32_t task, std::uint32_t pass) {
    if (ended_[task] != pass) problem_ = "task " + std::to_string(task) + " runs twice";
    for (const std::uint32_t before : graph_.nodes()[task].predecessors)
      if (ended_[before] != pass + 1)
        problem_ = "task " + std::to_string(task) + " starts before task " + std::to_string(before) + " has ended";
  }
  void end(std::uint32_t task) {
    ++ended_[task];
    if (sink_[task]) ++gate_;
    if (plan_.tasks[task].signal != kNoCounter) ++arrived_[plan_.tasks[task].signal];
  }

  const SchedulePlan& plan_;
  const Graph& graph_;
  std::uint32_t passes_;
  std::vector<std::size_t> done_;  // tasks of each worker, over all passes
  std::vector<bool> runs_;         // whether each worker is inside a task
  std::vector<std::uint32_t> arrived_;
  std::vector<std::uint32_t> ended_;
  std::vector<bool> sink_;
  std::uint64_t gate_ = 0;
  std::string problem_;
};

}  // namespace flywheel::testing
