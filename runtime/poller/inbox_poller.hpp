// The inbox poller: takes messages from the inbox and admits runs to the workers. One warp polls on the GPU
// (device/kernel.cuh), one thread on the CPU (cpu/entry.hpp). For the direct slot see records/idle.hpp.
#pragma once

#include "../ready/spread_roots.hpp"
#include "inbox_poll.hpp"

namespace flywheel::detail {

/// Of a run with several roots: the worker beside the poller is not among those to whom publish_roots() delivers. 1 if it gets
/// the first one; with `held`, behind those that all lanes spread. Out of line: the poller keeps its registers.
template <class P>
FLYWHEEL_COLD std::uint32_t offer_first_root(const DeviceState& dev, DirectSlot& direct_slot, const Message& message,
                                             std::uint64_t* held) {
  const RunConstants& run = message.run;
  if (held) *held = kEmptyMailbox;
  if (run.root_count < 2 || !(run.flags & kRootsUniform)) return 0;
  const std::uint64_t item = RootList::of(run).item(dev, 0);
  if (!held) return offer_directly<P>(direct_slot, item, run, message);
  if (!claim_directly<P>(direct_slot, run)) return 0;
  *held = item;
  return 1;
}

/// Handles messages, on one thread. The line of a submitted run is open, and the record that came with it is stored.
/// `kSpreads`: it leaves many roots to all lanes, see PollerBuffer::spread_from.
template <class P, bool kSpreads = false>
class MessageHandler {
 public:
  FLYWHEEL_TASK MessageHandler(const DeviceState& dev, DirectSlot& direct_slot, PollerBuffer& buffer)
      : dev_(dev),
        direct_slot_(direct_slot),
        followed_(buffer.followed),
        held_(buffer.held),
        spread_from_(buffer.spread_from),
        announcer_(dev, buffer.announcer) {}

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
        return announcer_.suspend();
    }
  }

  /// A follower that InboxPoll has opened, and whose predecessor has ended. The next messages may have enlisted its followers.
  FLYWHEEL_TASK void begin_follower(const Message& message) {
    const RunConstants run = message.run;
    // Relaxed: as in Enlistment::failed().
    if (!P::device(dev_.runs[run.slot].follow.failed).load(Order::relaxed)) return begin<false>(message, run, false);
    const Followers followers = end_follower<P>(dev_, run);
    if (followers.first()) let_followers_in<P>(dev_, dev_.workers, followers, 0);
  }

  /// Runs that InboxPoll has admitted.
  FLYWHEEL_TASK void count_admitted(std::uint32_t count) { announcer_.count_admitted(count); }

  /// Stops polling after a run went out over the direct slot, until the worker of this block has ended the task, or for 2 us. A
  /// poll under way across PCIe holds up the fence with which that worker publishes its result (by 1 us, measured on an H200).
  ///
  /// A program that submits, waits and submits again always takes about the same time for it. If the first poll reads the entry
  /// just before that, the message waits for a whole trip; so the first poll is put off, by more each time that only the second
  /// one has found the message and by less each time that the first one has. `spins`: the polls that the message took.
  FLYWHEEL_TASK void wait_for_direct_worker(std::uint32_t spins) {
    constexpr std::uint64_t kLongestNs = 2000;
    if (spins == 1) put_off_ -= put_off_ < kLessTicks ? put_off_ : kLessTicks;
    if (spins == 2 && put_off_ < kMostTicks) put_off_ += kMoreTicks;
    const std::uint64_t begin = P::now_ns();
    // Relaxed: pairs with IdleSlot::note_end(). Only the moment matters; claim_direct_slot() acquires.
    // A task that ends no run does not set `ended`; its worker waits again at the slot. Relaxed: pairs with
    // IdleSlot::enroll(), as above.
    for (std::uint32_t polls = 0;
         (P::block(direct_slot_.ended).load(Order::relaxed) | P::block(direct_slot_.waiting).load(Order::relaxed)) == 0;
         ++polls)
      if (polls % 8 == 7 && P::now_ns() - begin > kLongestNs) return;
    P::wait_ticks(put_off_);
  }

  /// True once the host has asked to park and all admitted runs have ended, or the kernel may be suspended. Relaxed: pairs with
  /// the add in end_run(), which comes after the completion word; only the numbers are compared.
  FLYWHEEL_TASK bool may_leave() {
    if (parking_ && P::device(dev_.control->finished.value).load(Order::relaxed) == announcer_.admitted()) return true;
    return announcer_.may_leave();
  }

  /// At the begin and the end of a launch, see Announcer.
  FLYWHEEL_TASK void open() { announcer_.open(); }
  FLYWHEEL_TASK void close(std::uint64_t next_entry) { announcer_.close(next_entry); }

 private:
  /// Admits a run: announces a collective one; else delivers its only root over the direct slot or publishes its roots. The
  /// record that the message carries is a root, and the only one at first.
  FLYWHEEL_TASK void admit(const Message& message, const RunConstants& constants, bool last) {
    RunState& run = dev_.runs[constants.slot];
    announcer_.count_admitted(1);
    // Relaxed: pairs with the arrivals in arrive_sink(); the roots or the direct slot's item release it.
    P::device(run.outstanding).store(constants.sinks, Order::relaxed);
    if (constants.param_bytes) copy_params(run, message, constants);
    if (constants.flags & kFollows && waits_or_fails<P>(dev_, message, followed_)) return;
    begin<kSpreads>(message, constants, last);
  }

  /// Begins a run that waits for nothing. `kLeaves`: with many roots it leaves them to all lanes.
  template <bool kLeaves>
  FLYWHEEL_TASK void begin(const Message& message, const RunConstants& constants, bool last) {
    RunState& run = dev_.runs[constants.slot];
    if (constants.flags & kAllWorkers) return call_all<kLeaves>(run, constants);
    const bool has_inline_root = constants.flags & kInlineRoot;
    const std::uint64_t root = only_root(dev_, constants);
    if ((has_inline_root || constants.root_count == 1) && offer_directly<P>(direct_slot_, root, constants, message)) {
      if (last) wait_for_direct_worker(0);
    } else if (has_inline_root) {
      publish_items<P>(dev_, dev_.workers, 1, constants.priority, &root);
    } else {
      const bool leaves = kLeaves && has_spread_roots(message.run);
      const std::uint32_t first = offer_first_root<P>(dev_, direct_slot_, message, leaves ? &held_ : nullptr);
      if (leaves) spread_from_ = first;
      else publish_roots<P>(dev_, dev_.workers, message.run, first);
    }
  }

  /// Announces a collective run, and wakes the workers that are idle.
  template <bool kLeaves>
  FLYWHEEL_TASK void call_all(RunState& run, const RunConstants& constants) {
    announcer_.announce(run, constants.slot);
    const bool claimed = claim_direct_slot<P>(direct_slot_);
    if (kLeaves) {
      held_ = claimed ? kWakeUpItem : kEmptyMailbox;
      spread_from_ = PollerBuffer::kSpreadWakeUp;
    } else {
      if (claimed) deliver_directly<P>(direct_slot_, kWakeUpItem, false);
      wake_idle<P>(dev_, dev_.workers);
    }
  }

  /// Copies the run's parameters: from the message, or from host memory if they are too long for it. Plain: Inbox::take()
  /// has acquired the source, and admitting the run releases the copy.
  FLYWHEEL_TASK void copy_params(RunState& run, const Message& message, const RunConstants& constants) const {
    const unsigned char* from = constants.param_bytes <= most_carried(constants.flags)
                                    ? message.carried
                                    : dev_.params + std::size_t{constants.slot} * kParamBytes;
    const auto* words = reinterpret_cast<const std::uint64_t*>(from);
    auto* to = reinterpret_cast<std::uint64_t*>(run.params);
    for (std::uint32_t i = 0; i < (constants.param_bytes + 7) / 8; ++i) to[i] = words[i];
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
  FollowedRuns& followed_;
  std::uint64_t& held_;
  std::uint32_t& spread_from_;
  // Of the SM's clock. A trip takes 2,640; one poll in eight that comes too early is the optimum where the host's time varies
  // by some 100 ns.
  static constexpr std::uint32_t kLessTicks = 16, kMoreTicks = 112, kMostTicks = 1320;

  Announcer<P> announcer_;
  std::uint32_t put_off_ = 0;
  bool parking_ = false;
};

