// The inbox poller: takes messages from the inbox and has them handled (message_handler.hpp). One warp polls on the GPU
// (device/kernel.cuh), one thread on the CPU (cpu/entry.hpp).
#pragma once

#include "message_handler.hpp"

namespace flywheel::detail {

/// Writes the line of a submitted run: the message's first words become its constants, the rest is zeroed, but for the word of
/// its followers, which a worker that ended the slot's last run may still be about to change. All lanes call; word(i, k) is word
/// i of the message, the k-th of this lane. One coalesced store on the GPU. Relaxed: after P::converge() the leading lane
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
      take_in_turn(lay_out(mine, arrived));
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
  FLYWHEEL_TASK std::uint32_t lay_out(const std::uint32_t (&mine)[kCount][kWordsEach], std::uint32_t arrived) {
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
    P::converge();  // as in lay_out()
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
