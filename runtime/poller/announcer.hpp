// The announcer: calls all workers, to a collective run or to leave the kernel together. The inbox poller has one. README.md
// tells how runs are suspended.
#pragma once

#include "../dynamic/suspend.hpp"
#include "../records/graph.hpp"
#include "../records/schedule.hpp"

namespace flywheel::detail {

/// What the announcer keeps during a launch. On a GPU it lies in shared memory, like the rest of PollerBuffer: calls out of
/// line leave the poller's loop few registers, and local memory is read through L1, which every acquire empties.
struct AnnouncerState : InboxPollerState {
  bool suspending;
  bool assembling;                // the workers are called together
  std::uint64_t assembling_from;  // since when
};

/// One thread, the leading lane of the inbox poller.
template <class P>
class Announcer {
 public:
  FLYWHEEL_TASK Announcer(const DeviceState& dev, AnnouncerState& state) : dev_(dev), state_(state) {}

  /// At the begin of a launch: calls all workers to the collective run that was suspended in the last one, if there is one.
  FLYWHEEL_TASK void open() {
    state_ = {dev_.control->poller, false, false, 0};  // plain: written in the last launch, like the line below
    RunState& run = dev_.runs[state_.collective];
    if (run.line.suspended) announce(run, state_.collective);
    else post(0);
  }

  /// Announces a phased or compiled run, or what is left of a suspended one; every worker joins it when it is next idle.
  FLYWHEEL_TASK void announce(RunState& run, std::uint32_t slot) {
    RunLine& line = run.line;
    // Relaxed: pairs with GridBarrier::arrive(). The barrier is at rest: the host submits one collective run at a time,
    // and all arrivals of the previous one came before its completion.
    line.barrier_base = P::device(dev_.control->barrier.value).load(Order::relaxed);
    line.meeting_base = P::device(dev_.control->meetings.value).load(Order::relaxed);  // likewise
    // The sinks of a compiled run count passes from the run's begin, so its base is as if the earlier ones had just arrived.
    if (line.suspended && (line.constants.flags & kCompiled))
      line.barrier_base -= std::uint64_t{line.resume.pass} * dev_.execs[line.constants.exec].schedule->sinks;
    line.suspended = 0;
    ++state_.joined;
    ++state_.epoch;
    state_.collective = slot;
    state_.assembling = false;  // workers that wait for each other join the run first
    if (state_.suspending) suspend_collective();
    post(0);
  }

  /// The host has asked to suspend the kernel.
  FLYWHEEL_TASK void suspend() {
    state_.suspending = true;
    if (is_collective_live()) suspend_collective();
  }

  /// True once the host has asked to suspend the kernel, no collective run is live, and all workers have come to leave.
  FLYWHEEL_TASK bool may_leave() { return state_.suspending && !is_collective_live() && have_assembled(); }

  /// Saves the poller's state for the next launch, then tells the workers of this launch to leave, with a new epoch: so they
  /// heed it wherever they would heed the call to a collective run, also while there is work. Plain: the next launch begins
  /// after this one has ended.
  FLYWHEEL_TASK void close(std::uint64_t next_entry) {
    state_.next_entry = next_entry;
    ++state_.epoch;
    dev_.control->poller = state_;
    dev_.control->first_epoch[(dev_.launch + 1) % 2] = state_.epoch;
    post(dev_.launch);
  }

  /// Runs that were admitted, in all launches.
  FLYWHEEL_TASK void count_admitted(std::uint32_t count) { state_.admitted += count; }
  FLYWHEEL_TASK std::uint64_t admitted() const { return state_.admitted; }

 private:
  /// Publishes the announcement: the latest collective run, and in `stop` the launch that is to end (0: none).
  FLYWHEEL_TASK void post(std::uint32_t stop, std::uint32_t flags = 0) const {
    // Release: pairs with the acquire load in WorkFinder::take_announcement(). The line and state of the collective run go
    // with it. The relaxed loads of it, in read_broadcast() and is_wanted(), are hints.
    const std::uint64_t word = announcement_word(state_.epoch, state_.collective | flags, stop);
    P::device(dev_.control->broadcast.announcement).store(word, Order::release);
  }

  /// Relaxed: pairs with the add in leave_collective(); only the numbers are compared.
  FLYWHEEL_TASK bool is_collective_live() const {
    return P::device(dev_.control->collective_ends.value).load(Order::relaxed) != state_.joined;
  }
  /// A traced run goes on to its end: the clocks of another launch do not continue those of its trace.
  FLYWHEEL_TASK void suspend_collective() const {
    RunState& run = dev_.runs[state_.collective];
    if (!(run.line.constants.flags & (kTraced | kPack))) ask_to_suspend<P>(run);
  }

  /// Calls all workers together, and then tells whether all have come. Calls the suspension off if that takes too long.
  FLYWHEEL_TASK bool have_assembled() {
    const auto assembled = P::device(dev_.control->assembled.value);
    if (!state_.assembling) {
      state_.assembling = true;
      state_.assembling_from = P::now_ns();
      // Relaxed, here and below: pairs with wait_for_assembly(). post() releases the new epoch to those who are to see it.
      assembled.store(std::uint64_t{++state_.epoch} << 32, Order::relaxed);
      post(dev_.launch, kAssemble);
      return false;
    }
    if (static_cast<std::uint32_t>(assembled.load(Order::relaxed)) == dev_.workers) return true;
    if (P::now_ns() - state_.assembling_from >= dev_.assembly_ns) call_off();
    return false;
  }

  /// All workers go on: with the collective run that was suspended for nothing, or with other work.
  FLYWHEEL_TASK void call_off() {
    state_.suspending = state_.assembling = false;
    // Acquire: pairs with the release in suspend_run(), which comes before is_collective_live() has become false.
    P::device(dev_.control->collective_ends.value).load(Order::acquire);
    RunState& run = dev_.runs[state_.collective];
    if (run.line.suspended) {
      announce(run, state_.collective);
    } else {
      ++state_.epoch;
      post(0, kAssemble);  // stops no launch: the workers go on with what they find
    }
    // Relaxed, both: pairs with KernelLifetime::note_call_off(), which only compares the number; only this thread writes it.
    const auto calls = P::system(*dev_.calls_off);
    calls.store(calls.load(Order::relaxed) + 1, Order::relaxed);
  }

  const DeviceState& dev_;
  AnnouncerState& state_;
};

}  // namespace flywheel::detail
