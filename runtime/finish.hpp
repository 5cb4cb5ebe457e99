// Finishing a task: its successors hear of it, the last one to tell a successor makes it ready.
#pragma once

#include "runtime/completion.hpp"
#include "runtime/counter.hpp"
#include "runtime/cpu_crew.hpp"
#include "runtime/spawn.hpp"

namespace flywheel {

/// A task between the queue and its end.
struct Staged {
  Item item;
  const Stage* stage;      // the worker's copies of its record and its run's line
  Outcome outcome;
  std::uint32_t slot;      // which of the crew's two stages holds it
  std::uint32_t hand;      // an idle worker claimed in advance for a successor, or kNobody
  std::uint32_t urgent[2]; // tasks queued at the two higher priorities, when it was staged
  bool runs;               // false: skipped, its successors only hear of it
  bool failed;
  bool live;
};

template <class P>
class Finisher {
 public:
  FLYWHEEL_TASK Finisher(const World& world, std::uint32_t id)
      : world_(world), wires_{world}, ready_(world, id), wait_(wires_.wait(id)) {}

  /// While the task runs: if it is certain to make a task ready that this worker will not keep, an idle worker is
  /// claimed already, and one trip to L2 is off the path from this task to that one.
  FLYWHEEL_TASK void prepare(Staged& task) const {
    const TaskHeader& header = task.stage->record.header;
    const bool certain = header.edge_count > world_.keep_successor && header.edge_predecessors == 1;
    task.hand = certain ? ready_.take_hand() : kNobody;
    if (header.edge_count == 0 || !world_.keep_successor) return;
    for (std::uint32_t level = 0; level < 2; ++level) task.urgent[level] = wires_.ready(level).size_hint();
  }

  FLYWHEEL_TASK void operator()(Staged& task) {
    note_outcome(task);
    const TaskHeader& header = task.stage->record.header;
    const bool single = !task.outcome.spawned && !(header.flags & kTaskSpawned);
    if (header.edge_count == 0) {
      const RunConstants& run = task.stage->run.constants;
      arrive_sink<P>(world_, ready_, run, single && run.sinks == 1, !task.failed);
    } else {
      tell_successors(task, single);
    }
    if (task.hand != kNobody) ready_.drop_hand(task.hand);
    if (header.flags & kTaskSpawned) recycle_spawned<P>(world_, task.item.record, wait_);
  }

  /// The successor this worker kept for itself, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t take_kept() {
    const std::uint64_t item = kept_;
    kept_ = kEmptyMailbox;
    return item;
  }
  FLYWHEEL_TASK bool has_kept() const { return kept_ != kEmptyMailbox; }

 private:
  static constexpr std::uint32_t kChunk = 16;

  FLYWHEEL_TASK void note_outcome(Staged& task) const {
    if (!task.runs || !(task.outcome.code || task.outcome.stop)) return;
    RunState& run = world_.runs[task.item.run];
    if (task.outcome.code) record_fault<P>(run, task.outcome.code, task.stage->record.header.local);
    // Relaxed: this task's own arrival releases it to the finisher of the iteration.
    if (task.outcome.stop) P::device(run.line.stop).store(1, Order::relaxed);
    task.failed |= task.outcome.code != 0;
  }

  /// Successors are told a few at a time, so that their counters' trips to L2 overlap.
  FLYWHEEL_TASK void tell_successors(Staged& task, bool single) {
    const TaskHeader& header = task.stage->record.header;
    if (header.edge_count == 1) {
      const Edge edge{header.edge_task, header.edge_predecessors, header.edge_priority, 0};
      return tell_one(task, edge, single);
    }
    P::release_fence();
    for (std::uint32_t base = 0; base < header.edge_count; base += kChunk) {
      const std::uint32_t n = header.edge_count - base < kChunk ? header.edge_count - base : kChunk;
      tell_chunk(task, world_.edges + header.first_edge + base, n, single);
    }
  }

  FLYWHEEL_TASK void tell_one(Staged& task, const Edge& edge, bool single) {
    Arrival arrival{true, task.failed};
    if (!sole(edge, single)) {
      P::release_fence();
      arrival = tell(task, edge, single);
      if (!arrival.last) return;
      P::acquire_fence();
    }
    const std::uint32_t level = level_of(edge.priority, task.stage->run.constants.priority);
    const std::uint64_t item = item_of(task, edge, arrival);
    if (!keep_or_hand_over(task, item, level)) ready_.publish_one(item, level);
  }

  FLYWHEEL_TASK void tell_chunk(Staged& task, const Edge* edges, std::uint32_t n, bool single) {
    Edge edge[kChunk];
    Arrival arrival[kChunk];
    for (std::uint32_t i = 0; i < kChunk; ++i) edge[i] = edges[i < n ? i : 0];
    for (std::uint32_t i = 0; i < kChunk; ++i) arrival[i] = i < n ? tell(task, edge[i], single) : Arrival{false, false};
    P::acquire_fence();
    std::uint64_t items[kPriorities][kChunk];
    std::uint32_t counts[kPriorities] = {};
    for (std::uint32_t i = 0; i < kChunk; ++i) {
      if (!arrival[i].last) continue;
      const std::uint32_t level = level_of(edge[i].priority, task.stage->run.constants.priority);
      const std::uint64_t item = item_of(task, edge[i], arrival[i]);
      if (!keep_or_hand_over(task, item, level)) items[level][counts[level]++] = item;
    }
    for (std::uint32_t level = 0; level < kPriorities; ++level)
      if (counts[level]) ready_.publish(counts[level], level, [&](std::uint32_t i) { return items[level][i]; });
  }

  /// A sole predecessor that spawned nothing needs no counter: nobody else ever touches it.
  FLYWHEEL_TASK static bool sole(const Edge& edge, bool single) { return single && edge.predecessors == 1; }

  FLYWHEEL_TASK Arrival tell(const Staged& task, const Edge& edge, bool single) const {
    if (sole(edge, single)) return {true, task.failed};
    return arrive<P>(task.stage->run.constants.bank()[edge.task], task.failed, edge.predecessors);
  }

  FLYWHEEL_TASK static std::uint64_t item_of(const Staged& task, const Edge& edge, Arrival arrival) {
    return Item{task.stage->run.constants.first_record + edge.task, task.item.run, arrival.failed}.pack();
  }

  /// The first ready successor stays with this worker, the next goes to the worker claimed in advance.
  FLYWHEEL_TASK bool keep_or_hand_over(Staged& task, std::uint64_t item, std::uint32_t level) {
    if (world_.keep_successor && kept_ == kEmptyMailbox && may_keep(task, level)) {
      kept_ = item;
      return true;
    }
    if (task.hand == kNobody) return false;
    ready_.give_hand(task.hand, item);
    task.hand = kNobody;
    return true;
  }

  /// A kept successor overtakes the queues, so nothing more urgent may have waited there.
  FLYWHEEL_TASK static bool may_keep(const Staged& task, std::uint32_t level) {
    return (level < 1 || task.urgent[0] == 0) && (level < 2 || task.urgent[1] == 0);
  }

  const World& world_;
  Wires<P> wires_;
  Ready<P> ready_;
  WaitContext wait_;
  std::uint64_t kept_ = kEmptyMailbox;
};

}  // namespace flywheel