/// Polls the inbox: the lanes of P read messages together, and the leading lane handles them. `Starter`: see DirectDelivery.
template <class P, class Starter = DirectDelivery>
class InboxPoller {
 public:
  /// `direct_slot` belongs to the worker in the same block.
  FLYWHEEL_TASK InboxPoller(const DeviceState& dev, DirectSlot& direct_slot, PollerBuffer& buffer)
      : dev_(dev),
        inbox_(Views<P>{dev}.inbox()),
        direct_slot_(direct_slot),
        buffer_(buffer),
        handler_(dev, direct_slot, buffer),
        next_(dev.control->poller.next_entry),
        released_(next_) {}

  /// Polls until the kernel parks, is suspended or is aborted. All lanes call.
  FLYWHEEL_TASK void operator()() {
    if (P::lane() == 0) {
      handler_.open();
      buffer_.spread_from = PollerBuffer::kNoSpread;
    }
    PollFor next = PollFor::one;
    for (std::uint32_t spins = 0, since_look = 0;; ++spins, ++since_look) {
      if (since_look >= kPollsToLook) {
        if (P::any(leaves())) break;
        since_look = 0;
      }
      const Arrived now = poll_for(next);
      if (now.published | now.stored) {
        take(now, next, spins);
        P::converge();
        spins = 0;
        if (suspending_) since_look = kPollsToLook;  // messages may keep coming: look whether to leave after each
      } else if (next == PollFor::one) {
        if (spins >= kQuiet) release_entries();
        if (spins >= kIdlePolls) loaded_ = kLineWords;
        P::pause(spins);
      }
      next = now.next;
    }
    release_entries();
    if (P::lane() == 0) handler_.close(next_);
  }

