// The end of a run: the last sink to finish starts the next iteration or tells the host.
#pragma once

#include "runtime/ready.hpp"

namespace flywheel {

/// Collective. Publishes the first tasks of an iteration.
template <class P>
FLYWHEEL_TASK void publish_roots(const World& world, const Ready<P>& ready, std::uint16_t slot) {
  const RunState& run = world.runs[slot];
  const ExecRecord& exec = world.execs[run.exec];
  const Edge* roots = world.edges + exec.first_root;
  const auto item_of = [&](std::uint32_t i) { return Item{run.first_record + roots[i].task, slot, false}.pack(); };
  if (exec.uniform_roots) {
    ready.publish(exec.root_count, run.priority, item_of);
    return;
  }
  for (std::uint32_t base = 0; base < exec.root_count; base += P::lanes()) {
    const std::uint32_t i = base + P::lane();
    const bool have = i < exec.root_count;
    const std::uint32_t own = have ? roots[i].priority : 0;
    const std::uint32_t level = own == static_cast<std::uint32_t>(Priority::inherit) ? run.priority : own;
    ready.publish_lanes(have, have ? item_of(i) : 0, level);
  }
}

/// One thread. The run is over: everything its tasks wrote is visible to whoever acquires the completion word.
template <class P>
FLYWHEEL_TASK void complete_run(const World& world, std::uint16_t slot) {
  RunState& run = world.runs[slot];
  CompletionSlot& done = world.completions[slot];
  const std::uint64_t fault = P::device(run.fault).load(Order::relaxed);
  const bool cancelled = P::device(run.cancelled).load(Order::relaxed) != 0;
  const std::uint32_t code = fault       ? static_cast<std::uint32_t>(fault >> 32)
                             : cancelled ? static_cast<std::uint32_t>(Status::cancelled)
                                         : 0;
  if (code || run.repeat > 1) {
    P::system(done.fault_task).store(static_cast<std::uint32_t>(fault), Order::relaxed);
    P::system(done.iterations).store(P::device(run.iteration).load(Order::relaxed) + (code ? 0 : 1), Order::relaxed);
    P::system(done.emitted).store(P::device(run.emitted).load(Order::relaxed), Order::relaxed);
  }
  const std::uint64_t word = completion_word(run.generation, code);
  // Release, system: pairs with the host's acquire in host/completion. Results and streamed values of all tasks are
  // ordered before it by the arrivals that this thread acquired.
  P::system(done.word).store(word, Order::release);
  // After the word, off the critical path: the door only compares it with what it admitted, before it parks.
  P::device(world.control->finished.value).fetch_add(1, Order::relaxed);
}

/// Collective. All sinks of an iteration are done: once more from the roots, or complete.
template <class P>
FLYWHEEL_TASK void end_iteration(const World& world, const Ready<P>& ready, std::uint16_t slot) {
  RunState& run = world.runs[slot];
  bool again = false;
  if (P::lane() == 0 && run.repeat > 1) {
    const std::uint32_t next = P::device(run.iteration).load(Order::relaxed) + 1;
    again = next < run.repeat && !P::device(run.stop).load(Order::relaxed) &&
            !P::device(run.cancelled).load(Order::relaxed) && !P::device(run.fault).load(Order::relaxed);
    if (again) {
      // Relaxed: the roots' publication releases both words to everyone who works on the next iteration.
      P::device(run.iteration).store(next, Order::relaxed);
      P::device(run.outstanding).store(run.sinks, Order::relaxed);
    }
  }
  again = P::broadcast(again);
  P::converge();
  if (again) return publish_roots<P>(world, ready, slot);
  if (P::lane() == 0) complete_run<P>(world, slot);
  P::converge();
}

/// Collective. A sink, or a task spawned in a sink's place, is done.
template <class P>
FLYWHEEL_TASK void arrive_sink(const World& world, const Ready<P>& ready, std::uint16_t slot, bool alone) {
  RunState& run = world.runs[slot];
  bool last = alone && run.sinks == 1;  // nobody else ever touches `outstanding`: it stays armed
  if (!last) {
    std::uint32_t before = 0;
    // Release and acquire as in counter.hpp: the last one speaks for all.
    if (P::lane() == 0) before = P::device(run.outstanding).fetch_add(~0u, Order::acq_rel);
    last = P::broadcast(before) == 1;
    P::converge();
  }
  if (last) end_iteration<P>(world, ready, slot);
}

}  // namespace flywheel
