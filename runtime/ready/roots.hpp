// The roots of an iteration: its tasks without predecessors. completion.hpp publishes them, local_work.hpp takes them.
//
// A few roots are published like all ready tasks. Of many roots, workers take shares from one counter in the run's
// state: 100,000 independent tasks cost the inbox poller one bit, and a worker one atomic a share. The bit marks the
// run among those of its priority; it is set before the first root is taken, and the worker that takes the last root
// clears it. Roots take no room in a queue, however many passes a busy worker misses. Idle workers get a ticket in
// their mailbox, which tells them to take roots.
//
// In between, where each worker has one or two roots to run, idle workers get roots in their mailboxes, and the rest is
// counted: a task in a queue costs the thread that publishes a trip to L2, and 130 of them 50 us.
//
// The counter word holds the number of roots and the next one to take. A stale ticket or bit (all roots are taken, or
// the slot has another run by now) therefore finds nothing, or takes a share of the run that is there. Either is
// correct: each root goes to exactly one worker.
#pragma once

#include "ready.hpp"

namespace flywheel::detail {

/// A share of the roots: root-list positions [first, first + count) of the run in `slot`.
struct RootShare {
  std::uint32_t first;
  std::uint32_t count;
  std::uint32_t left;  // roots that were left before this share was taken
};

/// Takes up to `wanted` roots of the run.
template <class P>
FLYWHEEL_TASK RootShare take_roots(RunState& run, std::uint32_t wanted) {
  // Acquire: pairs with the release store in publish_roots(); the read-modify-writes of other shares continue
  // its release sequence. The run's line and the inputs of the roots go with it.
  const std::uint64_t word = P::device(run.roots).fetch_add(wanted, Order::acquire);
  const auto count = static_cast<std::uint32_t>(word >> 32), next = static_cast<std::uint32_t>(word);
  if (next >= count) return {0, 0, 0};
  const std::uint32_t left = count - next;
  return {next, left < wanted ? left : wanted, left};
}

/// Turns a position in a run's root list into an item.
struct RootList {
  std::uint32_t first_record;
  std::uint32_t first_root;
  std::uint16_t slot;
  bool dense;

  FLYWHEEL_TASK static RootList of(const RunConstants& run) {
    return {run.first_record, run.first_root, static_cast<std::uint16_t>(run.slot), (run.flags & kRootsDense) != 0};
  }
  FLYWHEEL_TASK std::uint64_t item(const DeviceState& dev, std::uint32_t i) const {
    return Item{first_record + (dense ? i : dev.edges[first_root + i].task), slot, false}.pack();
  }
};

/// The item of a run's only root, or of the root that came with its message.
FLYWHEEL_TASK inline std::uint64_t only_root(const DeviceState& dev, const RunConstants& run) {
  const std::uint32_t record = run.flags & kInlineRoot ? dev.inline_base + run.slot : run.first_record + run.root_task;
  return Item{record, static_cast<std::uint16_t>(run.slot), false}.pack();
}

/// Lets workers take the roots of the run from position `first` on: marks the run as one with roots left, before the first of
/// them can be taken.
template <class P>
FLYWHEEL_TASK void open_roots(const DeviceState& dev, const RunConstants& run, std::uint32_t first) {
  ControlWords& control = *dev.control;
  const std::uint32_t slot = run.slot, level = run.priority;
  // Both relaxed: hints, for find_roots() and read_broadcast(). take_roots() acquires what they lead to, which also
  // orders close_roots() after them. They come after close_roots() of the previous pass: its last root was done before
  // this pass began.
  P::device(control.root_bits[level][slot / 64]).set(std::uint64_t{1} << slot % 64, Order::relaxed);
  P::device(control.broadcast.queued[level]).add(kRootedRun, Order::relaxed);
  // Release: pairs with take_roots(). Any worker that finds the run's bit or has a ticket for this slot, even a stale
  // one, may take roots from here on.
  P::device(dev.runs[run.slot].roots).store(std::uint64_t{run.root_count} << 32 | first, Order::release);
}

/// Clears the mark: by the worker that takes the last root, before it runs it.
template <class P>
FLYWHEEL_TASK void close_roots(const DeviceState& dev, std::uint32_t slot, std::uint32_t level) {
  ControlWords& control = *dev.control;
  // Both relaxed: as in open_roots().
  P::device(control.root_bits[level][slot / 64]).fetch_and(~(std::uint64_t{1} << slot % 64), Order::relaxed);
  P::device(control.broadcast.queued[level]).add(-kRootedRun, Order::relaxed);
}

/// How many roots of the run in `slot` are left. Relaxed: a hint; take_roots() decides and acquires.
template <class P>
FLYWHEEL_TASK std::uint32_t roots_left(const DeviceState& dev, std::uint32_t slot) {
  const std::uint64_t word = P::device(dev.runs[slot].roots).load(Order::relaxed);
  const auto count = static_cast<std::uint32_t>(word >> 32), next = static_cast<std::uint32_t>(word);
  return next < count ? count - next : 0;
}

/// So many roots are worth no counter.
inline constexpr std::uint32_t kFewRoots = 4;

/// Publishes the roots of an iteration, from number `first` on. `worker`: the caller, see Ready.
template <class P>
FLYWHEEL_COLD void publish_roots(const DeviceState& dev, std::uint32_t worker, const RunConstants& message,
                                 std::uint32_t first = 0) {
  const RunConstants run = message;  // a copy: when the last root is out, the run may end and its slot be reused
  const RootList roots = RootList::of(run);
  const Ready<P> ready(dev, worker);
  if (!(run.flags & kRootsUniform)) {
    for (std::uint32_t i = first; i < run.root_count; ++i) {
      const std::uint64_t item = roots.item(dev, i);
      publish_items<P>(dev, worker, 1, level_of(dev.edges[run.first_root + i].priority, run.priority), &item);
    }
  } else if (run.root_count <= kFewRoots && run.root_count <= 2 * dev.workers) {
    ready.publish(run.root_count - first, run.priority, [&](std::uint32_t i) { return roots.item(dev, first + i); });
  } else if (roots.dense && run.root_count <= 2 * dev.workers) {
    const std::uint32_t sent =
        first + ready.deliver_to_idle(run.root_count - first, [&](std::uint32_t i) { return roots.item(dev, first + i); });
    if (sent < run.root_count) open_roots<P>(dev, run, sent);
  } else {
    open_roots<P>(dev, run, first);
    const std::uint64_t ticket = Item{Item::kRootTicket, static_cast<std::uint16_t>(run.slot), false}.pack();
    ready.deliver_to_idle(run.root_count - first, [&](std::uint32_t) { return ticket; });
  }
}

}  // namespace flywheel::detail
