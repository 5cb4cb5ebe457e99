// Trace records: what each role of each worker did, and when.
//
// One writer for each lane, so no atomics: the host reads a lane after the run's completion, which orders it.
#pragma once

#include <cstdint>

#include "../base/platform.hpp"

namespace flywheel {

enum class TraceRole : std::uint8_t { control = 0, load = 1, compute = 2, store = 3 };
inline constexpr std::uint32_t kTraceRoles = 4;

enum class TraceKind : std::uint8_t {
  none = 0,
  wait = 1,      // control: for the tasks before it
  gate = 2,      // control: for the pass before to end
  body = 3,      // compute: a task's body
  inputs = 4,    // compute: inside an early task's body, for the tasks before it; the host finds it, see Trace
  page = 5,      // load: for a page to be given back
  landing = 6,   // load: for earlier pages to land, so that not too much is under way
  store = 7,     // store: a task's last part, from the last of what its body handed over
};

/// 24 bytes.
struct TraceEvent {
  std::uint64_t begin;  // ticks of the worker's own clock
  std::uint32_t ticks;  // how long; all ones for longer
  std::uint32_t task;   // graph-local index
  std::uint32_t pass;
  std::uint8_t kind;    // a TraceKind
  std::uint8_t role;    // a TraceRole
  std::uint16_t bytes_kib;  // of operands that a body took, in KiB rounded up; 0xffff for more
};
static_assert(sizeof(TraceEvent) == 24);

/// One moment read on a worker's own clock and on the clock that all workers share, to turn ticks into time.
struct TraceMoment {
  std::uint64_t ticks;
  std::uint64_t ns;
};

/// One role's events of one worker.
struct alignas(64) TraceLane {
  std::uint32_t count;    // events written, at most the capacity
  std::uint32_t dropped;  // events there was no room for
  TraceMoment begin;      // when the role began and ended its part of the run
  TraceMoment end;
};

/// Everything a run's trace is written to, in device memory; null lanes: no trace.
struct TraceBuffers {
  TraceLane* lanes;     // workers x kTraceRoles
  TraceEvent* events;   // workers x kTraceRoles x capacity
  std::uint32_t capacity;
  std::uint32_t reserved;
};

/// The pen of one role. `P::ticks()` is the worker's own clock.
template <class P>
class TraceWriter {
 public:
  TraceWriter() = default;
  FLYWHEEL_TASK TraceWriter(const TraceBuffers& buffers, std::uint32_t worker, TraceRole role)
      : lane_(nullptr), next_(nullptr), end_(nullptr), count_(0), dropped_(0), role_(role) {
    if (!buffers.lanes) return;
    const std::uint32_t lane = worker * kTraceRoles + static_cast<std::uint32_t>(role);
    lane_ = buffers.lanes + lane;
    next_ = buffers.events + std::size_t{lane} * buffers.capacity;
    end_ = next_ + buffers.capacity;
    lane_->begin = moment();
  }

  FLYWHEEL_TASK bool on() const { return lane_ != nullptr; }
  /// The time of day for a later write(); 0 and free of cost when there is no trace.
  FLYWHEEL_TASK std::uint64_t now() const {
    if (!lane_) [[likely]] return 0;
    return P::ticks();
  }

  FLYWHEEL_TASK void write(TraceKind kind, std::uint64_t begin, std::uint32_t task, std::uint32_t pass,
                           std::uint32_t bytes = 0) {
    if (!lane_) [[likely]] return;
    write_until(P::ticks(), kind, begin, task, pass, bytes);
  }
  /// What ended a while ago: others need not wait until it is written down.
  FLYWHEEL_TASK void write_until(std::uint64_t end, TraceKind kind, std::uint64_t begin, std::uint32_t task,
                                 std::uint32_t pass, std::uint32_t bytes = 0) {
    if (!lane_) [[likely]] return;
    if (next_ == end_) {
      ++dropped_;
      return;
    }
    const std::uint32_t kib = bytes / 1024 + (bytes % 1024 != 0);
    const std::uint64_t ticks = end - begin;
    *next_++ = {begin, static_cast<std::uint32_t>(ticks < 0xffffffffu ? ticks : 0xffffffffu), task, pass, static_cast<std::uint8_t>(kind),
                static_cast<std::uint8_t>(role_), static_cast<std::uint16_t>(kib < 0xffff ? kib : 0xffff)};
    ++count_;
  }

  /// The role's part of the run is over.
  FLYWHEEL_TASK void close() {
    if (!lane_) return;
    lane_->count = count_;
    lane_->dropped = dropped_;
    lane_->end = moment();
  }

 private:
  /// A CPU's one clock is read once: a thread that lost its core between two readings would date its whole lane wrong.
  FLYWHEEL_TASK static TraceMoment moment() {
    const std::uint64_t ticks = P::ticks();
    if constexpr (P::kOneClock) return {ticks, ticks};
    return {ticks, P::now_ns()};
  }

  TraceLane* lane_;
  TraceEvent* next_;
  TraceEvent* end_;
  std::uint32_t count_;
  std::uint32_t dropped_;
  TraceRole role_;
};

}  // namespace flywheel
