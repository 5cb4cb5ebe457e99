// The inbox poller: takes messages from the inbox and admits runs to the workers. One warp polls on the GPU
// (device/kernel.cuh), one thread on the CPU (cpu/entry.hpp). For the direct slot see records/idle.hpp.
#pragma once

#include "announcer.hpp"

namespace flywheel::detail {

/// Writes the line of a submitted run: the message's first words become its constants, the rest is zeroed, but for the word of
/// its followers, which a worker that ended the slot's last run may still be about to change. All lanes call; word(i, k) is
/// word i of the message, the k-th of this lane. One coalesced store on the GPU. Relaxed: after P::converge() the leading lane
/// admits the run (see MessageHandler::admit()), which releases the line.
template <class P, class Word>
FLYWHEEL_TASK void open_line(RunLine& line, Word&& word) {
  auto* words = reinterpret_cast<std::uint32_t*>(&line);
  for (std::uint32_t i = P::lane(), k = 0; i < offsetof(RunLine, followers) / 4; i += P::lanes(), ++k)
    P::device(words[i]).store(i < kRunWords ? word(i, k) : 0, Order::relaxed);
}

/// Stores the record that a message carries, as open_line() stores the line.
template <class P, class Word>
FLYWHEEL_TASK void store_record(TaskRecord& record, Word&& word) {
  static_assert(sizeof(TaskRecord) == kInlineBytes);
  auto* words = reinterpret_cast<std::uint32_t*>(&record);
  constexpr std::uint32_t kFirst = offsetof(Message, carried) / 4;
  for (std::uint32_t i = P::lane(), k = 0; i < kMessageWords; i += P::lanes(), ++k)
    // Relaxed: as in open_line().
    if (i >= kFirst) P::device(words[i - kFirst]).store(word(i, k), Order::relaxed);
}

/// Handles messages, on one thread. The line of a submitted run is open, and the record that came with it is stored.
template <class P>
class MessageHandler {
 public:
  FLYWHEEL_TASK MessageHandler(const DeviceState& dev, DirectSlot& direct_slot)
      : dev_(dev),
        direct_slot_(direct_slot),
        announcer_(dev) {}

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

  /// Admits `count` runs whose first root came with the message: publishes these roots, which are in the buffer, together.
  FLYWHEEL_TASK void admit_carried(std::uint32_t count, std::uint32_t priority, const std::uint64_t* roots) {
    announcer_.count_admitted(count);
    publish_items<P>(dev_, dev_.workers, count, priority, roots);
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
    if (constants.flags & kFollows && waits_or_fails<P>(dev_, message)) return;
    if (constants.flags & kAllWorkers) return announcer_.announce(run, constants.slot);
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

  FLYWHEEL_TASK void cancel(const RunConstants& cancelled) const {
    RunLine& line = dev_.runs[cancelled.slot].line;
    // A cancellation that comes late meets a newer generation and does nothing.
    // Relaxed: pairs with the loads in BlockCore::cancelled(), copy_line(), complete_run(), asked_of() and signal_done().
    // Only the value counts.
    if (line.constants.generation == cancelled.generation) P::device(line.cancelled).store(1, Order::relaxed);
  }

  const DeviceState& dev_;
  DirectSlot& direct_slot_;
  Announcer<P> announcer_;
  bool parking_ = false;
};

/// Most messages that one poll takes: for a warp a single trip, for a thread so many loads more.
template <class P>
FLYWHEEL_TASK constexpr std::uint32_t most_messages() {
  return P::lanes() > 1 ? 16 : 2;
}

/// Where the lanes lay out what the leading lane handles: shared memory on the GPU, of which task bodies have the less.
struct PollerBuffer {
  static constexpr std::uint32_t kMessages = 8;  // that are handled one after the other
  Message messages[kMessages];
  std::uint64_t roots[16];
};

/// Polls the inbox: the lanes of P read messages together, and the leading lane handles them.
template <class P>
class InboxPoller {
 public:
  /// `direct_slot` belongs to the worker in the same block.
  FLYWHEEL_TASK InboxPoller(const DeviceState& dev, DirectSlot& direct_slot, PollerBuffer& buffer)
      : dev_(dev),
        inbox_(Views<P>{dev}.inbox()),
        buffer_(buffer),
        handler_(dev, direct_slot),
        next_(dev.control->poller.next_entry),
        released_(next_) {}

