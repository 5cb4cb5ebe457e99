// Bounded waiting: every spin loop of the library goes through spin_until().
//
// It reads an atomic, backs off, checks the abort word, and has a budget. When the budget ends it writes down who
// waited for what, on which address, what it saw and what it expected, and aborts: a hang becomes a report.
#pragma once

#include <cstdint>

#include "platform.hpp"

namespace flywheel {

enum class WaitReason : std::uint32_t {
  none,
  queue_slot_free,   // a producer waits for the consumer one lap behind
  queue_slot_full,   // a consumer waits for the producer that holds its ticket
  grid_barrier,      // a worker waits for the others at a phase boundary
  stream_space,      // a task waits for the host to read its streamed values
  predecessors,      // compiled: a worker waits for tasks of other workers
  workers_to_leave,  // compiled: the leader waits for the others to be through with the run
  page,              // compiled: a role of a worker waits for a page of operands
  role,              // compiled: a role of a worker waits for another role of it
};

constexpr const char* describe(WaitReason reason) {
  switch (reason) {
    case WaitReason::queue_slot_free: return "a free queue slot";
    case WaitReason::queue_slot_full: return "an item in a queue slot";
    case WaitReason::grid_barrier: return "the other workers at a grid barrier";
    case WaitReason::stream_space: return "the host to read streamed values";
    case WaitReason::predecessors: return "tasks of other workers in a compiled run";
    case WaitReason::workers_to_leave: return "workers that are not through with a compiled run";
    case WaitReason::page: return "a page of operands";
    case WaitReason::role: return "another warp of its worker";
    default: return "nothing";
  }
}

/// Which role of a worker waited in a compiled run, and at which task the worker was. As bits it is never 0.
struct WaitPart {
  std::uint32_t task;  // its index in its graph
  std::uint16_t run;   // slot
  std::uint8_t role;   // a TraceRole

  FLYWHEEL_TASK constexpr std::uint64_t pack() const {
    return std::uint64_t{1} << 63 | std::uint64_t{role} << 48 | std::uint64_t{run} << 32 | task;
  }
  static constexpr WaitPart unpack(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits), static_cast<std::uint16_t>(bits >> 32), static_cast<std::uint8_t>(bits >> 48 & 0x7f)};
  }
};

/// One worker's wait report, in memory the host can read without a CUDA call. `reason` is written last.
struct WaitReport {
  std::uint64_t address;
  std::uint64_t saw;
  std::uint64_t expected;
  std::uint64_t waited_ns;
  std::uint64_t part;  // a packed WaitPart, or 0
  std::uint32_t reason;
  std::uint32_t reserved;
};

/// Words that every waiting loop looks at.
struct WaitContext {
  std::uint64_t* abort;   // device memory; non-zero ends every wait
  WaitReport* report;     // this worker's, host-visible; may be null in tests
  std::uint64_t budget_ns;
  bool fatal = true;  // what to do when the budget ends: report and abort everybody, or just give up
  // Where one wait may span many tasks of others: words that move while they get on. Then the budget begins again.
  Padded<std::uint64_t>* progress = nullptr;
  std::uint32_t workers = 0;
  // A clock that stands while the host's process is stopped, see was_host_stopped(). Null: not known.
  std::uint64_t* host_awake_ns = nullptr;
};

namespace detail {
/// Waits of the roles of a compiled run.
FLYWHEEL_TASK constexpr bool has_part(WaitReason reason) {
  return reason == WaitReason::predecessors || reason == WaitReason::page || reason == WaitReason::role;
}

template <class P>
FLYWHEEL_TASK inline void report_wait(const WaitContext& wait, WaitReason reason, const void* address,
                                      std::uint64_t saw, std::uint64_t expected, std::uint64_t waited_ns) {
  if (wait.report) {
    P::system(wait.report->address).store(reinterpret_cast<std::uint64_t>(address), Order::relaxed);
    P::system(wait.report->saw).store(saw, Order::relaxed);
    P::system(wait.report->expected).store(expected, Order::relaxed);
    P::system(wait.report->waited_ns).store(waited_ns, Order::relaxed);
    P::system(wait.report->part).store(has_part(reason) ? P::waiting_part() : 0, Order::relaxed);
    // Release: pairs with the watchdog's acquire load of `reason`; the five words above belong to it.
    P::system(wait.report->reason).store(static_cast<std::uint32_t>(reason), Order::release);
  }
  // Relaxed: whoever sees it leaves, and reads nothing that was written before.
  P::device(*wait.abort).store(1, Order::relaxed);
}
}  // namespace detail

