// Heartbeats: what each worker runs and for how long. The watchdog (host/kernel/heartbeat.cpp) finds stalled tasks with them.
//
// Heartbeats are in host memory, so the watchdog needs no CUDA call. A GPU worker writes when it starts and ends, and
// when a task is slow (the first time after kSlowTaskNs), so short tasks cost nothing. A CPU worker also writes when a
// body begins and ends.
#pragma once

#include <cstdint>

#include "../base/platform.hpp"

namespace flywheel::detail {

/// The time after which a GPU worker first reports a task that still runs, in ns.
inline constexpr std::uint64_t kSlowTaskNs = 20'000'000;

/// Bit of Heartbeat::started_ns: the body has ended.
inline constexpr std::uint64_t kBodyEnded = std::uint64_t{1} << 63;

enum class WorkerState : std::uint32_t { absent = 0, present = 1, slow = 2 };

/// One worker's heartbeat. Only the worker writes it. A CPU worker cannot report while a body runs, so it writes when
/// each body began instead.
struct alignas(64) Heartbeat {
  std::uint64_t item;        // the packed Item that runs
  std::uint64_t elapsed_ns;  // how long it has run, by the worker's own clock; valid while state is slow
  std::uint64_t started_ns;  // CPU workers: when the last body began; with kBodyEnded if it has ended
  std::uint64_t joined;      // CPU workers: the compiled run that this worker joined last, see joined_run()
  std::uint64_t part_ns;     // CPU workers: when the last body of that run began on this worker; 0: none has
  std::uint32_t state;       // a WorkerState
  std::uint32_t beats;       // odd while beat() writes item, elapsed_ns and state
};

/// The value of Heartbeat::joined for a run. It is never 0.
FLYWHEEL_TASK constexpr std::uint64_t joined_run(std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | slot;
}

/// Writes one heartbeat, as in a seqlock. Only the worker calls it, and rarely. A reader that finds the same even number
/// of beats before and after has read the words of one beat: if it acquires a word of a later beat, it also sees that
/// beat's odd number.
template <class P>
FLYWHEEL_COLD void beat(Heartbeat& heart, WorkerState state, std::uint64_t item, std::uint64_t elapsed_ns) {
  // Relaxed: pairs with no other thread's store, since only this worker writes it.
  const std::uint32_t beats = P::system(heart.beats).load(Order::relaxed);
  // Relaxed: pairs with the loads of `beats` in Watchdog::read(). The release stores below publish the odd number.
  P::system(heart.beats).store(beats + 1, Order::relaxed);
  // Release, all four: each pairs with the acquire load of the same word in Watchdog::read() (of `state` in state_of()).
  P::system(heart.item).store(item, Order::release);
  P::system(heart.elapsed_ns).store(elapsed_ns, Order::release);
  P::system(heart.state).store(static_cast<std::uint32_t>(state), Order::release);
  P::system(heart.beats).store(beats + 2, Order::release);
}

/// Notes that a CPU worker begins a body; the watchdog measures how long it runs.
///
/// Release, both stores: they pair with the acquire loads in Watchdog::read(). A watchdog that has read the item of a later
/// body then also sees that `started_ns` has changed (at least by the kBodyEnded of the body before), and discards the pair.
template <class P>
FLYWHEEL_TASK void begin_body(Heartbeat& heart, std::uint64_t item, std::uint64_t now_ns = P::now_ns()) {
  P::system(heart.item).store(item, Order::release);
  P::system(heart.started_ns).store(now_ns, Order::release);
}
/// The same for a body of the compiled run that the worker has joined. `part_ns` keeps its time also after the worker has
/// gone on to another run.
template <class P>
FLYWHEEL_TASK void begin_part(Heartbeat& heart, std::uint64_t item) {
  const std::uint64_t now_ns = P::now_ns();
  // Release: pairs with the acquire load in Watchdog::read(); publishes the value of `joined` that it belongs to.
  P::system(heart.part_ns).store(now_ns, Order::release);
  begin_body<P>(heart, item, now_ns);
}
/// Notes that the body of begin_body() or begin_part() has ended.
template <class P>
FLYWHEEL_TASK void end_body(Heartbeat& heart) {
  // Relaxed: pairs with no other thread's store, since only this worker writes it.
  const std::uint64_t started = P::system(heart.started_ns).load(Order::relaxed);
  // Release: pairs with the acquire load in Watchdog::read(), which then sees that this item no longer runs.
  P::system(heart.started_ns).store(started | kBodyEnded, Order::release);
}
/// Notes that a CPU worker has joined a compiled run. The watchdog reads `joined` before and after `part_ns`. If both
/// values are equal, `part_ns` belongs to that run: it is cleared before `joined` changes and set after.
template <class P>
FLYWHEEL_TASK void show_joined(Heartbeat& heart, std::uint32_t slot, std::uint32_t generation) {
  // Release, both: each pairs with the acquire load of the same word in Watchdog::read(). A watchdog that sees the new
  // `joined` also sees that `part_ns` was cleared.
  P::system(heart.part_ns).store(0, Order::release);
  P::system(heart.joined).store(joined_run(slot, generation), Order::release);
}

}  // namespace flywheel::detail