  /// Polls until the kernel parks, is suspended or is aborted. All lanes call. One poll is under way at a time: with two a
  /// submission takes 1 us longer (H200), because the fences of this SM wait for both; see tuning.md. A poll looks for
  /// one message, for two if the one before has seen one, and for kMostMessages if that has seen two: sixteen take 2 us longer
  /// than two (H100), and an idle poller's polls hold up the fences of this SM the less the fewer lines they read.
  FLYWHEEL_TASK void operator()() {
    if (P::lane() == 0) handler_.open();
    std::uint32_t before = 0;  // messages that the poll before has seen
    for (std::uint32_t spins = 0; !(spins % 16 == 15 && P::any(leaves())); ++spins) {
      before = before == 0 ? take_messages<1>() : before == 1 ? take_messages<2>() : take_messages<kMostMessages>();
      if (before) {
        P::converge();
        spins = suspending_ ? 14 : 0;  // messages may keep coming: look whether to leave after each
      } else {
        if (spins == kQuiet) release_entries();
        whole_ &= spins < kIdlePolls;
        P::pause(spins);
      }
    }
    release_entries();
    if (P::lane() == 0) handler_.close(next_);
  }

 private:
  static constexpr std::uint32_t kQuiet = 16;      // empty polls in a row until the host is told what was read
  static constexpr std::uint32_t kIdlePolls = 64;  // and until it no longer expects that messages carry anything
  static constexpr std::uint32_t kWordsEach = message_words_each<P>();
  static constexpr std::uint32_t kMostMessages = most_messages<P>();

  /// The leading lane's vote to return. Relaxed: `abort` pairs with report_wait() and the host; only its value counts.
  FLYWHEEL_TASK bool leaves() {
    return P::lane() == 0 && (handler_.may_leave() || P::device(dev_.control->broadcast.abort).load(Order::relaxed) != 0);
  }

  /// Takes the messages that have arrived: those at the front that each have an inline root, if there are several, together;
  /// else as many as the buffer holds, one after the other. Returns how many of the kCount next have arrived.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK std::uint32_t take_messages() {
    std::uint32_t mine[kCount][kWordsEach];
    const std::uint32_t arrived = inbox_.read(next_, mine, whole_);
    if (!arrived) return 0;
    const std::uint32_t alike = count_inline_roots(mine, arrived);
    if (alike > 1) {
      take_inline_roots(mine, alike);
      note_taken(alike);
    } else {
      take_in_turn(store_messages(mine, arrived));
    }
    return arrived;
  }

  /// How many messages at the front have an inline root, no predecessors and the priority of the first.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK static std::uint32_t count_inline_roots(const std::uint32_t (&mine)[kCount][kWordsEach],
                                                        std::uint32_t arrived) {
    std::uint32_t count = 0;
    if (kCount == 1) return count;
    const std::uint32_t priority = Inbox<P>::word(mine[0], offsetof(RunConstants, priority));
    for_constants<kCount>([&](auto e) {
      const std::uint32_t flags = Inbox<P>::word(mine[e], offsetof(RunConstants, flags));
      count += count == e && e < arrived && (flags & (kInlineRoot | kFollows)) == kInlineRoot &&
               Inbox<P>::word(mine[e], offsetof(RunConstants, priority)) == priority;
    });
    return count;
  }

