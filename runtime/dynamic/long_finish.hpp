// The long way to finish a task: failures, spawned tasks, several successors or predecessors, sinks of several. Finisher
// (finish.hpp) takes it, and control.hpp for tasks that choose what runs next.
#pragma once

#include "../base/counter.hpp"
#include "../ready/completion.hpp"
#include "../records/task_slot.hpp"
#include "block.hpp"
#include "local_work.hpp"

namespace flywheel::detail {

/// A task from its fetch to its end.
struct PrefetchedTask {
  Item item;
  const TaskSlot* task_slot;  // copies of its record and its run's line
  Outcome outcome;            // what its body asked for
  std::uint32_t slot;         // which of the executor's two task slots holds it
  ClaimedWorker claim;        // an idle worker claimed in advance for the successor, if any
  std::uint64_t next;         // packed: the successor, if it is the only one and has no other predecessor
  std::uint64_t done;         // the completion word, in case this task ends its run
  std::uint32_t level;        // the successor's priority level
  bool ends_run;              // the task is the only sink of its run's only iteration
  std::uint32_t waits_at;     // the most urgent level with queued work when the task was fetched; else the lowest
  bool runs;                  // false: skipped, its successors are only notified
  bool failed;                // it failed or was skipped
};

/// Whether the worker may keep a successor of `level`. A kept successor overtakes the queues, so nothing more urgent
/// may wait.
FLYWHEEL_TASK inline bool may_keep(const DeviceState& dev, const PrefetchedTask& task, std::uint32_t level) {
  return dev.keep_successor && level <= task.waits_at;
}

/// The long way to finish a task: failures, spawned tasks, several successors or predecessors. It works on a copy of
/// the task, out of line, so that the short way stays short.
template <class P>
class LongFinish {
 public:
  FLYWHEEL_TASK LongFinish(const DeviceState& dev, std::uint32_t id, LocalWork& work, const PrefetchedTask& task,
                           const TaskSlot* behind, std::uint64_t kept)
      : dev_(dev),
        work_(work),
        id_(id),
        task_(task),
        header_(task.task_slot->record.header),
        run_(task.task_slot->run.constants),
        behind_(behind),
        kept_(kept) {}

  /// An arrival of a sink is a trip to L2, so when a worker runs several sinks of one run in a row, the last of them arrives
  /// for all. The run cannot end before that arrival: no task waits for the earlier ones, and the run slot is not reused.
  /// `behind` is the task that the worker runs next; the one before it was plain.
  FLYWHEEL_TASK static bool arrives_for_both(const TaskSlot& behind, const TaskSlot& before) {
    return behind.run.constants.slot == before.run.constants.slot &&
           is_sink_of_several(before.record.header, before.run.constants) &&
           is_sink_of_several(behind.record.header, behind.run.constants);
  }

  /// Of a task with successors. Returns the one to keep, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t operator()() {
    begin();
    notify_successors();
    return end();
  }
  /// The same of a sink.
  FLYWHEEL_TASK std::uint64_t of_sink() {
    begin();
    notify_run();
    return end();
  }

 protected:
  FLYWHEEL_TASK static bool is_sink_of_several(const TaskHeader& header, const RunConstants& run) {
    return header.edge_count == 0 && run.sinks != 1 && !header.shares_place();
  }

  static constexpr std::uint32_t kChunk = sizeof(LocalWork::ready[0]) / sizeof(std::uint64_t);
  static constexpr std::uint32_t kAtOnce = 4;    // arrivals whose trips to L2 overlap
  static constexpr std::uint64_t kNotReady = 1;  // a counter

  FLYWHEEL_TASK void begin() {
    note_outcome();
    single_ = !(task_.outcome.control & kHasSpawned) && !header_.shares_place();
  }
  FLYWHEEL_TASK std::uint64_t end() const {
    if (header_.flags & kTaskSpawned) recycle_spawned<P>(dev_, task_.item.record, Views<P>{dev_}.wait(id_));
    return kept_;
  }

