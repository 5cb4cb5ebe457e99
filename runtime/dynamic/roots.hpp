// The first tasks of an iteration.
//
// A few roots are published like all ready tasks. For many, workers take shares of the run's roots from one counter:
// 100,000 independent tasks cost the inbox poller one bit, and a worker one atomic a share. The bit stands for the run among those
// of its priority; it is set before the first root is taken and cleared by the consumer of the last one. Nothing of this takes
// room in a queue, however many passes a busy worker misses. Idle workers get a ticket in their mailbox, so that they look.
//
// The counter carries the number of roots beside the next one to take, so a ticket or bit that is stale (all roots are
// taken, or even the slot has another run by now) either finds nothing or takes a share of whatever run is there, which is
// as good as any: each root goes to exactly one consumer.
#pragma once

#include "ready.hpp"

namespace flywheel {

/// A share of the roots: root-list positions [first, first + count) of the run in `slot`.
struct RootShare {
  std::uint32_t first;
  std::uint32_t count;
  std::uint32_t left;  // roots that nobody had taken, as of now
};

/// Takes up to `wanted` roots.
template <class P>
FLYWHEEL_TASK RootShare take_roots(RunState& run, std::uint32_t wanted) {
  // Acquire: pairs with the release store in publish_roots(); the run's line and inputs go with the roots.
  const std::uint64_t word = P::device(run.roots).fetch_add(wanted, Order::acquire);
  const auto count = static_cast<std::uint32_t>(word >> 32), next = static_cast<std::uint32_t>(word);
  if (next >= count) return {0, 0, 0};
  const std::uint32_t left = count - next;
  return {next, left < wanted ? left : wanted, left};
}

/// What it takes to turn a position in a run's root list into an item.
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

/// Before any of the run's roots can be taken.
template <class P>
FLYWHEEL_TASK void open_roots(const DeviceState& dev, std::uint32_t slot, std::uint32_t level) {
  ControlWords& control = *dev.control;
  // Both relaxed: hints. take_roots() acquires what they lead to, and with it that close_roots() comes after them. They come
  // after close_roots() of the pass before: its last root was done before this pass began.
  P::device(control.root_bits[level][slot / 64]).set(std::uint64_t{1} << slot % 64, Order::relaxed);
  P::device(control.broadcast.queued[level]).add(kRootedRun, Order::relaxed);
}

/// By the consumer of the last root, before it runs that.
template <class P>
FLYWHEEL_TASK void close_roots(const DeviceState& dev, std::uint32_t slot, std::uint32_t level) {
  ControlWords& control = *dev.control;
  // Both relaxed: as in open_roots().
  P::device(control.root_bits[level][slot / 64]).fetch_and(~(std::uint64_t{1} << slot % 64), Order::relaxed);
  P::device(control.broadcast.queued[level]).add(-kRootedRun, Order::relaxed);
}

/// Roots of the run in `slot` that nobody has taken: a hint, relaxed.
template <class P>
FLYWHEEL_TASK std::uint32_t roots_left(const DeviceState& dev, std::uint32_t slot) {
  const std::uint64_t word = P::device(dev.runs[slot].roots).load(Order::relaxed);
  const auto count = static_cast<std::uint32_t>(word >> 32), next = static_cast<std::uint32_t>(word);
  return next < count ? count - next : 0;
}

/// Publishes the first tasks of an iteration.
template <class P>
FLYWHEEL_COLD void publish_roots(const DeviceState& dev, std::uint32_t worker, const RunConstants& message) {
  const RunConstants run = message;  // once the last root is out, the run may be over and its slot another's
  const RootList roots = RootList::of(run);
  const Ready<P> ready(dev, worker);
  if (!(run.flags & kRootsUniform)) {
    for (std::uint32_t i = 0; i < run.root_count; ++i) {
      const std::uint64_t item = roots.item(dev, i);
      publish_items<P>(dev, worker, 1, level_of(dev.edges[run.first_root + i].priority, run.priority), &item);
    }
  } else if (run.root_count <= 2 * dev.workers) {
    ready.publish(run.root_count, run.priority, [&](std::uint32_t i) { return roots.item(dev, i); });
  } else {
    open_roots<P>(dev, run.slot, run.priority);
    // Release: pairs with take_roots(), by who finds the run's bit or has a ticket for it, maybe a stale one.
    P::device(dev.runs[run.slot].roots).store(std::uint64_t{run.root_count} << 32, Order::release);
    const std::uint64_t ticket = Item{Item::kRootTicket, static_cast<std::uint16_t>(run.slot), false}.pack();
    ready.deliver_to_idle(dev.workers, [&](std::uint32_t) { return ticket; });
  }
}

}  // namespace flywheel
