// Dependency counters: the last predecessor to arrive makes a task ready.
//
// Each run works on a bank of counters of its own for as long as it lives, so two overlapping runs of one executable
// can never satisfy each other's waits. Nobody resets a bank: the last arriver re-arms its counter *before* it
// publishes the task. Whoever decrements that counter next, in the next iteration or the next run on the same bank,
// does so after something that happened after the publication, so it sees the armed value.
#pragma once

#include <cstdint>

#include "platform.hpp"

namespace flywheel {

/// {failed predecessors:32 | predecessors still to come:32}
inline constexpr std::uint64_t kArrival = ~std::uint64_t{0};                          // adds -1
inline constexpr std::uint64_t kFailedArrival = (std::uint64_t{1} << 32) + kArrival;  // adds 1 to the upper half, -1

struct Arrival {
  bool last;    // the caller was the last predecessor: the task is its to publish
  bool failed;  // a predecessor failed or was skipped
};

/// One predecessor is done. Re-arms the counter with `predecessors` if it was the last. Between P::release_fence(), for
/// what this predecessor wrote, and P::acquire_fence(), with which the last one takes over what all the others released
/// here; it passes that on when it publishes the task. Release alone would lose the others' writes.
template <class P>
FLYWHEEL_TASK Arrival arrive(std::uint64_t& counter, bool failed, std::uint32_t predecessors) {
  const std::uint64_t step = failed ? kFailedArrival : kArrival;
  const std::uint64_t now = P::device(counter).fetch_add(step, P::kBetween) + step;
  if (static_cast<std::uint32_t>(now) != 0) return {false, false};
  P::device(counter).store(predecessors, Order::relaxed);  // ordered by the publication that follows
  return {true, (now >> 32) != 0};
}

/// A running predecessor adds one more to come: a task it spawned. Relaxed: the spawner itself has not arrived yet,
/// so the count cannot reach zero before its own, later, releasing arrival.
template <class P>
FLYWHEEL_TASK void expect_one_more(std::uint64_t& counter) {
  P::device(counter).add(1, Order::relaxed);
}

}  // namespace flywheel