namespace detail {
template <class P>
FLYWHEEL_COLD std::uint64_t total_progress(const WaitContext& wait) {
  std::uint64_t sum = 1;  // relaxed: only that it changes matters
  for (std::uint32_t w = 0; w < wait.workers; ++w) sum += P::device(wait.progress[w].value).load(Order::relaxed);
  return sum;
}

/// What a wait remembers from one look at the clock to the next. Set at the first look: a wait that ends before costs nothing.
template <bool kMayBeStopped>
struct WaitNotes {
  std::uint64_t progress;  // of the others
  std::uint64_t awake;     // the host's clock when half of the budget was spent; 0: not yet
};
/// A CPU thread may be stopped with its whole process, or not be scheduled for long: then it could not have seen what it waits
/// for. So what lies between two readings of its clock counts up to P::kMostBetweenReadings.
template <>
struct WaitNotes<true> {
  std::uint64_t progress;
  std::uint64_t awake;
  std::uint64_t last;  // reading of the clock
};
template <class P>
using WaitNotesOf = WaitNotes<(P::kMostBetweenReadings > 0)>;

/// Whoever waits for the host, or for a task that waits for it, waits for as long as the host's process is stopped. So a
/// budget only ends when the host has been at work for half of the time since half of it was spent. Its clock lies beyond PCIe:
/// it is read twice in a whole budget.
template <class P>
FLYWHEEL_TASK bool was_host_stopped(const WaitContext& wait, std::uint64_t spent_ns, std::uint64_t& awake) {
  if (!wait.host_awake_ns || spent_ns < wait.budget_ns / 2 || (awake && spent_ns < wait.budget_ns)) return false;
  const std::uint64_t before = awake;
  awake = P::system(*wait.host_awake_ns).load(Order::relaxed);  // nothing goes with the time
  return before && awake - before < wait.budget_ns / 4;
}

/// The slow side of spin_until(), out of line so that the many fast sides stay small. Gives the time the wait began, later by
/// what did not count, or 0 to give up.
template <class P, class Limit>
FLYWHEEL_COLD std::uint64_t go_on_waiting(Limit limit, WaitReason reason, const void* address, std::uint64_t saw,
                                          std::uint64_t expected, std::uint64_t start, WaitNotesOf<P>& notes) {
  const WaitContext wait = limit;
  if (P::device(*wait.abort).load(Order::relaxed)) return 0;
  const std::uint64_t now = P::now_ns();
  if constexpr (P::kMostBetweenReadings > 0) {
    const std::uint64_t gap = start ? now - notes.last : 0;
    if (gap > P::kMostBetweenReadings) start += gap - P::kMostBetweenReadings;
    notes.last = now;
  }
  const bool stopped = start && was_host_stopped<P>(wait, now - start, notes.awake);
  if (start && now - start < wait.budget_ns) return start;
  const std::uint64_t before = notes.progress;
  notes.progress = total_progress<P>(wait);
  if (!start || stopped || (wait.workers && notes.progress != before)) {
    notes.awake = 0;
    return now;
  }
  if (!wait.fatal) return 0;
  report_wait<P>(wait, reason, address, saw, expected, now - start);
  return 0;
}
}  // namespace detail

/// For waits in which a thread has nothing else to see to.
struct NothingToDo {
  FLYWHEEL_TASK bool operator()() const { return false; }
};

/// Calls `ready(saw)` until it is true. False if the runtime was aborted or the budget ran out (then it is reported
/// and everybody else is aborted). The clock is read once in 256 turns: a wait that succeeds at once costs nothing.
/// `wait limit` is a WaitContext, or something small that turns into one where it is wanted, see Views::wait_for_phase().
template <class P, class Limit, class Ready>
FLYWHEEL_TASK bool spin_until(const Limit& limit, WaitReason reason, const void* address, std::uint64_t expected,
                              Ready&& ready) {
  std::uint64_t saw = 0, start = 0;
  detail::WaitNotesOf<P> notes;
  for (std::uint32_t spins = 0;; ++spins) {
    if (ready(saw)) return true;
    if (spins % 16 != 15) continue;
    P::pause(spins);
    if (spins % 256 != 255) continue;
    start = detail::go_on_waiting<P>(limit, reason, address, saw, expected, start, notes);
    if (!start) return false;
  }
}

}  // namespace flywheel
