// What the inbox poller does with a message: admits a run to the workers, cancels one, or notes that the kernel is to park or to
// be suspended. For the direct slot see records/idle.hpp.
#pragma once

#include "../records/graph.hpp"
#include "../records/schedule.hpp"
#include "suspend.hpp"

namespace flywheel::detail {

/// Handles messages, on one thread. The line of a submitted run is open, and the record that came with it is stored.
template <class P>
class MessageHandler {
 public:
  FLYWHEEL_TASK MessageHandler(const DeviceState& dev, DirectSlot& direct_slot)
      : dev_(dev),
        direct_slot_(direct_slot),
        state_(dev.control->poller) {}

  /// `last`: no other message has come with this one.
  FLYWHEEL_TASK void handle(const Message& message, bool last) {
    const RunConstants run = message.run;  // one copy: the loads of all words overlap
    switch (static_cast<InboxOp>(run.op)) {
      case InboxOp::submit:
        return admit(message, run, last);
      case InboxOp::cancel:
        return cancel(run);
      case InboxOp::park:
        parking_ = true;
        return;
      case InboxOp::suspend:
        suspending_ = true;
        if (is_collective_live()) suspend_collective();
        return;
    }
  }

  /// Admits `count` runs whose first root came with the message: publishes these roots, which are in the buffer, together.
  FLYWHEEL_TASK void admit_carried(std::uint32_t count, std::uint32_t priority, const std::uint64_t* roots) {
    state_.admitted += count;
    publish_items<P>(dev_, dev_.workers, count, priority, roots);
  }

  /// True once the host has asked to park and all admitted runs have ended, or has asked to suspend the kernel, no collective
  /// run is live, and all workers have come to leave. Relaxed: pairs with the add in end_run(), which comes after the
  /// completion word; only the numbers are compared.
  FLYWHEEL_TASK bool may_leave() {
    if (parking_ && P::device(dev_.control->finished.value).load(Order::relaxed) == state_.admitted) return true;
    return suspending_ && !is_collective_live() && have_assembled();
  }

  /// At the begin of a launch: calls all workers to the collective run that was suspended in the last one, if there is one.
  FLYWHEEL_TASK void open() {
    RunState& run = dev_.runs[state_.collective];
    if (run.line.suspended) announce(run, state_.collective);  // plain: written in the last launch
    else post(0);
  }

  /// Publishes the announcement: the latest collective run, and in `stop` the launch that is to end (0: none).
  FLYWHEEL_TASK void post(std::uint32_t stop, std::uint32_t flags = 0) const {
    // Release: pairs with the acquire load in WorkFinder::take_announcement(). The line and state of the collective run go
    // with it. The relaxed loads of it, in read_broadcast() and is_wanted(), are hints.
    const std::uint64_t word = announcement_word(state_.epoch, state_.collective | flags, stop);
    P::device(dev_.control->broadcast.announcement).store(word, Order::release);
  }

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

 private:
  /// Admits a run: announces a collective one; else delivers its only root over the direct slot or publishes its roots. The
  /// record that the message carries is a root, and the only one at first.
  FLYWHEEL_TASK void admit(const Message& message, const RunConstants& constants, bool last) {
    RunState& run = dev_.runs[constants.slot];
    ++state_.admitted;
    // Relaxed: pairs with the arrivals in arrive_sink(); the roots or the direct slot's item release it.
    P::device(run.outstanding).store(constants.sinks, Order::relaxed);
    if (constants.param_bytes) copy_params(run, message, constants);
    if (constants.flags & kFollows && waits_or_fails<P>(dev_, message)) return;
    if (constants.flags & kAllWorkers) return announce(run, constants.slot);
    const bool has_inline_root = constants.flags & kInlineRoot;
    const std::uint64_t root = only_root(dev_, constants);
    if ((has_inline_root || constants.root_count == 1) && offer_directly<P>(direct_slot_, root, constants, message)) {
      if (last) wait_for_direct_worker();
    } else if (has_inline_root) {
      publish_items<P>(dev_, dev_.workers, 1, constants.priority, &root);
    } else {
      publish_roots<P>(dev_, dev_.workers, message.run);
    }
  }

