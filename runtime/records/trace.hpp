// Trace records: what each role of each worker did in a traced run, and when.
//
// Each role of each worker writes its own track, so the records need no atomics. The host copies the tracks after the
// completion of the run, which orders them (host/trace/trace.cpp). One trace is under way at a time: Admission lets no other
// traced run in flight before the host has copied and cleared the tracks.
#pragma once

#include <cstdint>

#include "../base/platform.hpp"

namespace flywheel {

enum class TraceRole : std::uint8_t { control = 0, load = 1, compute = 2, store = 3 };

/// What an event records. The role that writes it comes first.
enum class TraceKind : std::uint8_t {
  none = 0,
  wait = 1,     // control: waits for a task's predecessors
  gate = 2,     // control: waits for the end of the previous pass
  body = 3,     // compute: runs a task's body
  inputs = 4,   // compute: waits for predecessors inside an early task's body; the host derives it (host/trace)
  page = 5,     // load: waits for a free page
  landing = 6,  // load: waits for earlier pages to arrive, which limits the pages in flight
  store = 7,    // store: runs a task's store part, from the last handoff that it took
  meeting = 9,  // compute, phased runs: waits for the other workers in grid_sync() or at the end of a phase
};

/// In TraceSpan::task and TraceEvent::task of a task that another has spawned, which has no index: this bit, and the position
/// of its type in the list of flywheel::start<...>().
inline constexpr std::uint32_t kSpawnedTask = 1u << 31;
/// The same of what belongs to no task of the program: a meeting at the end of a phase, and the library's own task that begins
/// a part of a batch.
inline constexpr std::uint32_t kNoTaskOfProgram = 0xfffffffeu;

namespace detail {
inline constexpr std::uint32_t kTraceRoles = 4;
/// TraceEvent::kind of what is no span: `begin` ticks were the moment {task:32 | pass:32} ns, and the events in front of this
/// one that no other such event precedes are in ticks of that clock. A worker writes it when another launch of the kernel has
/// brought it another clock.
inline constexpr std::uint8_t kClockEvent = 10;

/// One event of a role. 24 bytes.
struct TraceEvent {
  std::uint64_t begin;  // in ticks of the worker's own clock
  std::uint32_t ticks;  // duration; all ones if it is longer
  std::uint32_t task;   // graph-local index
  std::uint32_t pass;
  std::uint8_t kind;        // a TraceKind
  std::uint8_t role;        // a TraceRole
  std::uint16_t bytes_kib;  // operands that a body took, in KiB rounded up; 0xffff if more
};
static_assert(sizeof(TraceEvent) == 24);

/// One moment on the worker's own clock and on the clock that all workers share. It converts ticks to time.
struct TraceMoment {
  std::uint64_t ticks;
  std::uint64_t ns;
};

/// The track of one role of one worker.
struct alignas(64) TraceTrack {
  std::uint32_t count;    // events written, at most the capacity
  std::uint32_t dropped;  // events that did not fit
  TraceMoment begin;      // when the role began its part of the run, or of this launch
  TraceMoment end;        // when it ended
  // Of runs that are not compiled, see dynamic/traced.hpp. In ticks; 0: none.
  std::uint64_t open_since;     // the begin of the body that runs or ran last
  std::uint64_t meeting_since;  // the begin of a meeting that the worker has not been seen to leave
  std::uint32_t launch;         // in which it wrote last
};
static_assert(sizeof(TraceTrack) == 64);

/// The buffers of a trace, in device memory. Null tracks: no trace.
struct TraceBuffers {
  TraceTrack* tracks;      // workers x kTraceRoles
  TraceEvent* events;      // workers x kTraceRoles x capacity
  std::uint32_t capacity;  // events of one track
  std::uint32_t reserved;
};

/// The current moment. A CPU has one clock, which is read once: if the thread lost its core between two readings, the times of
/// its whole track would be wrong.
template <class P>
FLYWHEEL_TASK TraceMoment trace_moment() {
  const std::uint64_t ticks = P::ticks();
  if constexpr (P::kOneClock) return {ticks, ticks};
  return {ticks, P::now_ns()};
}

/// Writes the track of one role. `P::ticks()` is the worker's own clock. Without a trace all calls return at once.
template <class P>
class TraceWriter {
 public:
  TraceWriter() = default;
  FLYWHEEL_TASK TraceWriter(const TraceBuffers& buffers, std::uint32_t worker, TraceRole role)
      : track_(nullptr),
        next_(nullptr),
        end_(nullptr),
        count_(0),
        dropped_(0),
        role_(role) {
    if (!buffers.tracks) return;
    const std::uint32_t track = worker * kTraceRoles + static_cast<std::uint32_t>(role);
    track_ = buffers.tracks + track;
    next_ = buffers.events + std::size_t{track} * buffers.capacity;
    end_ = next_ + buffers.capacity;
    track_->begin = trace_moment<P>();
  }

  /// Whether there is a trace.
  FLYWHEEL_TASK bool on() const { return track_ != nullptr; }
  /// The current tick, as `begin` of a later write(). Without a trace it returns 0 and reads no clock.
  FLYWHEEL_TASK std::uint64_t now() const {
    if (!track_) [[likely]]
      return 0;
    return P::ticks();
  }

  /// Writes an event that ends now. `bytes`: operands taken. Counts the event as dropped if the track is full.
  FLYWHEEL_TASK void write(TraceKind kind, std::uint64_t begin, std::uint32_t task, std::uint32_t pass,
                           std::uint32_t bytes = 0) {
    if (!track_) [[likely]]
      return;
    write_until(P::ticks(), kind, begin, task, pass, bytes);
  }
  /// Writes an event that ended at tick `end`, so the caller can notify other threads first and write the event later.
  FLYWHEEL_TASK void write_until(std::uint64_t end, TraceKind kind, std::uint64_t begin, std::uint32_t task, std::uint32_t pass,
                                 std::uint32_t bytes = 0) {
    if (!track_) [[likely]]
      return;
    if (next_ == end_) {
      ++dropped_;
      return;
    }
    const std::uint32_t kib = bytes / 1024 + (bytes % 1024 != 0);
    const std::uint64_t ticks = end - begin;
    *next_++ = {begin,
                static_cast<std::uint32_t>(ticks < 0xffffffffu ? ticks : 0xffffffffu),
                task,
                pass,
                static_cast<std::uint8_t>(kind),
                static_cast<std::uint8_t>(role_),
                static_cast<std::uint16_t>(kib < 0xffff ? kib : 0xffff)};
    ++count_;
  }

  /// Ends the track: the role has finished its part of the run.
  FLYWHEEL_TASK void close() {
    if (!track_) return;
    track_->count = count_;
    track_->dropped = dropped_;
    track_->end = trace_moment<P>();
  }

 private:
  TraceTrack* track_;
  TraceEvent* next_;
  TraceEvent* end_;
  std::uint32_t count_;
  std::uint32_t dropped_;
  TraceRole role_;
};

}  // namespace detail
}  // namespace flywheel
