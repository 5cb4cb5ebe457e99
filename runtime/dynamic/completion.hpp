// The end of a run: the last sink to finish starts the next iteration or tells the host.
#pragma once

#include "roots.hpp"

namespace flywheel {

/// Tells the host, and the inbox poller. Everything the run's tasks wrote is visible to whoever acquires the word.
template <class P>
FLYWHEEL_TASK void end_run(const DeviceState& dev, std::uint32_t slot, std::uint64_t word) {
  // Release, system: pairs with the host's acquire in host/submit/completion. Results and streamed values of all tasks are
  // ordered before it by the arrivals that this thread acquired.
  P::system(dev.completions[slot].word).store(word, Order::release);
  // After the word, off the critical path: the inbox poller only compares it with what it admitted, before it parks.
  P::device(dev.control->finished.value).add(1, Order::relaxed);
}

/// The run is over.
/// `clean`: no task failed or was skipped and no iteration was left out, so there is nothing to look up.
template <class P>
FLYWHEEL_COLD void complete_run(const DeviceState& dev, const RunConstants& run, bool clean) {
  RunState& state = dev.runs[run.slot];
  CompletionSlot& done = dev.completions[run.slot];
  // All relaxed: this thread has acquired the arrivals of all that wrote the words it loads here (or, of `cancelled`, may
  // be late), and what it stores goes with the release of the word in end_run().
  std::uint32_t code = 0;
  if (!clean) {
    const std::uint64_t fault = P::device(state.line.fault).load(Order::relaxed);
    const bool cancelled = P::device(state.line.cancelled).load(Order::relaxed) != 0;
    code = fault ? static_cast<std::uint32_t>(fault >> 32) : cancelled ? static_cast<std::uint32_t>(Status::cancelled) : 0;
    P::system(done.fault_task).store(static_cast<std::uint32_t>(fault), Order::relaxed);
  }
  if (code || run.repeat > 1) {
    const std::uint32_t iteration = P::device(state.line.iteration).load(Order::relaxed);
    P::system(done.iterations).store(iteration + (code ? 0 : 1), Order::relaxed);
    P::system(done.emitted).store(P::device(state.emitted).load(Order::relaxed), Order::relaxed);
  }
  end_run<P>(dev, run.slot, completion_word(run.generation, code));
}

/// Re-arms the run for one more iteration; false if this was the last.
template <class P>
FLYWHEEL_TASK bool begin_iteration(const DeviceState& dev, const RunConstants& run) {
  if (run.repeat <= 1) return false;
  RunState& state = dev.runs[run.slot];
  // Relaxed: acquired with the arrivals, as in complete_run().
  const std::uint32_t next = P::device(state.line.iteration).load(Order::relaxed) + 1;
  const bool again = next < run.repeat && !P::device(state.line.stop).load(Order::relaxed) &&
                     !P::device(state.line.cancelled).load(Order::relaxed) &&
                     !P::device(state.line.fault).load(Order::relaxed);
  if (!again) return false;
  // Relaxed: the roots' publication releases both words to everyone who works on the next iteration.
  P::device(state.line.iteration).store(next, Order::relaxed);
  P::device(state.outstanding).store(run.sinks, Order::relaxed);
  return true;
}

/// A sink, or a task spawned in a sink's place, is done. `alone`: it is the only one of its iteration, so that nobody
/// else ever touches `outstanding` and it stays armed. `clean`: no task of the run was lost on the way, as far as a sole
/// sink, which hears of every failure, can tell. `count`: it arrives for so many, itself and those that ended before it on this
/// worker. What they wrote is acquired by this thread.
template <class P>
FLYWHEEL_TASK void arrive_sink(const DeviceState& dev, std::uint32_t worker, const RunConstants& run, bool alone,
                               bool clean, std::uint32_t count = 1) {
  // Release and acquire as in counter.hpp: the last one speaks for all.
  if (!alone && P::device(dev.runs[run.slot].outstanding).fetch_add(0u - count, Order::acq_rel) != count) return;
  if (begin_iteration<P>(dev, run)) publish_roots<P>(dev, worker, run);
  else complete_run<P>(dev, run, alone && clean && run.repeat == 1);
}

}  // namespace flywheel
