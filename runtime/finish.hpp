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
  Asked asked;             // what its body asked for
  std::uint32_t slot;      // which of the crew's two stages holds it
  Claim hand;              // an idle worker claimed in advance for the successor, if any
  std::uint64_t next;      // packed: the successor, if there is one and this task is its only predecessor
  std::uint32_t urgent[2]; // tasks queued at the two higher priorities, when it was staged
  bool runs;               // false: skipped, its successors only hear of it
  bool failed;
  bool live;
};

template <class P>
class Finisher {
 public:
  FLYWHEEL_TASK Finisher(const World& world, std::uint32_t id, Desk& desk)
      : world_(world), desk_(desk), wires_{world}, ready_(world, id), id_(id) {}

  /// Before the record is there: a worker that had to hand its last task's successor over expects to do so again, and
  /// claims an idle one already. The claim travels with the record, off the path from task to task.
  FLYWHEEL_TASK void expect(Staged& task) {
    task.hand = idle_hint_ ? ready_.take_hand(idle_hint_) : Claim{0, 0, 0};
    idle_hint_ = 0;
  }

  /// While the task runs: what finishing it will need.
  FLYWHEEL_TASK void prepare(Staged& task) {
    const TaskHeader& header = task.stage->record.header;
    task.urgent[0] = task.urgent[1] = 0;
    task.next = kEmptyMailbox;
    if (header.edge_count == 0) return;
    if (header.edge_count == 1 && header.edge_predecessors == 1 && !(header.flags & kTaskSpawned))
      task.next = Item{task.stage->run.constants.first_record + header.edge_task, task.item.run, false}.pack();
    for (std::uint32_t level = 0; world_.keep_successor && level < 2; ++level)
      task.urgent[level] = wires_.ready(level).size_hint();
  }

  FLYWHEEL_TASK void operator()(Staged& task) {
    const bool plain = task.runs && !(task.asked.code || task.asked.spawned || task.asked.stop);
    if (plain && task.next != kEmptyMailbox) return pass_on(task);
    note_outcome(task);
    const TaskHeader& header = task.stage->record.header;
    const bool single = !task.asked.spawned && !(header.flags & kTaskSpawned);
    if (header.edge_count == 0) {
      const RunConstants& run = task.stage->run.constants;
      arrive_sink<P>(world_, id_, run, single && run.sinks == 1, !task.failed);
    } else {
      tell_successors(task, single);
    }
    if (task.hand.bits()) ready_.drop_hand(task.hand);
    if (header.flags & kTaskSpawned) recycle_spawned<P>(world_, task.item.record, wires_.wait(id_));
  }

  /// The successor this worker kept for itself, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t take_kept() {
    const std::uint64_t item = kept_;
    kept_ = kEmptyMailbox;
    return item;
  }
  FLYWHEEL_TASK bool has_kept() const { return kept_ != kEmptyMailbox; }

 private:
  /// The short way: nothing happened, and the one successor has no other predecessor.
  FLYWHEEL_TASK void pass_on(Staged& task) {
    const TaskHeader& header = task.stage->record.header;
    const std::uint32_t level = level_of(header.edge_priority, task.stage->run.constants.priority);
    if (keep_or_hand_over(task, task.next, level)) return;
    desk_.ready[0][0] = task.next;
    publish_items<P>(world_, id_, 1, level, desk_.ready[0]);
    idle_hint_ = ready_.look();
  }

  static constexpr std::uint32_t kChunk = sizeof(Desk::ready[0]) / sizeof(std::uint64_t);
  static constexpr std::uint32_t kAtOnce = 4;  // counters on their way to L2 together

  FLYWHEEL_TASK void note_outcome(Staged& task) const {
    if (!task.runs || !(task.asked.code || task.asked.stop)) return;
    RunState& run = world_.runs[task.item.run];
    if (task.asked.code) record_fault<P>(run, task.asked.code, task.stage->record.header.local);
    // Relaxed: this task's own arrival releases it to the finisher of the iteration.
    if (task.asked.stop) P::device(run.line.stop).store(1, Order::relaxed);
    task.failed |= task.asked.code != 0;
  }

  /// Successors are told a few at a time, so that their counters' trips to L2 overlap, and published in chunks.
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
    if (keep_or_hand_over(task, item, level)) return;
    desk_.ready[0][0] = item;
    publish_items<P>(world_, id_, 1, level, desk_.ready[0]);
  }

  FLYWHEEL_TASK void tell_chunk(Staged& task, const Edge* edges, std::uint32_t n, bool single) {
    std::uint32_t counts[kPriorities] = {};
    for (std::uint32_t base = 0; base < n; base += kAtOnce) {
      Edge edge[kAtOnce];
      Arrival arrival[kAtOnce];
      for (std::uint32_t i = 0; i < kAtOnce; ++i) edge[i] = edges[base + i < n ? base + i : 0];
      for (std::uint32_t i = 0; i < kAtOnce; ++i)
        arrival[i] = base + i < n ? tell(task, edge[i], single) : Arrival{false, false};
      for (std::uint32_t i = 0; i < kAtOnce; ++i)
        if (arrival[i].last) collect(task, edge[i], arrival[i], counts);
    }
    P::acquire_fence();
    for (std::uint32_t level = 0; level < kPriorities; ++level)
      if (counts[level]) publish_items<P>(world_, id_, counts[level], level, desk_.ready[level]);
  }

  FLYWHEEL_TASK void collect(const Staged& task, const Edge& edge, Arrival arrival, std::uint32_t* counts) {
    const std::uint32_t level = level_of(edge.priority, task.stage->run.constants.priority);
    const std::uint64_t item = item_of(task, edge, arrival);
    if (may_keep_now(task, level)) kept_ = item;
    else if (level == 0) desk_.ready[0][counts[0]++] = item;
    else if (level == 1) desk_.ready[1][counts[1]++] = item;
    else desk_.ready[2][counts[2]++] = item;
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
    if (may_keep_now(task, level)) {
      kept_ = item;
      return true;
    }
    if (!task.hand.bits()) return false;
    ready_.give_hand(task.hand, item);
    idle_hint_ = task.hand.before & ~task.hand.wanted;
    task.hand.wanted = 0;
    return true;
  }

  /// A kept successor overtakes the queues, so nothing more urgent may have waited there.
  FLYWHEEL_TASK bool may_keep_now(const Staged& task, std::uint32_t level) const {
    if (!world_.keep_successor || kept_ != kEmptyMailbox) return false;
    return (level < 1 || task.urgent[0] == 0) && (level < 2 || task.urgent[1] == 0);
  }

  const World& world_;
  Desk& desk_;
  Wires<P> wires_;
  Ready<P> ready_;
  std::uint32_t id_;
  std::uint64_t kept_ = kEmptyMailbox;
  std::uint64_t idle_hint_ = 0;  // who else was idle when this worker last handed a task over
};

}  // namespace flywheel
