// The end of an iteration and of a run: the last sink to arrive starts the next iteration, or writes the completion
// word that the host waits for. The finisher, the inbox poller, and phased and compiled runs include this header.
#pragma once

#include "followers.hpp"

namespace flywheel::detail {

/// Tells the host that the run in `slot` has ended, after release_fence_of_system(). A thread that acquires the word sees all
/// that the run's tasks wrote.
template <class P>
FLYWHEEL_TASK void report_end(const DeviceState& dev, std::uint32_t slot, std::uint64_t word) {
  // Release, system scope: pairs with the host's acquire loads in is_complete() and take_rest()
  // (host/submit/completion.cpp), and with the poller's in Enlistment. This thread has acquired the arrivals of all tasks, so
  // their results and streamed values go with the word, and with the closed list. One fence for both: a second one would
  // wait for the word to cross PCIe.
  P::system(dev.completions[slot].word).store(word, P::kAfterRelease);
}

/// Counts ended runs for the inbox poller, behind their completion words.
template <class P>
FLYWHEEL_TASK void count_ends(const DeviceState& dev, std::uint32_t count) {
  // Relaxed: pairs with MessageHandler::may_leave(), which only compares the number.
  P::device(dev.control->finished.value).add(count, Order::relaxed);
}

/// Tells the host that the run in `slot` has ended, counts it for the inbox poller, and takes its followers, for
/// let_followers_in(). told() is called as soon as the host can see it: the list of followers is a trip to L2 away then.
/// list() returns it as it was since the run began, see close_followers().
template <class P, class Told, class List>
FLYWHEEL_TASK Followers end_run(const DeviceState& dev, std::uint32_t slot, std::uint64_t word, Told&& told, List&& list) {
  P::release_fence_of_system();  // for report_end() and close_followers()
  report_end<P>(dev, slot, word);
  told();
  const Followers followers =
      close_followers<P>(dev, slot, static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word) != 0, list());
  count_ends<P>(dev, 1);
  return followers;
}
/// The same for a thread that has not read the list. It does so behind the word for the host: before it, the fence might wait
/// for the load.
template <class P, class Told>
FLYWHEEL_TASK Followers end_run(const DeviceState& dev, std::uint32_t slot, std::uint64_t word, Told&& told) {
  return end_run<P>(dev, slot, word, told, [&] { return followers_in<P>(dev, slot); });
}

/// Completes a run: fills its completion slot and ends it. `clean`: no task failed or was skipped and no iteration was
/// left out, so there is no fault or cancellation to look up. Returns its followers, like end_run().
template <class P>
FLYWHEEL_COLD Followers complete_run(const DeviceState& dev, const RunConstants& run, bool clean) {
  RunState& state = dev.runs[run.slot];
  CompletionSlot& done = dev.completions[run.slot];
  // All relaxed. Loads: this thread has acquired the arrivals of the tasks that wrote these words; only `cancelled`,
  // stored by MessageHandler::cancel(), may be seen late. Stores: the release in end_run() publishes them for the
  // host's take_rest().
  std::uint32_t code = 0;
  if (!clean) {
    const std::uint64_t fault = P::device(state.line.fault).load(Order::relaxed);
    const bool cancelled = P::device(state.line.cancelled).load(Order::relaxed) != 0;
    code = fault ? static_cast<std::uint32_t>(fault >> 32) : cancelled ? static_cast<std::uint32_t>(Status::cancelled) : 0;
    // What has not failed stores nothing: the fence in end_run() would wait for it to cross PCIe.
    if (code) P::system(done.fault_task).store(static_cast<std::uint32_t>(fault), Order::relaxed);
  }
  if (code || run.repeat > 1) {
    const std::uint32_t iteration = P::device(state.line.iteration).load(Order::relaxed);
    P::system(done.iterations).store(iteration + (code ? 0 : 1), Order::relaxed);
    P::system(done.emitted).store(P::device(state.emitted).load(Order::relaxed), Order::relaxed);
  }
  return end_run<P>(dev, run.slot, completion_word(run.generation, code), [] {});
}

/// Ends a follower that does not run, because a predecessor has failed. Returns its own followers.
template <class P>
FLYWHEEL_COLD Followers end_follower(const DeviceState& dev, const RunConstants& run) {
  constexpr std::uint32_t kNoTask = ~0u;  // the index behind it is 0: no task
  record_fault<P>(dev.runs[run.slot], static_cast<std::uint32_t>(Status::predecessor_failed), kNoTask);
  return complete_run<P>(dev, run, false);
}

