// Dependency counters of dynamic runs: the last predecessor to arrive makes its successor ready.
//
// Each run has its own bank of counters, so overlapping runs of one executable cannot satisfy each other's waits. The
// last predecessor to arrive re-arms the counter before it publishes the task, so a bank needs no reset between
// iterations and runs (README.md). The finisher (runtime/dynamic/finish.hpp) and spawn() include this header.
#pragma once

#include <cstdint>

#include "platform.hpp"

namespace flywheel::detail {

/// What an arrival adds to a counter: {failed predecessors:32 | predecessors still to arrive:32}.
inline constexpr std::uint64_t kArrival = ~std::uint64_t{0};                          // adds -1
inline constexpr std::uint64_t kFailedArrival = (std::uint64_t{1} << 32) + kArrival;  // adds 1 to the upper half, -1

/// The result of arrive().
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
template <class P>
FLYWHEEL_TASK Arrival arrive(std::uint64_t& counter, bool failed, std::uint32_t predecessors) {
  const std::uint64_t step = failed ? kFailedArrival : kArrival;
  const std::uint64_t now = P::device(counter).fetch_add(step, P::kBetween) + step;
  if (static_cast<std::uint32_t>(now) != 0) return {false, false};
  // Relaxed: pairs with the next fetch_add on this counter, in the next iteration or the next run on this bank. That one
  // happens after the publication of the task, which releases this store.
  P::device(counter).store(predecessors, Order::relaxed);
  return {true, (now >> 32) != 0};
}

/// Adds one more predecessor: a task that a running predecessor has spawned.
///
/// Relaxed: pairs with the fetch_add in arrive(). The spawning task arrives later, with release, so the count cannot reach
/// zero before; nothing else is published here.
template <class P>
FLYWHEEL_TASK void expect_one_more(std::uint64_t& counter) {
  P::device(counter).add(1, Order::relaxed);
}

}  // namespace flywheel::detail
