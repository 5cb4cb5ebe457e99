// The dependencies of a dynamic graph turned round: the successors of each task, for the edges that workers read.
// Included by graph_image.hpp.
#pragma once

#include <span>
#include <vector>

#include "../../runtime/records/run.hpp"
#include "../plan/graph.hpp"

namespace flywheel::detail {

/// Made in time that is linear in tasks and edges. The vectors may be used for one graph after the other.
class GraphLinks {
 public:
  /// Throws GraphError for a cycle.
  void link(const Graph& graph);

  std::uint32_t edges() const { return static_cast<std::uint32_t>(successors_.size()); }
  std::uint32_t roots() const { return roots_.count; }
  /// The first of the successors of a task among all successors.
  std::uint32_t first(std::uint32_t task) const { return task ? ends_[task - 1] : 0; }
  std::uint32_t count(std::uint32_t task) const { return ends_[task] - first(task); }
  /// The successor that the task's worker may await, see runtime/dynamic/awaited.hpp; kNone: there is none. No two tasks have
  /// the same.
  std::uint32_t awaited(std::uint32_t task) const { return awaited_[task]; }
  static constexpr std::uint32_t kNone = ~0u;
  /// All successors, those of the first task first. Of each task they rise.
  std::span<const std::uint32_t> successors() const { return successors_; }
  /// Of each task, see wait_word(): predecessors that are named twice count once.
  std::span<const std::uint32_t> waits() const { return waits_; }
  /// Fills in the fields that describe sinks and roots.
  void describe(RunConstants& run) const;
  std::size_t bytes() const {
    return (ends_.capacity() + successors_.capacity() + awaited_.capacity() + waits_.capacity()) * sizeof(std::uint32_t);
  }

 private:
  /// What describe() says of the roots.
  struct Roots {
    std::uint32_t count = 0, last = 0;
    bool inherit = true;  // all have the priority of the run

    void note(std::uint32_t task, std::uint32_t waits) {
      if (predecessors_in(waits)) return;
      ++count;
      last = task;
      inherit &= priority_in(waits) == static_cast<std::uint32_t>(Priority::inherit);
    }
  };

  void link_in_order(const TaskStore& tasks);
  void link_any(const TaskStore& tasks);
  void link_range(const TaskStore& tasks, std::uint32_t task, std::uint32_t end);
  bool link_one(std::uint32_t before, std::uint32_t task, bool taken);
  void turn_counts_to_ends();
  std::vector<std::uint32_t> ends_;  // of the successors of each task
  std::vector<std::uint32_t> successors_;
  std::vector<std::uint32_t> awaited_;
  std::vector<std::uint32_t> waits_;
  Roots roots_;
  std::uint32_t sinks_ = 0;
};

}  // namespace flywheel::detail