/// After a run has ended: arrives at its followers. Returns a root that the worker runs next, of the `levels` most urgent
/// priorities, or kEmptyMailbox.
template <class P>
FLYWHEEL_COLD std::uint64_t let_followers_in(const DeviceState& dev, std::uint32_t worker, Followers followers,
                                             std::uint32_t levels) {
  FollowerList<P> list(dev, worker, levels);
  list.add(followers);
  return list([&](const RunConstants& run) { return end_follower<P>(dev, run); });
}

/// The inbox poller, when the message of a follower has come: true if the run is not to be admitted now. It waits for its
/// predecessors then, or has ended, since one has failed. No other run follows it yet: their messages come later.
/// `followed`: where the predecessors are laid out. In registers they would have no index, and local memory is a trip to L2
/// away, since an acquire empties L1.
template <class P>
FLYWHEEL_COLD bool waits_or_fails(const DeviceState& dev, const Message& message, FollowedRuns& followed) {
  const RunConstants& run = message.run;
  take_followed_runs(followed, message);
  Enlistment<P> enlistment(dev, run.slot);
  if (enlistment(followed, run.flags & kTakesValues)) return true;
  if (enlistment.failed()) {
    end_follower<P>(dev, run);
    return true;
  }
  if (run.flags & kTakesValues) take_values<P>(dev, dev.runs[run.slot]);
  return false;
}

/// After the last task of a run: lets the run's followers in. Returns what the worker keeps now: `kept`, or if that is
/// kEmptyMailbox a root of a follower, unless something more urgent waits.
template <class P>
FLYWHEEL_COLD std::uint64_t go_on_with(const DeviceState& dev, std::uint32_t worker, Followers followers, std::uint64_t kept) {
  const bool keeps = dev.keep_successor && kept == kEmptyMailbox;
  const std::uint32_t levels = keeps ? most_urgent_queued<P>(dev) + 1 : 0;
  const std::uint64_t root = let_followers_in<P>(dev, worker, followers, levels);
  return root == kEmptyMailbox ? kept : root;
}

/// Re-arms the run for one more iteration. False if this was the last one, or if the run failed, was cancelled or asked
/// to stop.
template <class P>
FLYWHEEL_TASK bool begin_iteration(const DeviceState& dev, const RunConstants& run) {
  if (run.repeat <= 1) return false;
  RunState& state = dev.runs[run.slot];
  // Relaxed loads: as in complete_run().
  const std::uint32_t next = P::device(state.line.iteration).load(Order::relaxed) + 1;
  const bool again = next < run.repeat && !P::device(state.line.stop).load(Order::relaxed) &&
                     !P::device(state.line.cancelled).load(Order::relaxed) && !P::device(state.line.fault).load(Order::relaxed);
  if (!again) return false;
  // Relaxed stores: publishing the roots, see publish_roots(), releases both words to the workers of the next
  // iteration.
  P::device(state.line.iteration).store(next, Order::relaxed);
  P::device(state.outstanding).store(run.sinks, Order::relaxed);
  return true;
}

/// Arrives for sinks, or tasks spawned in a sink's place, that are done. The last arrival of an iteration starts the
/// next iteration or completes the run.
/// `alone`: the sink is the only one of its iteration and spawned nothing. No other thread touches `outstanding`, which
/// stays armed.
/// `clean`: the calling sink did not fail. A sole sink is skipped if any task before it failed, so with `alone` no task
/// of the run failed.
/// `count`: how many sinks this call arrives for: the last one and those that ended before it on this worker, see
/// LongFinish::notify_run(). This thread has acquired what they wrote.
/// Returns the followers of the run, if it has ended.
template <class P>
FLYWHEEL_TASK Followers arrive_sink(const DeviceState& dev, std::uint32_t worker, const RunConstants& run, bool alone,
                                    bool clean, std::uint32_t count = 1) {
  // Release and acquire, as arrive() in counter.hpp: pairs with this line on other workers. All arrivals are
  // read-modify-writes, so the last one acquires what all sinks wrote and passes it on, in publish_roots() or
  // end_run().
  if (!alone && P::device(dev.runs[run.slot].outstanding).fetch_add(0u - count, Order::acq_rel) != count) return {};
  if (!begin_iteration<P>(dev, run)) return complete_run<P>(dev, run, alone && clean && run.repeat == 1);
  publish_roots<P>(dev, worker, run);
  return {};
}

}  // namespace flywheel::detail
