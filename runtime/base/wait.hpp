// Bounded waits: spin_until() polls an atomic, backs off, checks the abort word and ends when its budget is spent.
//
// When the budget ends, the worker writes a wait report (what it waited for, on which address, the value that it saw and
// the value that it expected) and aborts the runtime, so a hang becomes a report. Idle workers and compute warps poll in
// loops of their own, without a budget.
#pragma once

#include <cstdint>

#include "platform.hpp"

namespace flywheel::detail {

/// What a wait is for.
enum class WaitReason : std::uint32_t {
  none,
  queue_slot_free,   // a producer waits for the consumer of the previous lap
  queue_slot_full,   // a consumer waits for the producer that holds the same ticket
  grid_barrier,      // a worker waits for the others at the grid barrier
  stream_space,      // a task waits for the host to read streamed values
  predecessors,      // compiled: a worker waits for tasks of other workers
  workers_to_leave,  // compiled: the leader waits until the other workers have left the run
  page,              // compiled: a role of a worker waits for a page of operands
  role,              // compiled: a role of a worker waits for another role of the same worker
  end_of_run,        // the inbox poller, or a worker, waits for a worker to end the list of a run's followers
};

/// The reason as it appears in reports: "waited ... for <text>".
constexpr const char* describe(WaitReason reason) {
  switch (reason) {
    case WaitReason::queue_slot_free:
      return "a free queue slot";
    case WaitReason::queue_slot_full:
      return "an item in a queue slot";
    case WaitReason::grid_barrier:
      return "the other workers at a grid barrier";
    case WaitReason::stream_space:
      return "the host to read streamed values";
    case WaitReason::predecessors:
      return "tasks of other workers in a compiled run";
    case WaitReason::workers_to_leave:
      return "workers that are not through with a compiled run";
    case WaitReason::page:
      return "a page of operands";
    case WaitReason::role:
      return "another warp of its worker";
    case WaitReason::end_of_run:
      return "a worker to end the list of a run's followers";
    default:
      return "nothing";
  }
}

/// The role that waited in a compiled run, and the task that it was working on. The packed form is never 0.
struct WaitPart {
  std::uint32_t task;  // index in its graph
  std::uint16_t run;   // run slot
  std::uint8_t role;   // a TraceRole

  FLYWHEEL_TASK constexpr std::uint64_t pack() const {
    return std::uint64_t{1} << 63 | std::uint64_t{role} << 48 | std::uint64_t{run} << 32 | task;
  }
  static constexpr WaitPart unpack(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits), static_cast<std::uint16_t>(bits >> 32),
            static_cast<std::uint8_t>(bits >> 48 & 0x7f)};
  }
};

/// One worker's wait report, in host memory, so that the watchdog reads it without a CUDA call. `reason` is written last.
struct WaitReport {
  std::uint64_t address;
  std::uint64_t saw;
  std::uint64_t expected;
  std::uint64_t waited_ns;
  std::uint64_t part;  // a packed WaitPart, or 0
  std::uint32_t reason;
  std::uint32_t reserved;
};

/// The limits of a wait: its budget, and the words that the waiting loop reads.
struct WaitContext {
  std::uint64_t* abort;     // device memory; a non-zero value ends every wait
  WaitReport* report;       // this worker's, in host memory; may be null in tests
  std::uint64_t budget_ns;  // time that the wait may take
  bool fatal = true;        // when the budget ends: report and abort the runtime (true), or only end this wait (false)
  // One word a worker, which changes as the worker makes progress. A wait that may span many tasks of other workers
  // starts its budget again when one of them has changed. Null with 0 workers: the budget never starts again.
  Padded<std::uint64_t>* progress = nullptr;
  std::uint32_t workers = 0;
  // A clock that stops while the host's process is stopped, see was_host_stopped(). Null: not available.
  std::uint64_t* host_awake_ns = nullptr;
};

/// Whether a role of a compiled run waits for this reason, so that the report has a WaitPart.
FLYWHEEL_TASK constexpr bool has_part(WaitReason reason) {
  return reason == WaitReason::predecessors || reason == WaitReason::page || reason == WaitReason::role;
}

/// Writes the worker's wait report and aborts the runtime.
template <class P>
FLYWHEEL_TASK inline void report_wait(const WaitContext& wait, WaitReason reason, const void* address, std::uint64_t saw,
                                      std::uint64_t expected, std::uint64_t waited_ns) {
  if (wait.report) {
    // Relaxed, all five: the release store of `reason` below publishes them.
    P::system(wait.report->address).store(reinterpret_cast<std::uint64_t>(address), Order::relaxed);
    P::system(wait.report->saw).store(saw, Order::relaxed);
    P::system(wait.report->expected).store(expected, Order::relaxed);
    P::system(wait.report->waited_ns).store(waited_ns, Order::relaxed);
    P::system(wait.report->part).store(has_part(reason) ? P::waiting_part() : 0, Order::relaxed);
    // Release: pairs with the acquire load in Watchdog::wait_report() (host/kernel/heartbeat.cpp), which then reads the
    // five words above.
    P::system(wait.report->reason).store(static_cast<std::uint32_t>(reason), Order::release);
  }
  // Relaxed: pairs with the load in go_on_waiting() and with all other polls of the abort word. A thread that sees it
  // ends its work and reads nothing that was written before.
  P::device(*wait.abort).store(1, Order::relaxed);
}