 private:
  static constexpr std::uint32_t kMostKept = 64;     // messages taken, until the host is told: see InboxWriter::is_crowded()
  static constexpr std::uint32_t kQuiet = 16;        // empty polls in a row until the host is told what was read
  static constexpr std::uint32_t kIdlePolls = 64;    // and until it no longer expects long messages
  static constexpr std::uint32_t kLineWords = 16;    // what a poll for one message loads then
  static constexpr std::uint32_t kPollsToLook = 15;  // until the next look whether to leave

  FLYWHEEL_TASK InboxPoll<P, Starter> poll() const { return {dev_, direct_slot_, buffer_}; }

  /// The leading lane's vote to return. Relaxed: `abort` pairs with report_wait() and the host; only its value counts.
  FLYWHEEL_TASK bool leaves() {
    return P::lane() == 0 && (handler_.may_leave() || P::device(dev_.control->broadcast.abort).load(Order::relaxed) != 0);
  }

  FLYWHEEL_TASK Arrived poll_for(PollFor what) {
    if (what == PollFor::some) return poll().take_some(next_);
    if (what != PollFor::one) return poll().take_many(next_, what);
    typename InboxPoll<P, Starter>::One one;
    poll().load_one(next_, one, loaded_);
    return poll().take_one(next_, one, loaded_);
  }

  /// Does what is left to do for messages that a poll for `what` has found. `spins`: polls since the last ones.
  FLYWHEEL_TASK void take(const Arrived& now, PollFor what, std::uint32_t spins) {
    if (now.stored) return take_in_turn(now.stored, what != PollFor::one);
    if (P::lane() == 0) handler_.count_admitted(now.published);
    if (now.directly && now.next == PollFor::one && P::lane() == 0) handler_.wait_for_direct_worker(spins);
    note_taken(now.published);
  }

