// The trace of a run that is not compiled: a span for each body, and in phased runs for each meeting of the workers. The
// executors, and phases.hpp for phased runs, include this header; host/trace makes the spans.
//
// A run that is not traced never comes here. A dynamic task is found to be traced by the test that finds a cancelled one
// (Worker::fetch()), and then has kTracedBody among what its body has asked for: so nothing takes it for a plain task, neither
// a chain of runs nor awaited successors nor the short way of Finisher. The worker at the direct slot gets none started
// (is_for_direct_slot()).
//
// One thread of a worker writes its track, with plain stores, and always before that worker's next arrival: at a successor or
// the run, behind a body (LongFinish), or at a boundary (GridBarrier::arrive()). The body's own results go with the same
// arrival. So whoever ends the run has acquired the events of all workers, its release in report_end() covers them, and the
// host has acquired that word (is_complete()) when it copies the tracks.
#pragma once

#include "../records/device_state.hpp"

namespace flywheel::detail {

static_assert(kNoTaskOfProgram == kNoLocal);

/// Whether the run is traced and was not cancelled so far.
template <class P>
FLYWHEEL_TASK bool is_traced(RunLine& line) {
  // Relaxed, both: pair with open_line(), which the worker has acquired together with the task, and with
  // MessageHandler::cancel(), a hint.
  return (P::device(line.constants.flags).load(Order::relaxed) & kTraced) && !P::device(line.cancelled).load(Order::relaxed);
}

/// The task of an event: its index in the graph or batch, or what kSpawnedTask says.
FLYWHEEL_TASK inline std::uint32_t traced_index(const TaskHeader& header) {
  return header.flags & kTaskSpawned ? kSpawnedTask | header.type : header.local;
}

/// The compute track of a worker.
template <class P>
class WorkerTrack {
 public:
  FLYWHEEL_TASK WorkerTrack(const DeviceState& dev, std::uint32_t worker)
      : dev_(dev),
        index_(worker * kTraceRoles + static_cast<std::uint32_t>(TraceRole::compute)),
        track_(dev.trace.tracks[index_]) {}

  /// Before the first span of this launch begins: reads both clocks, so that their two readings lie a span apart at least. Next
  /// to each other they said nothing of the clock's rate, and the begin of a body of 40 us was off by 10.
  FLYWHEEL_TASK void open() {
    if (track_.count < dev_.trace.capacity && track_.launch != dev_.launch) begin_launch();
  }
  /// Writes a span, or counts it as dropped if the track is full.
  FLYWHEEL_TASK void write(TraceKind kind, std::uint64_t begin, std::uint64_t end, std::uint32_t task, std::uint32_t pass) {
    open();
    put(static_cast<std::uint8_t>(kind), begin, end, task, pass);
    if (!track_.dropped) track_.end = trace_moment<P>();
  }

 private:
  /// The first event of this launch of the kernel, whose clocks do not continue those of the last one.
  FLYWHEEL_TASK void begin_launch() {
    if (track_.count) {
      const TraceMoment before = track_.begin;
      put(kClockEvent, before.ticks, before.ticks, static_cast<std::uint32_t>(before.ns >> 32),
          static_cast<std::uint32_t>(before.ns));
    }
    track_.launch = dev_.launch;
    track_.begin = trace_moment<P>();
  }

  FLYWHEEL_TASK void put(std::uint8_t kind, std::uint64_t begin, std::uint64_t end, std::uint32_t task, std::uint32_t pass) {
    if (track_.count == dev_.trace.capacity) {
      ++track_.dropped;
      return;
    }
    const std::uint64_t ticks = end - begin;
    dev_.trace.events[std::size_t{index_} * dev_.trace.capacity + track_.count++] = {
        begin, static_cast<std::uint32_t>(ticks < 0xffffffffu ? ticks : 0xffffffffu),
        task,  pass,
        kind,  static_cast<std::uint8_t>(TraceRole::compute),
        0};
  }

  const DeviceState& dev_;
  const std::uint32_t index_;
  TraceTrack& track_;
};

// Out of line: what is not traced calls none of them.

/// One thread of the worker, always the same one: a span from `begin` to `end`, in ticks.
template <class P>
FLYWHEEL_COLD void write_span(const DeviceState& dev, std::uint32_t worker, TraceKind kind, std::uint64_t begin,
                              std::uint64_t end, std::uint32_t task, std::uint32_t pass) {
  WorkerTrack<P>(dev, worker).write(kind, begin, end, task, pass);
}

FLYWHEEL_TASK inline TraceTrack& compute_track(const DeviceState& dev, std::uint32_t worker) {
  return dev.trace.tracks[worker * kTraceRoles + static_cast<std::uint32_t>(TraceRole::compute)];
}

/// The body that was opened last ends at `end`.
template <class P>
FLYWHEEL_TASK void close_body(const DeviceState& dev, std::uint32_t worker, std::uint64_t end, std::uint32_t task,
                              std::uint32_t pass) {
  write_span<P>(dev, worker, TraceKind::body, compute_track(dev, worker).open_since, end, task, pass);
}

/// The worker is seen to have left the meeting at the end of a phase, if it came to one.
template <class P>
FLYWHEEL_TASK void leave_meeting(const DeviceState& dev, std::uint32_t worker, std::uint64_t now, std::uint32_t pass) {
  TraceTrack& track = compute_track(dev, worker);
  if (track.meeting_since) write_span<P>(dev, worker, TraceKind::meeting, track.meeting_since, now, kNoTaskOfProgram, pass);
  track.meeting_since = 0;
}

/// The worker goes from one body to the next, or from a meeting to its first. `local`: the task of the body that has ended;
/// kNoLocal: none has.
template <class P>
FLYWHEEL_COLD void step_traced(const DeviceState& dev, std::uint32_t worker, std::uint32_t local, std::uint32_t pass) {
  if (local != kNoLocal) close_body<P>(dev, worker, P::ticks(), local, pass);
  WorkerTrack<P>(dev, worker).open();
  const std::uint64_t now = P::ticks();
  leave_meeting<P>(dev, worker, now, pass);
  compute_track(dev, worker).open_since = now;
}

/// The worker comes to the end of a phase; `local` as above. The meeting is written when the worker goes on, by step_traced()
/// or here, and so before an arrival; of a run's last meeting the host derives the end. Nothing is written between a boundary
/// and what follows it: the run may have ended there.
template <class P>
FLYWHEEL_COLD void come_traced(const DeviceState& dev, std::uint32_t worker, std::uint32_t local, std::uint32_t pass) {
  WorkerTrack<P>(dev, worker).open();
  const std::uint64_t now = P::ticks();
  if (local != kNoLocal) close_body<P>(dev, worker, now, local, pass);
  leave_meeting<P>(dev, worker, now, pass);
  compute_track(dev, worker).meeting_since = now;
}

/// A body of a dynamic run has ended.
template <class P>
FLYWHEEL_COLD void end_traced(const DeviceState& dev, std::uint32_t worker, const TaskHeader& header, std::uint32_t pass) {
  close_body<P>(dev, worker, P::ticks(), traced_index(header), pass);
}

}  // namespace flywheel::detail
