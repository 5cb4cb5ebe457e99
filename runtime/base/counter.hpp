// Dependency counters of dynamic runs: the last predecessor to arrive makes its successor ready.
//
// Each run has its own bank of counters, so overlapping runs of one executable cannot satisfy each other's waits. The
// last predecessor to arrive re-arms the counter before it publishes the task, so a bank needs no reset between
// iterations and runs (README.md). runtime/dynamic/long_finish.hpp and runtime/ready/spawn.hpp include this header.
#pragma once

#include <cstdint>

#include "platform.hpp"

namespace flywheel::detail {

/// What an arrival adds to a counter: {awaited:1 | has run:1 | failed predecessors:30 | predecessors still to arrive:32}.
inline constexpr std::uint64_t kArrival = ~std::uint64_t{0};                          // adds -1
inline constexpr std::uint64_t kFailedArrival = (std::uint64_t{1} << 32) + kArrival;  // adds 1 failure, -1

/// Added by the one predecessor whose worker awaits the successor; see awaited.hpp.
inline constexpr std::uint64_t kIsAwaited = std::uint64_t{1} << 63;
/// Set by the predecessors that have run, before they arrive, of a task that waits for any of them; see dynamic/control.hpp.
inline constexpr std::uint64_t kHasRun = std::uint64_t{1} << 62;
FLYWHEEL_TASK constexpr bool is_complete(std::uint64_t counter) { return static_cast<std::uint32_t>(counter) == 0; }
FLYWHEEL_TASK constexpr bool has_failed(std::uint64_t counter) { return (counter & ~(kIsAwaited | kHasRun)) >> 32 != 0; }

/// Of a counter whose last predecessor has arrived: by the worker that publishes or runs the task.
template <class P>
FLYWHEEL_TASK void arm_again(std::uint64_t& counter, std::uint32_t predecessors) {
  // Relaxed: pairs with the next fetch_add on this counter, in the next iteration or the next run on this bank. That one
  // happens after the task, whose publication or arrivals release this store.
  P::device(counter).store(predecessors, Order::relaxed);
}

/// The result of end_arrival().
struct Arrival {
  bool last;    // the caller was the last predecessor and publishes the task
  bool failed;  // a predecessor failed or was skipped
};

/// Reports that one predecessor is done. The last predecessor to arrive re-arms the counter with `predecessors`.
///
/// The caller executes P::release_fence() before and P::acquire_fence() after. Release and acquire (kBetween): each
/// arrival pairs with the arrivals of the other predecessors at the same counter. The release publishes what this
/// predecessor wrote. The acquire gives the last one the writes of all the others, which it passes on when it publishes
/// the task; release alone would lose them.
///
/// It has two steps, so that the trips to L2 of several arrivals overlap: begin_arrival() returns the counter as the arrival
/// leaves it, and end_arrival() takes that. A successor that a worker awaits is not published: that worker runs it.
template <class P>
FLYWHEEL_TASK std::uint64_t begin_arrival(std::uint64_t& counter, std::uint64_t step) {
  return P::device(counter).fetch_add(step, P::kBetween) + step;
}
template <class P>
FLYWHEEL_TASK Arrival end_arrival(std::uint64_t& counter, std::uint64_t now, std::uint32_t predecessors) {
  if (!is_complete(now) || now & kIsAwaited) return {false, false};
  arm_again<P>(counter, predecessors);
  return {true, has_failed(now)};
}
template <class P>
FLYWHEEL_TASK Arrival arrive(std::uint64_t& counter, bool failed, std::uint32_t predecessors) {
  return end_arrival<P>(counter, begin_arrival<P>(counter, failed ? kFailedArrival : kArrival), predecessors);
}

/// Adds predecessors: tasks that a running predecessor spawns.
///
/// Relaxed: pairs with the fetch_add in arrive(). The spawning task arrives later, with release, so the count cannot reach
/// zero before; nothing else is published here.
template <class P>
FLYWHEEL_TASK void expect_more(std::uint64_t& counter, std::uint32_t count) {
  P::device(counter).add(count, Order::relaxed);
}

}  // namespace flywheel::detail