/// A number that changes whenever a worker makes progress.
template <class P>
FLYWHEEL_COLD std::uint64_t total_progress(const WaitContext& wait) {
  std::uint64_t sum = 1;
  // Relaxed: pairs with show_progress() (runtime/records/device_state.hpp). Only the change of the sum matters.
  for (std::uint32_t w = 0; w < wait.workers; ++w) sum += P::device(wait.progress[w].value).load(Order::relaxed);
  return sum;
}

/// What a wait keeps between readings of the clock. The first reading sets it, so a wait that ends earlier costs nothing.
template <bool kMayBeStopped>
struct WaitNotes {
  std::uint64_t progress;  // total_progress() at the last reading that compared it; 0: not yet read
  std::uint64_t awake;     // the host's clock when half of the budget was spent; 0: not yet read
};
/// A CPU thread may be stopped together with its process, or not be scheduled for a long time. It could not see the awaited
/// event meanwhile, so the time between two readings of the clock counts at most P::kMostBetweenReadings.
template <>
struct WaitNotes<true> {
  std::uint64_t progress;
  std::uint64_t awake;
  std::uint64_t last;  // the last reading of the thread's clock
};
template <class P>
using WaitNotesOf = WaitNotes<(P::kMostBetweenReadings > 0)>;

/// Returns true if the host's process was stopped for most of the second half of the budget; then the budget starts again.
///
/// A wait for the host, or for a task that waits for the host, lasts as long as the host's process is stopped. So the
/// budget ends only if the host's clock has advanced by at least half of the time since half of the budget was spent. A
/// GPU reads that clock across PCIe, so the wait reads it only twice in a budget. `awake` keeps the first reading.
template <class P>
FLYWHEEL_TASK bool was_host_stopped(const WaitContext& wait, std::uint64_t spent_ns, std::uint64_t& awake) {
  if (!wait.host_awake_ns || spent_ns < wait.budget_ns / 2 || (awake && spent_ns < wait.budget_ns)) return false;
  const std::uint64_t before = awake;
  // Relaxed: pairs with the store in Watchdog::note_awake() (host/kernel/heartbeat.cpp). The time publishes no other data.
  awake = P::system(*wait.host_awake_ns).load(Order::relaxed);
  return before && awake - before < wait.budget_ns / 4;
}

/// The progress is first read, and the budget begins, after the budget's 16th part: a GPU thread reads the words of 132 workers
/// one after the other, which takes 55 us, in which it does not see what it waits for (device/tuning.md).
inline constexpr std::uint64_t kBeforeProgress = 16;

/// The slow path of spin_until(), not inlined so that the many fast paths stay small. Returns the time at which the wait
/// began, moved later by the time that does not count, or 0 to end the wait.
template <class P, class Limit>
FLYWHEEL_COLD std::uint64_t go_on_waiting(Limit limit, WaitReason reason, const void* address, std::uint64_t saw,
                                          std::uint64_t expected, std::uint64_t start, WaitNotesOf<P>& notes) {
  const WaitContext wait = limit;
  // Relaxed: pairs with the store in report_wait() and with the host's abort. The wait only ends; it reads nothing more.
  if (P::device(*wait.abort).load(Order::relaxed)) return 0;
  const std::uint64_t now = P::now_ns();
  if constexpr (P::kMostBetweenReadings > 0) {
    const std::uint64_t gap = start ? now - notes.last : 0;
    if (gap > P::kMostBetweenReadings) start += gap - P::kMostBetweenReadings;
    notes.last = now;
  }
  if (!start) {
    notes.progress = notes.awake = 0;
    return now;
  }
  const bool begins = !notes.progress;
  if (begins && now - start < wait.budget_ns / kBeforeProgress) return start;
  const bool stopped = !begins && was_host_stopped<P>(wait, now - start, notes.awake);
  if (!begins && now - start < wait.budget_ns) return start;
  const std::uint64_t before = notes.progress;
  notes.progress = total_progress<P>(wait);
  if (begins || stopped || (wait.workers && notes.progress != before)) {
    notes.awake = 0;
    return now;
  }
  if (!wait.fatal) return 0;
  report_wait<P>(wait, reason, address, saw, expected, now - start);
  return 0;
}

/// The `idle()` callback of a thread that has no other work while it waits.
struct NothingToDo {
  FLYWHEEL_TASK bool operator()() const { return false; }
};

/// Calls `ready(saw)` until it returns true; `ready` sets `saw` to the value that it found, for the report, and names the
/// order of its loads. Returns false if the runtime was aborted or the budget ended; if the budget of a fatal limit
/// ended, it has reported the wait and aborted the runtime.
///
/// The abort word and the clock are read once in 256 polls, so a wait that succeeds at once costs nothing. `limit` is a
/// WaitContext, or a small object that converts to one on the slow path, see Views::wait_for_phase(). It may be a pair of
/// such a `limit` and of a function gives_up(), which ends the wait there if it returns true: a GPU keeps what that looks at in
/// registers.
template <class P, class Limit, class Ready>
FLYWHEEL_TASK bool spin_until(const Limit& limit, WaitReason reason, const void* address, std::uint64_t expected,
                              Ready&& ready) {
  std::uint64_t saw = 0, start = 0;
  WaitNotesOf<P> notes;
  for (std::uint32_t spins = 0;; ++spins) {
    if (ready(saw)) return true;
    if (spins % 16 != 15) continue;
    P::pause(spins);
    if (spins % 256 != 255) continue;
    if constexpr (requires { limit.gives_up(); }) {
      if (limit.gives_up()) return false;
      start = go_on_waiting<P>(limit.limit, reason, address, saw, expected, start, notes);
    } else {
      start = go_on_waiting<P>(limit, reason, address, saw, expected, start, notes);
    }
    if (!start) return false;
  }
}

}  // namespace flywheel::detail
