// Heartbeats: what a worker has been doing for so long that somebody may want to know.
//
// In host memory, so that the watchdog needs no CUDA call. A worker writes only when a task is slow (the first time
// after kSlowTaskNs), so short tasks cost nothing.
#pragma once

#include <cstdint>

#include "runtime/platform.hpp"

namespace flywheel {

inline constexpr std::uint64_t kSlowTaskNs = 20'000'000;

enum class WorkerState : std::uint32_t { absent = 0, present = 1, slow = 2 };

struct alignas(64) Heartbeat {
  std::uint64_t item;       // the packed Item it runs, valid while state is slow
  std::uint64_t elapsed_ns; // of that task, by the worker's own clock
  std::uint64_t started_ns; // CPU workers cannot report while a body runs: when it began, 0 if none does
  std::uint32_t state;      // a WorkerState, written last
  std::uint32_t beats;
};

/// Written by the owner alone.
template <class P>
FLYWHEEL_COLD void beat(Heartbeat& heart, WorkerState state, std::uint64_t item, std::uint64_t elapsed_ns) {
  P::system(heart.item).store(item, Order::relaxed);
  P::system(heart.elapsed_ns).store(elapsed_ns, Order::relaxed);
  P::system(heart.beats).store(P::system(heart.beats).load(Order::relaxed) + 1, Order::relaxed);
  // Release: pairs with the watchdog's acquire load of `state`; item and time belong to it.
  P::system(heart.state).store(static_cast<std::uint32_t>(state), Order::release);
}

/// A CPU worker's body begins; the watchdog reads the clock for it.
template <class P>
FLYWHEEL_TASK void begin_body(Heartbeat& heart, std::uint64_t item) {
  P::system(heart.item).store(item, Order::relaxed);
  P::system(heart.started_ns).store(P::now_ns(), Order::release);  // pairs with the watchdog's acquire
}
template <class P>
FLYWHEEL_TASK void end_body(Heartbeat& heart) {
  P::system(heart.started_ns).store(0, Order::release);  // pairs with the watchdog's acquire: this item is over
}

}  // namespace flywheel
