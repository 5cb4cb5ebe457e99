// One poll of the inbox: the lanes of a warp read the messages that have come, and lay them out, publish together what they
// carry, or deliver a single one over the direct slot. The inbox poller (inbox_poller.hpp) includes it.
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

/// Most messages that one poll takes: for a warp a single trip, for a thread so many loads more.
template <class P>
FLYWHEEL_TASK constexpr std::uint32_t most_messages() {
  return P::lanes() > 1 ? 16 : 2;
}

/// Where the lanes lay out what the leading lane handles, and what that lane keeps: shared memory on the GPU, of which task
/// bodies have the less.
struct PollerBuffer {
  static constexpr std::uint32_t kMessages = 8;  // that are handled one after the other
  Message messages[kMessages];
  std::uint64_t roots[16];
  AnnouncerState announcer;
};

/// What a poll has found. Either `published` messages are dealt with, but for the count of admitted runs, or `stored`
/// messages are in the buffer; if both are 0, so is `seen`.
struct Arrived {
  std::uint32_t seen, published, stored;
  bool directly;  // the one that was published went over the direct slot
  bool whole;     // see Inbox::read()
};

/// One poll of the inbox. All lanes call.
template <class P>
class InboxPoll {
 public:
  FLYWHEEL_TASK InboxPoll(const DeviceState& dev, DirectSlot& direct_slot, PollerBuffer& buffer)
      : dev_(dev),
        direct_slot_(direct_slot),
        buffer_(buffer) {}

  /// Reads the messages from `next` on that have arrived, at most kCount. A poll for one delivers it over the direct slot if
  /// that suits it. Else, if several at the front have an inline root each, publishes these together; else lays out as many as
  /// the buffer holds, to be handled one after the other.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK Arrived read(std::uint64_t next, bool whole) const {
    std::uint32_t mine[kCount][kWordsEach];
    const std::uint32_t seen = Views<P>{dev_}.inbox().read(next, mine, whole);
    if (!seen) return {0, 0, 0, false, whole};
    if (kCount == 1 && deliver(mine[0])) return {1, 1, 0, true, whole};
    const std::uint32_t alike = count_inline_roots(mine, seen);
    if (alike <= 1) return {seen, 0, store_messages(mine, seen), false, whole};
    publish_inline_roots(mine, alike);
    return {seen, alike, 0, false, whole};
  }

 private:
  static constexpr std::uint32_t kWordsEach = message_words_each<P>();

  /// Delivers the root of the message's run over the direct slot, if the worker waits there and needs no more than the
  /// message. The lanes write what each has read where the worker and others will look for it, so nothing is laid out and then
  /// copied by one lane. False: nothing was done.
  FLYWHEEL_TASK bool deliver(const std::uint32_t (&mine)[kWordsEach]) const {
    const std::uint32_t flags = Inbox<P>::word(mine, offsetof(RunConstants, flags));
    if (!(flags & kForDirectSlot)) return false;
    if (!P::any(P::lane() == 0 && claim_direct_slot<P>(direct_slot_))) return false;
    const std::uint32_t slot = Inbox<P>::word(mine, offsetof(RunConstants, slot));
    P::converge();  // orders the claim, and what each lane has acquired, before what any lane does next
    RunState& run = dev_.runs[slot];
    const auto word = [&](std::uint32_t, std::uint32_t k) { return mine[k]; };
    open_line<P>(run.line, word);
    if (flags & kInlineRoot) store_record<P>(dev_.records[dev_.inline_base + slot], word);
    // Plain, as in MessageHandler::copy_params(): the item releases all of it. Bytes behind the parameters are zero.
    auto* constants = reinterpret_cast<std::uint32_t*>(&direct_slot_.run);
    auto* carried = reinterpret_cast<std::uint32_t*>(flags & kInlineRoot ? static_cast<void*>(&direct_slot_.record)
                                                                         : static_cast<void*>(run.params));
    for (std::uint32_t i = P::lane(), k = 0; i < kMessageWords; i += P::lanes(), ++k) {
      if (i < kRunWords) constants[i] = mine[k];
      else if (flags & kCarries) carried[i - kRunWords] = mine[k];
    }
    P::converge();  // the leading lane releases what all lanes wrote, see open_line()
    if (P::lane() != 0) return true;
    const RunConstants all = direct_slot_.run;  // one copy: the loads of all words overlap
    // Relaxed: as in MessageHandler::admit().
    P::device(run.outstanding).store(all.sinks, Order::relaxed);
    deliver_directly<P>(direct_slot_, only_root(dev_, all));
    return true;
  }

  /// How many messages at the front have an inline root, no predecessors and the priority of the first.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK static std::uint32_t count_inline_roots(const std::uint32_t (&mine)[kCount][kWordsEach], std::uint32_t seen) {
    std::uint32_t count = 0;
    if (kCount == 1) return count;
    const std::uint32_t priority = Inbox<P>::word(mine[0], offsetof(RunConstants, priority));
    for_constants<kCount>([&](auto e) {
      const std::uint32_t flags = Inbox<P>::word(mine[e], offsetof(RunConstants, flags));
      count += count == e && e < seen && (flags & (kInlineRoot | kFollows)) == kInlineRoot &&
               Inbox<P>::word(mine[e], offsetof(RunConstants, priority)) == priority;
    });
    return count;
  }

  /// Lays messages out in the buffer. Returns how many of them.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK std::uint32_t store_messages(const std::uint32_t (&mine)[kCount][kWordsEach], std::uint32_t seen) const {
    constexpr std::uint32_t kMost = kCount < PollerBuffer::kMessages ? kCount : PollerBuffer::kMessages;
    for_constants<kMost>([&](auto e) {
      auto* words = reinterpret_cast<std::uint32_t*>(&buffer_.messages[e]);
      if (e < seen)
        for (std::uint32_t i = P::lane(), k = 0; i < kMessageWords; i += P::lanes(), ++k) words[i] = mine[e][k];
    });
    P::converge();  // orders what each lane has acquired before what any lane does next
    return seen < kMost ? seen : kMost;
  }

  /// Opens the lines of the first `count` messages' runs, and publishes the roots that they carry together.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK void publish_inline_roots(const std::uint32_t (&mine)[kCount][kWordsEach], std::uint32_t count) const {
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
    if (P::lane() == 0) publish_items<typename P::Leader>(dev_, dev_.workers, count, priority, buffer_.roots);
  }

  const DeviceState& dev_;
  DirectSlot& direct_slot_;
  PollerBuffer& buffer_;
};

}  // namespace flywheel::detail
