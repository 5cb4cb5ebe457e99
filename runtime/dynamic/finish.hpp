// Finishing a task: its successors hear of it, the last one to tell a successor makes it ready.
#pragma once

#include "../base/counter.hpp"
#include "block.hpp"
#include "completion.hpp"
#include "spawn.hpp"
#include "../records/task_slot.hpp"

namespace flywheel {

/// A task between the queue and its end.
struct PrefetchedTask {
  Item item;
  const TaskSlot* task_slot;      // the worker's copies of its record and its run's line
  Outcome outcome;             // what its body asked for
  std::uint32_t slot;      // which of the executor's two task slots holds it
  ClaimedWorker claim;               // an idle worker claimed in advance for the successor, if any
  std::uint64_t next;      // packed: the successor, if there is one and this task is its only predecessor
  std::uint64_t done;      // the completion word, should this task end its run
  std::uint32_t level;     // the successor's priority
  bool ends_run;           // nothing else of the run is left when it has run
  std::uint32_t waits_at;  // the most urgent level at which work waited when it was staged, if that is above the lowest
  bool runs;               // false: skipped, its successors only hear of it
  bool failed;
  bool live;
};

/// A kept successor overtakes the queues, so nothing more urgent may have waited there.
FLYWHEEL_TASK inline bool may_keep(const DeviceState& dev, const PrefetchedTask& task, std::uint32_t level) {
  return dev.keep_successor && level <= task.waits_at;
}

/// Finishing the long way: failures, spawns, several successors or predecessors. Works on a copy of the task, out of
/// line, so that the short way stays short.
template <class P>
class LongFinish {
 public:
  FLYWHEEL_TASK LongFinish(const DeviceState& dev, std::uint32_t id, LocalWork& work, const PrefetchedTask& task, const TaskSlot* behind,
                           std::uint64_t kept)
      : dev_(dev), work_(work), id_(id), task_(task), header_(task.task_slot->record.header),
        run_(task.task_slot->run.constants), behind_(behind), kept_(kept) {}

  /// Returns the item to keep, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t operator()() {
    note_outcome();
    single_ = !task_.outcome.spawned && !(header_.flags & kTaskSpawned);
    if (header_.edge_count == 0) notify_run();
    else notify_successors();
    if (header_.flags & kTaskSpawned) recycle_spawned<P>(dev_, task_.item.record, Views<P>{dev_}.wait(id_));
    return kept_;
  }

 private:
  static constexpr std::uint32_t kChunk = sizeof(LocalWork::ready[0]) / sizeof(std::uint64_t);
  static constexpr std::uint32_t kAtOnce = 4;  // counters on their way to L2 together

  FLYWHEEL_TASK void note_outcome() {
    if (!task_.runs) return;
    RunState& state = dev_.runs[task_.item.run];
    if (task_.outcome.code) record_fault<P>(state, task_.outcome.code, header_.local);
    // Relaxed: this task's own arrival releases it to the finisher of the iteration.
    if (task_.outcome.stop) P::device(state.line.stop).store(1, Order::relaxed);
    task_.failed |= task_.outcome.code != 0;
  }

  /// An arrival is a trip to L2: of several sinks of one run that come one behind the other, the last arrives for all. The run
  /// cannot end before that one, so nothing waits for the others, and the slot has no other run meanwhile.
  FLYWHEEL_TASK void notify_run() {
    const bool plain = !task_.failed && !task_.outcome.stop && is_sink_of_several(header_, run_);
    if (plain && single_ && behind_ && behind_->run.constants.slot == run_.slot &&
        is_sink_of_several(behind_->record.header, behind_->run.constants)) {
      ++work_.sinks_done;
      return;
    }
    arrive_sink<P>(dev_, id_, run_, single_ && run_.sinks == 1, !task_.failed, 1 + work_.sinks_done);
    work_.sinks_done = 0;
  }
  FLYWHEEL_TASK static bool is_sink_of_several(const TaskHeader& header, const RunConstants& run) {
    return header.edge_count == 0 && run.sinks != 1 && !(header.flags & kTaskSpawned);
  }

  /// Successors are told a few at a time, so that their counters' trips to L2 overlap, and published in chunks.
  FLYWHEEL_TASK void notify_successors() {
    P::release_fence();
    for (std::uint32_t base = 0; base < header_.edge_count; base += kChunk) {
      const std::uint32_t n = header_.edge_count - base < kChunk ? header_.edge_count - base : kChunk;
      notify_chunk(dev_.edges + header_.first_edge + base, n);
    }
  }

  FLYWHEEL_TASK void notify_chunk(const Edge* edges, std::uint32_t n) {
    std::uint32_t counts[kPriorities] = {};
    for (std::uint32_t base = 0; base < n; base += kAtOnce) {
      Edge edge[kAtOnce];
      Arrival arrival[kAtOnce];
      for (std::uint32_t i = 0; i < kAtOnce; ++i) edge[i] = edges[base + i < n ? base + i : 0];
      for (std::uint32_t i = 0; i < kAtOnce; ++i)
        arrival[i] = base + i < n ? tell(edge[i]) : Arrival{false, false};
      for (std::uint32_t i = 0; i < kAtOnce; ++i)
        if (arrival[i].last) collect(edge[i], arrival[i], counts);
    }
    P::acquire_fence();  // of what other predecessors released in arrive(); publish_items() passes it on
    for (std::uint32_t level = 0; level < kPriorities; ++level)
      if (counts[level]) publish_items<P>(dev_, id_, counts[level], level, work_.ready[level]);
  }

  /// A sole predecessor that spawned nothing needs no counter: nobody else ever touches it.
  FLYWHEEL_TASK Arrival tell(const Edge& edge) const {
    if (single_ && edge.predecessors == 1) return {true, task_.failed};
    return arrive<P>(run_.bank()[edge.task], task_.failed, edge.predecessors);
  }

