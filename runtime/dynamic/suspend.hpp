// Suspension of collective runs: the live one ends its part of this launch at a pass or phase boundary, and goes on from
// there when it is announced again. The inbox poller, compiled and phased runs include this header; README.md tells the whole
// mechanism.
#pragma once

#include "../ready/completion.hpp"
#include "../records/task_slot.hpp"

namespace flywheel::detail {

/// The inbox poller asks the live collective run to suspend itself. Nothing waits for an answer: a sink of a compiled run finds
/// the bit in a word that it reads anyway, worker 0 of a phased run looks for it, and votes at the next boundary.
template <class P>
FLYWHEEL_COLD void ask_to_suspend(RunState& run) {
  // Relaxed: pairs with the loads in signal_done() and asked_of(). Only the value counts; it is seen now or some passes
  // later. No dynamic run gets the bit: see leave_collective().
  P::device(run.line.stop).set(kSuspendAsked, Order::relaxed);
}

/// After a vote to stop, once no worker uses the run any more: true if the run was only asked to suspend itself, false if it
/// has ended. `end_of_pass`: the boundary of the vote is the end of a pass. One thread of the run asks.
template <class P>
FLYWHEEL_TASK bool is_suspension(RunLine& line, bool end_of_pass) {
  // All relaxed: the caller has acquired the arrivals of all workers. Only `cancelled`, stored by MessageHandler::cancel(),
  // may be seen late: then the next part of the run sees it.
  const std::uint32_t stop = P::device(line.stop).load(Order::relaxed);
  const bool ends = (end_of_pass && (stop & kStopCalled)) || P::device(line.fault).load(Order::relaxed) ||
                    P::device(line.cancelled).load(Order::relaxed);
  return (stop & kSuspendAsked) && !ends;
}

/// Counts a collective run that has ended or was suspended. The same thread calls it before complete_run().
/// `order`: relaxed at an end; a suspension releases what the run's next part needs to Announcer::call_off().
template <class P>
FLYWHEEL_TASK void leave_collective(const DeviceState& dev, Order order = Order::relaxed) {
  // Relaxed at an end: pairs with the load in Announcer::is_collective_live(); only the number counts. In case of an
  // end the poller sees it before it reads the next message for that slot: the release in end_run() and the host pass it on.
  // So no run that has taken the slot since is asked to suspend itself.
  P::device(dev.control->collective_ends.value).add(1, order);
}

/// Suspends the run, which is to go on at `resume`. Plain and relaxed: leave_collective() releases them, and no other thread
/// uses the line meanwhile but for MessageHandler::cancel().
template <class P>
FLYWHEEL_COLD void suspend_run(const DeviceState& dev, RunLine& line, ResumePoint resume) {
  line.resume = resume;
  line.suspended = 1;
  P::device(line.stop).fetch_and(kStopCalled, Order::relaxed);
  leave_collective<P>(dev, Order::release);
}

/// A worker that is called to leave and has no local work: waits until the announcement changes, or the runtime is aborted. No
/// worker leaves before all have come, because a task of one may need others to go on: it may run for long, or wait for
/// another run. If not all come in time, the inbox poller calls the suspension off.
template <class P>
FLYWHEEL_COLD void wait_for_assembly(const DeviceState& dev, std::uint64_t announcement) {
  const auto assembled = P::device(dev.control->assembled.value);
  for (bool counted = false; !counted;) {
    // Relaxed, both: pair with the accesses in Announcer::have_assembled(); only the number counts. A worker that comes
    // late finds another epoch: nobody counts on it.
    const std::uint64_t word = assembled.load(Order::relaxed);
    if (word >> 32 != announcement_epoch(announcement)) return;
    counted = assembled.compare_exchange(word, word + 1, Order::relaxed);
  }
  // Relaxed, both: the worker's loop acquires the new announcement, and a worker that sees an abort only leaves.
  BroadcastWords& words = dev.control->broadcast;
  for (std::uint32_t spins = 0;
       P::device(words.announcement).load(Order::relaxed) == announcement && P::device(words.abort).load(Order::relaxed) == 0;
       ++spins)
    P::pause(spins);
}

/// Worker 0, when its part of a phased run has ended: suspends the run or tells the host of its end.
template <class P>
FLYWHEEL_COLD void end_phased(const DeviceState& dev, std::uint32_t slot, const PhasesEnd& end) {
  // An aborted run is not complete: the host fails it and reports which wait gave up. Relaxed: pairs with the stores of `abort`
  // in report_wait() (base/wait.hpp) and by the host; only its value counts.
  if (end.early && P::device(dev.control->broadcast.abort).load(Order::relaxed)) return;
  RunLine& line = dev.runs[slot].line;
  const bool last = end.end_of_pass && end.pass + 1 == line.constants.repeat;
  if (end.early && !last && is_suspension<P>(line, end.end_of_pass))
    return suspend_run<P>(dev, line, end.end_of_pass ? ResumePoint{end.pass + 1, 0} : ResumePoint{end.pass, end.phase});
  leave_collective<P>(dev);
  // Relaxed: complete_run() loads it on this thread, and its release publishes the host's copy.
  P::device(line.iteration).store(end.pass, Order::relaxed);
  const Followers followers = complete_run<P>(dev, line.constants, false);
  if (followers.first()) let_followers_in<P>(dev, 0, followers, 0);
}

}  // namespace flywheel::detail