  /// Lays messages out in the buffer. Returns how many of them.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK std::uint32_t store_messages(const std::uint32_t (&mine)[kCount][kWordsEach], std::uint32_t arrived) {
    constexpr std::uint32_t kMost = kCount < PollerBuffer::kMessages ? kCount : PollerBuffer::kMessages;
    for_constants<kMost>([&](auto e) {
      auto* words = reinterpret_cast<std::uint32_t*>(&buffer_.messages[e]);
      if (e < arrived)
        for (std::uint32_t i = P::lane(), k = 0; i < kMessageWords; i += P::lanes(), ++k) words[i] = mine[e][k];
    });
    P::converge();  // orders what each lane has acquired before what any lane does next
    return arrived < kMost ? arrived : kMost;
  }

  /// Takes the first `count` messages of the buffer.
  FLYWHEEL_TASK void take_in_turn(std::uint32_t count) {
    for (std::uint32_t e = 0; e < count; ++e) {
      take_message(buffer_.messages[e], e + 1 == count);
      P::converge();  // a message that is handled may be about the run whose slot the next one opens anew
    }
    note_taken(count);
  }

  FLYWHEEL_TASK void note_taken(std::uint32_t count) {
    next_ += count;
    if (next_ - released_ >= dev_.inbox_capacity / 4) release_entries();
  }

  /// Opens the line of a submitted run, stores the record that came with it, and handles the message. `last`: no other has come
  /// with it.
  FLYWHEEL_TASK void take_message(const Message& message, bool last) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(&message);
    const auto word = [&](std::uint32_t i, std::uint32_t) { return words[i]; };
    const std::uint32_t op = message.run.op, slot = message.run.slot, flags = message.run.flags;
    if (op == static_cast<std::uint32_t>(InboxOp::submit)) open_line<P>(dev_.runs[slot].line, word);
    suspending_ |= op == static_cast<std::uint32_t>(InboxOp::suspend);
    if (flags & kInlineRoot) store_record<P>(dev_.records[dev_.inline_base + slot], word);
    P::converge();  // the leading lane releases what all lanes wrote, see open_line()
    if (P::lane() == 0) handler_.handle(message, last);
  }

  /// Takes the first `count` messages, each of which carries the first root of its run: the roots are published together.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK void take_inline_roots(const std::uint32_t (&mine)[kCount][kWordsEach], std::uint32_t count) {
    const std::uint32_t priority = Inbox<P>::word(mine[0], offsetof(RunConstants, priority));
    P::converge();  // as in store_messages()
    for_constants<kCount>([&](auto e) {
      if (e >= count) return;
      const std::uint32_t slot = Inbox<P>::word(mine[e], offsetof(RunConstants, slot));
      const std::uint32_t sinks = Inbox<P>::word(mine[e], offsetof(RunConstants, sinks));
      const auto word = [&](std::uint32_t, std::uint32_t k) { return mine[e][k]; };
      open_line<P>(dev_.runs[slot].line, word);
      store_record<P>(dev_.records[dev_.inline_base + slot], word);
      if (P::lane() != 0) return;
      // Relaxed: as in MessageHandler::admit().
      P::device(dev_.runs[slot].outstanding).store(sinks, Order::relaxed);
      buffer_.roots[e] = Item{dev_.inline_base + slot, static_cast<std::uint16_t>(slot), false}.pack();
    });
    P::converge();  // the leading lane releases what all lanes wrote, see open_line()
    if (P::lane() == 0) handler_.admit_carried(count, priority, buffer_.roots);
  }

  /// Tells the host which entries it may overwrite. Not after each message: a store across PCIe would hold up the
  /// fences of the run that was just admitted.
  FLYWHEEL_TASK void release_entries() {
    if (released_ != next_ && P::lane() == 0) inbox_.release(next_);
    released_ = next_;
  }

  const DeviceState& dev_;
  Inbox<P> inbox_;
  PollerBuffer& buffer_;
  MessageHandler<typename P::Leader> handler_;
  std::uint64_t next_;
  std::uint64_t released_;
  bool suspending_ = false;  // in all lanes
  bool whole_ = false;       // likewise: polls read what messages carry, too
};

}  // namespace flywheel::detail