  FLYWHEEL_TASK void collect(const Edge& edge, Arrival arrival, std::uint32_t* counts) {
    const std::uint32_t level = level_of(edge.priority, run_.priority);
    const std::uint64_t item = Item{run_.first_record + edge.task, task_.item.run, arrival.failed}.pack();
    if (kept_ == kEmptyMailbox && may_keep(dev_, task_, level)) kept_ = item;
    else if (level == 0) work_.ready[0][counts[0]++] = item;
    else if (level == 1) work_.ready[1][counts[1]++] = item;
    else work_.ready[2][counts[2]++] = item;
  }

  const DeviceState& dev_;
  LocalWork& work_;
  const std::uint32_t id_;
  PrefetchedTask task_;
  const TaskHeader& header_;
  const RunConstants& run_;
  const TaskSlot* behind_;  // of the task that the executor goes over to, if there is one
  std::uint64_t kept_;
  bool single_ = true;
};

template <class P>
FLYWHEEL_COLD std::uint64_t finish_long_way(const DeviceState& dev, std::uint32_t id, LocalWork& work, const PrefetchedTask& task,
                                            const TaskSlot* behind, std::uint64_t kept) {
  return LongFinish<P>(dev, id, work, task, behind, kept)();
}

template <class P>
class Finisher {
 public:
  FLYWHEEL_TASK Finisher(const DeviceState& dev, std::uint32_t id, LocalWork& work)
      : dev_(dev), work_(work), views_{dev}, ready_(dev, id), id_(id) {}

  /// Before the record is there: a worker that had to hand its last task's successor over expects to do so again, and
  /// claims an idle one already. The claim travels with the record, off the path from task to task.
  /// `idle`: there is time for that, for the record has to come.
  FLYWHEEL_TASK void expect(PrefetchedTask& task, bool idle) {
    if (!idle) planned_.wanted = 0;
    task.claim = ready_.claim_planned(planned_);
    planned_.wanted = 0;
  }

  /// The body takes longer than a hand-over: whoever was claimed for its successor had better look for other work.
  FLYWHEEL_TASK void let_go(PrefetchedTask& task) const {
    if (task.claim.taken()) ready_.release_claimed(task.claim);
    task.claim.wanted = 0;
  }

  /// While the task runs: what finishing it the short way will need.
  FLYWHEEL_TASK void prepare(PrefetchedTask& task) const {
    const TaskHeader& header = task.task_slot->record.header;
    const RunConstants& run = task.task_slot->run.constants;
    const bool spawned = header.flags & kTaskSpawned;
    task.waits_at = kPriorities - 1;
    task.next = kEmptyMailbox;
    task.ends_run = header.edge_count == 0 && run.sinks == 1 && run.repeat == 1 && !spawned;
    task.done = completion_word(run.generation, 0);
    task.level = level_of(header.edge_priority, run.priority);
    if (header.edge_count == 0) return;
    if (header.edge_count == 1 && header.edge_predecessors == 1 && !spawned)
      task.next = Item{run.first_record + header.edge_task, task.item.run, false}.pack();
    if (!dev_.keep_successor) return;
    // Relaxed: hints, as in read_broadcast(). Both are on their way before one is looked at.
    static_assert(kPriorities == 3);
    const std::int64_t high = P::device(dev_.control->broadcast.queued[0]).load(Order::relaxed);
    const std::int64_t normal = P::device(dev_.control->broadcast.queued[1]).load(Order::relaxed);
    task.waits_at = high > 0 ? 0 : normal > 0 ? 1 : kPriorities - 1;
  }

  /// `ahead`: what is staged behind the task.
  FLYWHEEL_TASK void operator()(PrefetchedTask& task, const PrefetchedTask& ahead) {
    const bool plain = task.runs && !(task.outcome.code | task.outcome.spawned | task.outcome.stop);
    if (plain && task.ends_run) {
      end_run<P>(dev_, task.item.run, task.done);
    } else if (plain && task.next != kEmptyMailbox) {
      pass_on(task);
    } else {
      const PrefetchedTask copy = task;  // of which the address may be taken
      kept_ = finish_long_way<P>(dev_, id_, work_, copy, ahead.live ? ahead.task_slot : nullptr, kept_);
    }
    let_go(task);
  }

  /// The successor this worker kept for itself, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t take_kept() {
    const std::uint64_t item = kept_;
    kept_ = kEmptyMailbox;
    return item;
  }
  FLYWHEEL_TASK bool has_kept() const { return kept_ != kEmptyMailbox; }

 private:
  /// The short way: nothing happened, and the one successor has no other predecessor. It stays with this worker, or goes
  /// to the one that was claimed in advance, or to whoever is idle.
  FLYWHEEL_TASK void pass_on(PrefetchedTask& task) {
    if (kept_ == kEmptyMailbox && may_keep(dev_, task, task.level)) {
      kept_ = task.next;
    } else if (task.claim.taken()) {
      ready_.deliver_to_claimed(task.claim, task.next);
      planned_ = ready_.plan_claim_after(task.claim);
      task.claim.wanted = 0;
    } else {
      work_.ready[0][0] = task.next;
      publish_items<P>(dev_, id_, 1, task.level, work_.ready[0]);
      planned_ = ready_.plan_claim();
    }
  }

  const DeviceState& dev_;
  LocalWork& work_;
  Views<P> views_;
  Ready<P> ready_;
  std::uint32_t id_;
  std::uint64_t kept_ = kEmptyMailbox;
  ClaimedWorker planned_{};  // of the worker that the next successor goes to, when this one last handed a task over
};

}  // namespace flywheel
