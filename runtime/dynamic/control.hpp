// Control in the graph: finishing a task that chooses which of its successors run, that begins a loop again, that has a
// continuation, or whose successors wait for any of several tasks. The finisher (finish.hpp) includes this header.
//
// A task that is passed over, because nobody chose it, is a skipped task: it arrives at its successors as one that failed
// does, and no counter has a field for it. So choices cost other tasks nothing. Two things tell it from a failure: the run has
// no fault, and a successor that waits for any of several tasks runs if one of them ran (kHasRun).
#pragma once

#include "long_finish.hpp"

namespace flywheel::detail {

/// Whether ControlledFinish finishes the task.
FLYWHEEL_TASK inline bool is_controlled(const PrefetchedTask& task) {
  return task.task_slot->record.header.flags & (kTaskContinued | kTaskControls) || task.outcome.control > kHasSpawned;
}

template <class P>
class ControlledFinish : LongFinish<P> {
  using Long = LongFinish<P>;
  using Long::Long, Long::dev_, Long::header_, Long::run_, Long::task_;

 public:
  FLYWHEEL_TASK ControlledFinish(const DeviceState& dev, std::uint32_t id, LocalWork& work, const PrefetchedTask& task,
                                 std::uint64_t kept)
      : Long(dev, id, work, task, nullptr, kept) {}

  /// Returns the successor to keep, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t operator()() {
    Long::begin();
    const std::uint32_t continuation = continuation_of(header_, task_.outcome.control);
    const bool again = task_.outcome.control & kAgain && !task_.failed;
    if (continuation != kNoRecord) notify_continuation(continuation);
    else if (again) publish({header_.edge_task, 1, header_.edge_priority, 0}, false);
    else if (header_.edge_count == 0) Long::notify_run();
    else notify_successors();
    return Long::end();
  }

 private:
  /// For the sinks that left that to this task, see arrives_for_both(): it does not arrive at the run now. It is not the last
  /// to arrive. The last task of a loop has none before it, see shares_place().
  FLYWHEEL_TASK void arrive_for_those_before() {
    if (!Long::work_.sinks_done) return;
    arrive_sink<P>(dev_, Long::id_, run_, false, true, Long::work_.sinks_done);
    Long::work_.sinks_done = 0;
  }

  /// The task, or its continuation, and not one that it has spawned: that one neither chooses nor counts as having run.
  FLYWHEEL_TASK bool stands_in() const { return !(header_.flags & kTaskSpawned) || header_.flags & kTaskStandsIn; }

  FLYWHEEL_TASK void publish(const Edge& edge, bool failed) {
    std::uint32_t counts[kPriorities] = {};
    Long::collect(edge, {true, failed}, counts);
    Long::publish_collected(counts);
  }

  FLYWHEEL_TASK void notify_continuation(std::uint32_t record) {
    arrive_for_those_before();
    TaskHeader& header = dev_.records[record].header;
    const Arrival arrival = arrive_at_continuation<P>(header, task_.failed);
    if (arrival.last) publish({record - run_.first_record, 1, header.priority, 0}, arrival.failed);
  }

  FLYWHEEL_TASK void notify_successors() {
    // Release fence: covers what the task wrote, for all arrivals below. Pairs with the acquire fence of the last predecessor.
    P::release_fence();
    for (std::uint32_t e = 0; e < header_.edge_count; ++e) {
      const Edge edge = dev_.edges[header_.first_edge + e];
      const Arrival arrival = arrive_over(edge, !task_.failed && is_chosen(edge));
      if (!arrival.last) continue;
      P::acquire_fence();  // pairs with the release fences of the other predecessors; publish() passes on what they wrote
      publish(edge, arrival.failed);
    }
  }
  FLYWHEEL_TASK bool is_chosen(const Edge& edge) const {
    const std::uint32_t cases = edge.label & kCases;
    return !cases || !stands_in() || task_.outcome.control & cases;
  }

  /// `chosen`: the successor may run, for all that this task says.
  FLYWHEEL_TASK Arrival arrive_over(const Edge& edge, bool chosen) const {
    if (Long::is_sole(edge)) return {true, !chosen};
    std::uint64_t& counter = run_.bank()[edge.task];
    const bool any = edge.label & kAnyEdge;
    // Relaxed: pairs with the last arrival, at the same word, which comes after this task's own.
    if (any && chosen && stands_in()) P::device(counter).set(kHasRun, Order::relaxed);
    const std::uint64_t now = begin_arrival<P>(counter, chosen ? kArrival : kFailedArrival);
    Arrival arrival = end_arrival<P>(counter, now, edge.predecessors);
    if (arrival.last && any) arrival.failed = !(now & kHasRun) || (arrival.failed && has_ended_early());
    return arrival;
  }
  /// Whether the run has failed or was cancelled. If one of the tasks that have arrived did, this thread sees it.
  FLYWHEEL_TASK bool has_ended_early() const {
    RunLine& line = dev_.runs[run_.slot].line;
    // Relaxed, both: pair with record_fault() before the arrival of the task that failed, and with MessageHandler::cancel().
    return P::device(line.fault).load(Order::relaxed) || P::device(line.cancelled).load(Order::relaxed);
  }
};

/// A function beside finish_with_successors() and finish_sink(), for the same reason.
template <class P>
FLYWHEEL_COLD std::uint64_t finish_controlled(const DeviceState& dev, std::uint32_t id, LocalWork& work,
                                              const PrefetchedTask& task, std::uint64_t kept) {
  return ControlledFinish<P>(dev, id, work, task, kept)();
}

}  // namespace flywheel::detail
