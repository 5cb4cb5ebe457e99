// Heartbeats: what a worker has been doing for so long that somebody may want to know.
//
// In host memory, so that the watchdog needs no CUDA call. A worker writes only when a task is slow (the first time
// after kSlowTaskNs), so short tasks cost nothing.
#pragma once

#include <cstdint>

#include "../base/platform.hpp"

namespace flywheel {

inline constexpr std::uint64_t kSlowTaskNs = 20'000'000;

/// In Heartbeat::started_ns.
inline constexpr std::uint64_t kBodyEnded = std::uint64_t{1} << 63;

enum class WorkerState : std::uint32_t { absent = 0, present = 1, slow = 2 };

struct alignas(64) Heartbeat {
  std::uint64_t item;       // the packed Item it runs, valid while state is slow
  std::uint64_t elapsed_ns; // of that task, by the worker's own clock
  std::uint64_t started_ns; // CPU workers cannot report while a body runs: when the last one began, and kBodyEnded if it is over
  std::uint64_t joined;     // CPU workers: the compiled run that this one joined last, see joined_run()
  std::uint64_t part_ns;    // CPU workers: when the last body of that run began here; 0: none has
  std::uint32_t state;      // a WorkerState
  std::uint32_t beats;      // odd while item, elapsed_ns and state are being written
};

/// What `joined` says of a run. Never 0.
FLYWHEEL_TASK constexpr std::uint64_t joined_run(std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | slot;
}

/// Written by the owner alone, and rarely. A reader that finds the same even number of beats before and after has read
/// words that belong together: whoever acquires one of a later beat sees the odd number of that beat, too.
template <class P>
FLYWHEEL_COLD void beat(Heartbeat& heart, WorkerState state, std::uint64_t item, std::uint64_t elapsed_ns) {
  const std::uint32_t beats = P::system(heart.beats).load(Order::relaxed);  // nobody else writes it
  // Relaxed: the releases below take it along.
  P::system(heart.beats).store(beats + 1, Order::relaxed);
  // Release, all four: each pairs with the watchdog's acquire load of the same word.
  P::system(heart.item).store(item, Order::release);
  P::system(heart.elapsed_ns).store(elapsed_ns, Order::release);
  P::system(heart.state).store(static_cast<std::uint32_t>(state), Order::release);
  P::system(heart.beats).store(beats + 2, Order::release);
}

/// A CPU worker's body begins; the watchdog reads the clock for it. Both stores pair with the watchdog's acquire loads: who
/// has read the item of a later body finds that `started_ns` has changed.
template <class P>
FLYWHEEL_TASK void begin_body(Heartbeat& heart, std::uint64_t item, std::uint64_t now_ns = P::now_ns()) {
  P::system(heart.item).store(item, Order::release);
  P::system(heart.started_ns).store(now_ns, Order::release);
}
/// The same for one of the compiled run that the worker has joined. It is known when that began also once the worker has gone on
/// to another run.
template <class P>
FLYWHEEL_TASK void begin_part(Heartbeat& heart, std::uint64_t item) {
  const std::uint64_t now_ns = P::now_ns();
  P::system(heart.part_ns).store(now_ns, Order::release);  // pairs with the watchdog's acquire, see show_joined()
  begin_body<P>(heart, item, now_ns);
}
template <class P>
FLYWHEEL_TASK void end_body(Heartbeat& heart) {
  const std::uint64_t started = P::system(heart.started_ns).load(Order::relaxed);  // nobody else writes it
  P::system(heart.started_ns).store(started | kBodyEnded, Order::release);  // pairs with the watchdog's acquire: this item is over
}
/// A CPU worker takes part in a compiled run from now on. The watchdog reads `joined` before and after `part_ns`: what it reads
/// there is of the same run if both are equal, since `part_ns` is cleared before `joined` changes and set after.
template <class P>
FLYWHEEL_TASK void show_joined(Heartbeat& heart, std::uint32_t slot, std::uint32_t generation) {
  P::system(heart.part_ns).store(0, Order::release);  // pairs with the watchdog's acquire
  P::system(heart.joined).store(joined_run(slot, generation), Order::release);  // pairs with the watchdog's acquire
}

}  // namespace flywheel
