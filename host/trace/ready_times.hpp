// When each task of a traced dynamic run or batch became ready, worked out on the host from the spans and the graph. The report
// and Trace::queue_lengths() use it.
#pragma once

#include <map>
#include <vector>

#include "trace.hpp"

namespace flywheel::detail {

/// A body, and when it could have begun.
struct ReadyTask {
  const TraceSpan* body;
  double ready_ns;          // at most when the body began
  const TraceSpan* before;  // the predecessor that ended last; null: a root, or a task of a batch
};

/// Of the bodies whose begin is known to hang on others: not of spawned tasks, nor of the library's own.
class ReadyTimes {
 public:
  explicit ReadyTimes(const Trace& trace);
  /// By the begin of the body.
  const std::vector<ReadyTask>& tasks() const { return tasks_; }

 private:
  using Bodies = std::vector<const TraceSpan*>;  // by their end

  void sort_bodies();
  void find_predecessors();
  ReadyTask ready(const TraceSpan& body) const;
  ReadyTask ready_in_graph(const TraceSpan& body) const;
  double pass_begin(std::uint32_t pass) const;
  double part_begin(std::uint32_t task) const;

  const Trace& trace_;
  std::map<std::uint64_t, Bodies> bodies_;  // by pass and task: a loop runs a task several times a pass
  std::map<std::uint32_t, double> pass_ends_;
  std::vector<double> fetches_;  // a batch: ends of the library's tasks, in order
  std::vector<std::vector<std::uint32_t>> predecessors_;
  std::vector<ReadyTask> tasks_;
};

}  // namespace flywheel::detail
