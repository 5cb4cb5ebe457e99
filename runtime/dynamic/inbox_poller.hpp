// The inbox poller: takes messages from the inbox and lets runs in. One warp on the GPU, one thread on the CPU. (For the direct slot, see
// ready.hpp.)
#pragma once

#include <cstring>

#include "completion.hpp"
#include "../records/graph.hpp"

namespace flywheel {

/// All lanes: a submission, of which each has words `mine`, becomes the constants of its run; the rest of the line is
/// zeroed. One coalesced store on the GPU. Relaxed: what lets the run in releases it, after P::converge().
template <class P>
FLYWHEEL_TASK void open_line(RunLine& line, const std::uint32_t* mine) {
  auto* words = reinterpret_cast<std::uint32_t*>(&line);
  for (std::uint32_t i = P::lane(), k = 0; i < sizeof(RunLine) / 4; i += P::lanes(), ++k)
    P::device(words[i]).store(i < kRunWords ? mine[k] : 0, Order::relaxed);
}

/// Lets runs in: what the inbox poller does with a message, once the run's line is open. One thread.
template <class P>
class MessageHandler {
 public:
  FLYWHEEL_TASK MessageHandler(const DeviceState& dev, DirectSlot& direct_slot, const RunConstants& message)
      : dev_(dev), direct_slot_(direct_slot), message_(message), state_(dev.control->poller) {}

  FLYWHEEL_TASK void handle() {
    const RunConstants message = message_;  // all words at once: each look at one of them would wait for itself
    switch (static_cast<InboxOp>(message.op)) {
      case InboxOp::submit: return admit(message);
      case InboxOp::cancel: return cancel();
      case InboxOp::park: parking_ = true; return;
    }
  }

  /// Relaxed: it compares numbers, and end_run() counts a run after it has told the host.
  FLYWHEEL_TASK bool may_park() const {
    return parking_ && P::device(dev_.control->finished.value).load(Order::relaxed) == state_.admitted;
  }

  FLYWHEEL_TASK void post(std::uint32_t stop) const {
    // Release: pairs with the acquire load in WorkFinder::take_phased(); the state of a phased run goes with it.
    P::device(dev_.control->broadcast.announcement).store(announcement_word(state_.epoch, phased_, stop), Order::release);
  }

  FLYWHEEL_TASK void close(std::uint64_t next_entry) {
    state_.next_entry = next_entry;
    ++state_.parks;
    dev_.control->poller = state_;
    post(dev_.launch);
  }

 private:
  FLYWHEEL_TASK void admit(const RunConstants& message) {
    RunState& run = dev_.runs[message.slot];
    ++state_.admitted;
    P::device(run.outstanding).store(message.sinks, Order::relaxed);  // released with the roots or the direct slot's item
    if (message.param_bytes) copy_params(run);
    if (message.flags & kAllWorkers) return announce(run);
    if (message.root_count == 1 && offer_directly<P>(direct_slot_, only_root(message), message)) return hold_breath();
    publish_roots<P>(dev_, dev_.workers, message_);
  }

  /// A poll that is on its way across PCIe holds up the fence with which the worker beside the inbox poller publishes a result
  /// (1 us, measured on an H200). So the inbox poller waits until that worker sits on the direct slot again, but not for long.
  FLYWHEEL_TASK void hold_breath() const {
    constexpr std::uint64_t kLongestNs = 2000;
    const std::uint64_t begin = P::now_ns();
    for (std::uint32_t spins = 0; P::block(direct_slot_.waiting).load(Order::relaxed) == 0; ++spins)
      if (spins % 8 == 7 && P::now_ns() - begin > kLongestNs) return;
  }

  FLYWHEEL_TASK static std::uint64_t only_root(const RunConstants& message) {
    return Item{message.first_record + message.root_task, static_cast<std::uint16_t>(message.slot), false}.pack();
  }

  FLYWHEEL_TASK void copy_params(RunState& run) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(dev_.params + std::size_t{message_.slot} * kParamBytes);
    auto* to = reinterpret_cast<std::uint64_t*>(run.params);
    for (std::uint32_t i = 0; i < (message_.param_bytes + 7) / 8; ++i) to[i] = words[i];
  }