  /// Stops polling after a run went out over the direct slot, until the worker of this block waits there again, or for
  /// 2 us. A poll under way across PCIe holds up the fence with which that worker publishes its result (by 1 us,
  /// measured on an H200).
  FLYWHEEL_TASK void wait_for_direct_worker() const {
    constexpr std::uint64_t kLongestNs = 2000;
    const std::uint64_t begin = P::now_ns();
    // Relaxed: pairs with the release store in IdleSlot::enroll(). Only the moment matters; offer_directly() acquires.
    for (std::uint32_t spins = 0; P::block(direct_slot_.waiting).load(Order::relaxed) == 0; ++spins)
      if (spins % 8 == 7 && P::now_ns() - begin > kLongestNs) return;
  }

  /// Copies the run's parameters: from the message, or from host memory if they are too long for it. Plain: Inbox::read()
  /// has acquired the source, and admitting the run releases the copy.
  FLYWHEEL_TASK void copy_params(RunState& run, const Message& message, const RunConstants& constants) const {
    const unsigned char* from = constants.param_bytes <= most_carried(constants.flags)
                                    ? message.carried
                                    : dev_.params + std::size_t{constants.slot} * kParamBytes;
    const auto* words = reinterpret_cast<const std::uint64_t*>(from);
    auto* to = reinterpret_cast<std::uint64_t*>(run.params);
    for (std::uint32_t i = 0; i < (constants.param_bytes + 7) / 8; ++i) to[i] = words[i];
  }

  /// Announces a phased or compiled run, or what is left of a suspended one; every worker joins it when it is next idle.
  FLYWHEEL_TASK void announce(RunState& run, std::uint32_t slot) {
    RunLine& line = run.line;
    // Relaxed: pairs with GridBarrier::arrive(). The barrier is at rest: the host submits one collective run at a time,
    // and all arrivals of the previous one came before its completion.
    line.barrier_base = P::device(dev_.control->barrier.value).load(Order::relaxed);
    // The sinks of a compiled run count passes from the run's begin, so its base is as if the earlier ones had just arrived.
    if (line.suspended && (line.constants.flags & kCompiled))
      line.barrier_base -= std::uint64_t{line.resume.pass} * dev_.execs[line.constants.exec].schedule->sinks;
    line.suspended = 0;
    ++state_.joined;
    ++state_.epoch;
    state_.collective = slot;
    assembling_ = false;  // workers that wait for each other join the run first
    if (suspending_) suspend_collective();
    post(0);
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
    if (!assembling_) {
      assembling_ = true;
      assembling_from_ = P::now_ns();
      // Relaxed, here and below: pairs with wait_for_assembly(). post() releases the new epoch to those who are to see it.
      assembled.store(std::uint64_t{++state_.epoch} << 32, Order::relaxed);
      post(dev_.launch, kAssemble);
      return false;
    }
    if (static_cast<std::uint32_t>(assembled.load(Order::relaxed)) == dev_.workers) return true;
    if (P::now_ns() - assembling_from_ >= dev_.assembly_ns) call_off();
    return false;
  }

  /// All workers go on: with the collective run that was suspended for nothing, or with other work.
  FLYWHEEL_TASK void call_off() {
    suspending_ = assembling_ = false;
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

  FLYWHEEL_TASK void cancel(const RunConstants& cancelled) const {
    RunLine& line = dev_.runs[cancelled.slot].line;
    // A cancellation that comes late meets a newer generation and does nothing.
    // Relaxed: pairs with the loads in BlockCore::cancelled(), copy_line(), complete_run(), asked_of() and signal_done().
    // Only the value counts.
    if (line.constants.generation == cancelled.generation) P::device(line.cancelled).store(1, Order::relaxed);
  }

  const DeviceState& dev_;
  DirectSlot& direct_slot_;
  InboxPollerState state_;
  bool parking_ = false;
  bool suspending_ = false;
  bool assembling_ = false;  // the workers are called together
  std::uint64_t assembling_from_ = 0;
};

}  // namespace flywheel::detail