  /// Takes the `count` messages of the buffer.
  FLYWHEEL_TASK void take_in_turn(std::uint32_t count, bool packed) {
    for (std::uint32_t e = packed ? take_followers(count) : 0; e < count; ++e) {
      if (packed) poll().unpack(e);
      const bool many = take_message(buffer_.message, e + 1 == count);
      P::converge();  // a message that is handled may be about the run whose slot the next one opens anew
      if (many) spread();
    }
    note_taken(count);
  }

  /// Takes those followers at the front of the buffer that are enlisted together; their number. A poller that took one after
  /// the other would never be ahead of a chain of runs: it would find the run before ended, and admit the next in turn.
  FLYWHEEL_TASK std::uint32_t take_followers(std::uint32_t count) {
    const std::uint32_t taken = poll().enlist_followers(count);
    if (P::lane() == 0) handler_.count_admitted(taken);
    for (std::uint32_t e = 0; e < taken; ++e) {
      if (poll().waits(e)) continue;
      poll().unpack(e);
      if (P::lane() == 0) handler_.begin_follower(buffer_.message);
      P::converge();
    }
    return taken;
  }

  /// Spreads the roots, or the wake-ups, that the leading lane has left to all of them. The worker of this block gets its own
  /// behind the others, so that all begin within 0.8 us: 2.3 us the other way round, see dynamic/tuning.md.
  FLYWHEEL_TASK void spread() {
    if constexpr (P::lanes() > 1) {
      const std::uint32_t first = buffer_.spread_from;
      if (first == PollerBuffer::kNoSpread) return;  // the lanes meet in take_message() before the leading one sets it again
      if (first == PollerBuffer::kSpreadWakeUp) wake_idle_by_lanes<P>(dev_);
      else spread_roots<P>(dev_, buffer_.message.run, first);
      P::converge();  // all lanes have read `spread_from`, and what comes next may be about the same slot
      if (P::lane() == 0) {
        buffer_.spread_from = PollerBuffer::kNoSpread;
        if (buffer_.held != kEmptyMailbox) deliver_directly<typename P::Leader>(direct_slot_, buffer_.held, false);
      }
      P::converge();
    }
  }

  FLYWHEEL_TASK void note_taken(std::uint32_t count) {
    next_ += count;
    if (next_ - released_ >= kMostKept || next_ - released_ >= dev_.inbox_capacity / 4) release_entries();
  }

  /// Opens the line of a submitted run, stores the record that came with it, and handles the message. `last`: no other has come
  /// with it. True if there may be something to spread, see spread().
  FLYWHEEL_TASK bool take_message(const Message& message, bool last) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(&message);
    const auto word = [&](std::uint32_t i, std::uint32_t) { return words[i]; };
    const std::uint32_t op = message.run.op, slot = message.run.slot, flags = message.run.flags;
    const bool many = message.run.root_count > kFewRoots || flags & kAllWorkers;
    if (op == static_cast<std::uint32_t>(InboxOp::submit)) open_line<P>(dev_.runs[slot].line, word);
    suspending_ |= op == static_cast<std::uint32_t>(InboxOp::suspend);
    if (flags & kInlineRoot) store_record<P>(dev_.records[dev_.inline_base + slot], word);
    P::converge();  // the leading lane releases what all lanes wrote, see open_line()
    if (P::lane() == 0) handler_.handle(message, last);
    return many;
  }

  /// Tells the host which entries it may overwrite. Not after each message: a store across PCIe would hold up the
  /// fences of the run that was just admitted.
  FLYWHEEL_TASK void release_entries() {
    if (released_ != next_ && P::lane() == 0) inbox_.release(next_);
    released_ = next_;
  }

  const DeviceState& dev_;
  Inbox<P> inbox_;
  DirectSlot& direct_slot_;
  PollerBuffer& buffer_;
  MessageHandler<typename P::Leader, (P::lanes() > 1)> handler_;
  std::uint64_t next_;
  std::uint64_t released_;
  bool suspending_ = false;            // in all lanes
  std::uint32_t loaded_ = kLineWords;  // likewise: words that a poll for one message loads
};

}  // namespace flywheel::detail