  /// Every worker joins when it is next idle. The host lets one collective run in at a time, so the barrier is
  /// still.
  FLYWHEEL_TASK void announce(RunState& run) {
    run.line.barrier_base = P::device(dev_.control->barrier.value).load(Order::relaxed);
    ++state_.epoch;
    phased_ = message_.slot;
    post(0);
  }

  FLYWHEEL_TASK void cancel() const {
    RunLine& line = dev_.runs[message_.slot].line;
    // A late cancel meets a newer generation and does nothing.
    if (line.constants.generation == message_.generation) P::device(line.cancelled).store(1, Order::relaxed);
  }

  const DeviceState& dev_;
  DirectSlot& direct_slot_;
  const RunConstants& message_;
  InboxPollerState state_;
  std::uint32_t phased_ = 0;
  bool parking_ = false;
};

/// Polls the inbox: the lanes of P read a message together, and the leading lane lets the run in.
template <class P>
class InboxPoller {
 public:
  /// `direct slot` is the idle slot of the worker in the same block; `local work` is where the lanes lay a message out, on the GPU in
  /// shared memory.
  FLYWHEEL_TASK InboxPoller(const DeviceState& dev, DirectSlot& direct_slot, RunConstants& buffer)
      : dev_(dev), inbox_(Views<P>{dev}.inbox()), buffer_(buffer), handler_(dev, direct_slot, buffer),
        next_(dev.control->poller.next_entry), released_(next_) {}

  /// All lanes. Returns when the kernel parks or aborts.
  /// One look at a time: with two on their way, half a trip apart, a submission took 4.37 us to its result in place of 3.37
  /// (H200), and a phase boundary 1.16 in place of 0.93, because fences of this SM wait for them.
  FLYWHEEL_TASK void operator()() {
    if (P::lane() == 0) handler_.post(0);
    for (std::uint32_t spins = 0; !(spins % 16 == 15 && P::any(leaves())); ++spins) {
      if (take_message()) {
        if (P::lane() == 0) handler_.handle();
        P::converge();
        spins = 0;
      } else {
        if (spins == kQuiet) release_entries();
        P::pause(spins);
      }
    }
    release_entries();
    if (P::lane() == 0) handler_.close(next_);
  }

 private:
  static constexpr std::uint32_t kQuiet = 16;  // empty polls after which the host is told what was read
  static constexpr std::uint32_t kWordsEach = (kRunWords + P::lanes() - 1) / P::lanes();

  FLYWHEEL_TASK bool leaves() const {
    return P::lane() == 0 &&
           (handler_.may_park() || P::device(dev_.control->broadcast.abort).load(Order::relaxed) != 0);
  }

  FLYWHEEL_TASK bool take_message() {
    std::uint32_t mine[kWordsEach] = {};
    if (!inbox_.read(next_, mine)) return false;
    ++next_;
    auto* words = reinterpret_cast<std::uint32_t*>(&buffer_);
    for (std::uint32_t i = P::lane(), k = 0; i < kRunWords; i += P::lanes(), ++k) words[i] = mine[k];
    P::converge();  // all lanes have acquired what each has read
    // From the lanes that have them: what was just laid out is a while away.
    const auto word = [&](std::size_t offset) { return P::word_of_lanes(mine, static_cast<std::uint32_t>(offset / 4)); };
    const std::uint32_t op = word(offsetof(RunConstants, op)), slot = word(offsetof(RunConstants, slot));
    if (op == static_cast<std::uint32_t>(InboxOp::submit)) open_line<P>(dev_.runs[slot].line, mine);
    P::converge();  // the leader releases what all lanes wrote
    if (next_ - released_ >= dev_.inbox_capacity / 4) release_entries();
    return true;
  }

  /// Not after each message: a store across PCIe would hold up the fences of the run it has just let in.
  FLYWHEEL_TASK void release_entries() {
    if (released_ != next_ && P::lane() == 0) inbox_.release(next_);
    released_ = next_;
  }

  const DeviceState& dev_;
  Inbox<P> inbox_;
  RunConstants& buffer_;
  MessageHandler<typename P::Leader> handler_;
  std::uint64_t next_;
  std::uint64_t released_;
};

}  // namespace flywheel