  /// Records a failure, or a call of stop(), in the run's line.
  FLYWHEEL_TASK void note_outcome() {
    if (!task_.runs) return;
    RunState& state = dev_.runs[task_.item.run];
    if (task_.outcome.code) record_fault<P>(state, task_.outcome.code, header_.local);
    // Relaxed: pairs with the load in begin_iteration(); this task's own arrival, which comes later, releases it.
    if (task_.outcome.stop & kStopCalled) P::device(state.line.stop).store(1, Order::relaxed);
    task_.failed |= task_.outcome.code != 0;
  }

  /// Arrives for a sink, and for those before it: see arrives_for_both().
  FLYWHEEL_TASK void notify_run() {
    work_.followers = arrive_sink<P>(dev_, id_, run_, single_ && run_.sinks == 1, !task_.failed,
                                     skips_batch() ? run_.sinks : 1 + work_.sinks_done);
    work_.sinks_done = 0;
  }
  /// The task would have published the other tasks of its run: it arrives for all of them.
  FLYWHEEL_TASK bool skips_batch() const { return !task_.runs && header_.type == kFetchBatchType; }

  /// Arrives at the successors' counters, several at a time so that the trips to L2 overlap, and publishes in chunks
  /// those that became ready.
  FLYWHEEL_TASK void notify_successors() {
    if (header_.edge_count == 1 && single_ && header_.predecessors_of_edge() == 1) return notify_only();
    // Release fence: covers what this task wrote, for all arrivals below. Pairs with the acquire fence in
    // notify_chunk() of the last predecessor to arrive, see arrive() in counter.hpp.
    P::release_fence();
    for (std::uint32_t base = 0; base < header_.edge_count; base += kChunk) {
      const std::uint32_t n = header_.edge_count - base < kChunk ? header_.edge_count - base : kChunk;
      notify_chunk(dev_.edges + header_.first_edge + base, n);
    }
  }

  /// The only successor has no other predecessor.
  FLYWHEEL_TASK void notify_only() {
    std::uint32_t counts[kPriorities] = {};
    collect({header_.edge_task, 1, header_.edge_priority, 0}, {true, task_.failed}, counts);
    publish_collected(counts);
  }
  FLYWHEEL_TASK void publish_collected(const std::uint32_t (&counts)[kPriorities]) {
    for (std::uint32_t level = 0; level < kPriorities; ++level)
      if (counts[level]) publish_items<P>(dev_, id_, counts[level], level, work_.ready[level]);
  }

  /// Arrives at the counters of up to kChunk successors and publishes those that became ready.
  FLYWHEEL_TASK void notify_chunk(const Edge* edges, std::uint32_t n) {
    std::uint32_t counts[kPriorities] = {};
    for (std::uint32_t base = 0; base < n; base += kAtOnce) {
      Edge edge[kAtOnce];
      std::uint64_t now[kAtOnce];
      for_constants<kAtOnce>([&](auto i) { edge[i] = edges[base + i < n ? base + i : 0]; });
      for_constants<kAtOnce>([&](auto i) {
        now[i] = kNotReady;
        if (base + i < n && !is_sole(edge[i])) now[i] = begin_arrival<P>(run_.bank()[edge[i].task], step());
      });
      for_constants<kAtOnce>([&](auto i) {
        if (base + i < n) end_notifying(edge[i], now[i], counts);
      });
    }
    // Acquire fence: pairs with the release fences of the other predecessors whose arrivals were counted here.
    // publish_items() passes on what they wrote.
    P::acquire_fence();
    publish_collected(counts);
  }

  FLYWHEEL_TASK std::uint64_t step() const { return task_.failed ? kFailedArrival : kArrival; }
  /// A sole predecessor that spawned nothing skips the counter: no other thread uses it.
  FLYWHEEL_TASK bool is_sole(const Edge& edge) const { return single_ && edge.predecessors == 1; }
  FLYWHEEL_TASK void end_notifying(const Edge& edge, std::uint64_t now, std::uint32_t* counts) {
    const Arrival arrival =
        is_sole(edge) ? Arrival{true, task_.failed} : end_arrival<P>(run_.bank()[edge.task], now, edge.predecessors);
    if (arrival.last) collect(edge, arrival, counts);
  }

  /// Takes a successor that became ready: the worker keeps it, or collects it with others of its level.
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
  const TaskSlot* behind_;  // the prefetched task that the executor runs next, if any
  std::uint64_t kept_;
  bool single_ = true;
};

}  // namespace flywheel::detail
