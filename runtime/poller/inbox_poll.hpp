// One poll of the inbox: the lanes of a warp read the messages that have come, and lay them out, publish together what they
// carry, or deliver a single one over the direct slot. The inbox poller (inbox_poller.hpp) includes it.
#pragma once

#include "announcer.hpp"

namespace flywheel::detail {

/// Words of a run's line that a submission writes.
inline constexpr std::uint32_t kLineWords = offsetof(RunLine, followers) / 4;

/// Writes the line of a submitted run: the message's first words become its constants, the rest is zeroed, but for the word of
/// its followers, which a worker that ended the slot's last run may still be about to change. All lanes call; word(i, k) is
/// word i of the message, the k-th of this lane. One coalesced store on the GPU. Relaxed: after P::converge() the leading lane
/// admits the run (see MessageHandler::admit()), which releases the line.
template <class P, class Word>
FLYWHEEL_TASK void open_line(RunLine& line, Word&& word) {
  auto* words = reinterpret_cast<std::uint32_t*>(&line);
  for (std::uint32_t i = P::lane(), k = 0; i < kLineWords; i += P::lanes(), ++k)
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

/// What a poll looks for. The more messages have come, the more are likely to come, and the longer those were, the longer.
enum class PollFor {
  one,          // the next message
  some,         // the next few
  many_short,   // tasks alone, of kShortWords at most
  many_medium,  // of kMediumWords
  many_long,    // of kFirstWords: all of them, with 96 bytes of arguments 30
};
/// Most messages that a poll for some takes, and one for many: a lane each. Each poll is a trip of a warp; a thread loads one
/// word after the other.
template <class P>
inline constexpr std::uint32_t kSomeMessages = P::lanes() > 1 ? 4 : 2;
inline constexpr std::uint32_t kManyMessages = 32;

/// A poll for many loads kSeveralWords; one for some half as many, which take less time.
template <class P>
FLYWHEEL_TASK constexpr PollShape shape_of(PollFor what) {
  static_assert(kSeveralWords == kManyMessages << 3 && kShortWords == 1 << 3 && kMediumWords == 1 << 4 &&
                kFirstWords == 1 << 5);
  if (what == PollFor::many_short) return {kManyMessages, 3};
  if (what == PollFor::many_medium) return {kManyMessages / 2, 4};
  return {what == PollFor::many_long ? kManyMessages / 4 : kSomeMessages<P>, 5};
}
/// The poll for many that suits what was at the front.
FLYWHEEL_TASK constexpr PollFor many_like(const Front& front) {
  return front.words <= kShortWords    ? PollFor::many_short
         : front.words <= kMediumWords ? PollFor::many_medium
                                       : PollFor::many_long;
}

/// The inbox poller's buffers: unpacked messages, and the leading lane's state. On a GPU they are in shared memory, and each
/// byte here is one less for task bodies.
struct PollerBuffer {
  static constexpr std::uint32_t kNoSpread = ~0u;
  static constexpr std::uint32_t kSpreadWakeUp = ~0u - 1;

  std::uint32_t packed[kSeveralWords + 1];  // of a poll for some or many, entry after entry, see PackedMessage
  Message message;                          // that is handled
  std::uint64_t roots[kManyMessages];
  std::uint64_t held;     // the item for the direct slot, which is claimed, behind what all lanes spread; or kEmptyMailbox
  FollowedRuns followed;  // by the run whose message is handled
  SingleFollower followers[4];  // of the messages of a poll for some
  std::uint32_t spread_from;    // of the run of `message`: its first root that all lanes spread, or one of the above
  AnnouncerState announcer;
};

/// What a poll has found. Either `published` messages are dealt with, but for the count of admitted runs, or `stored`
/// messages are in the buffer, one as it is handled, several packed; both are 0 if none has come that the poll can take.
struct Arrived {
  std::uint32_t published, stored;
  PollFor next;   // what the next poll is to look for
  bool directly;  // the one that was published went over the direct slot
};

/// Where the message of a run that is delivered over the direct slot goes, and what the poller does beside: here nothing, the
/// worker does all. DirectStarter (device/direct_starter.cuh) is the other one.
class DirectDelivery {
 public:
  static constexpr bool kStarts = false;
  FLYWHEEL_TASK explicit DirectDelivery(DirectSlot& direct_slot) : direct_slot_(direct_slot) {}
  FLYWHEEL_TASK RunConstants& constants() const { return direct_slot_.run; }
  FLYWHEEL_TASK TaskRecord& record() const { return direct_slot_.record; }
  FLYWHEEL_TASK void fetch(const DeviceState&, std::uint32_t, std::uint32_t) const {}
  FLYWHEEL_TASK void start(RunState&, Item, bool) const {}

 private:
  DirectSlot& direct_slot_;
};

/// One poll of the inbox. All lanes call.
template <class P, class Starter = DirectDelivery>
class InboxPoll {
 public:
  FLYWHEEL_TASK InboxPoll(const DeviceState& dev, DirectSlot& direct_slot, PollerBuffer& buffer)
      : dev_(dev),
        direct_slot_(direct_slot),
        buffer_(buffer) {}

  /// A poll for one message loads the first line of its entry, or all that most messages have; `loaded`: words.
  using One = Polled<P, kFirstWords>;
  FLYWHEEL_TASK void load_one(std::uint64_t next, One& polled, std::uint32_t loaded) const {
    inbox().load_first(next, polled, loaded);
  }
  /// Takes the message if it has come: delivers it over the direct slot if that suits it, else lays it out. `loaded` becomes
  /// the number of words that the next polls load: more of the kind are likely.
  FLYWHEEL_TASK Arrived take_one(std::uint64_t next, One& polled, std::uint32_t& loaded) const {
    std::uint32_t mine[kWordsEach], size = 0;
    const bool more = inbox().has_more(next, polled, loaded);
    if (!inbox().take(next, polled, loaded, mine, size)) return {0, 0, PollFor::one, false};
    if (size > loaded) loaded = kFirstWords;
    const PollFor after = more ? PollFor::some : PollFor::one;
    if (deliver(mine)) return {1, 0, after, true};  // one for the direct slot is likely to stay alone
    store_message([&](std::uint32_t, std::uint32_t k) { return mine[k]; });
    P::converge();  // orders what each lane has acquired before what any lane does next
    return {0, 1, PollFor::some, false};
  }

  /// Takes those of the next kSomeMessages messages that have come: publishes together what they carry if several at the front
  /// are alike, else lays them out.
  FLYWHEEL_TASK Arrived take_some(std::uint64_t next) const {
    static_assert(kSomeMessages<P> <= sizeof(PollerBuffer::followers) / sizeof(SingleFollower));
    constexpr PollShape kShape = shape_of<P>(PollFor::some);
    PolledSeveral<P> polled;
    inbox().load_several(next, polled, kShape);
    const Front front = inbox().look(next, polled, kShape, buffer_.packed);
    if (!front.complete) return {0, 0, PollFor::one, false};
    if (front.alike <= 1) return {0, front.complete, PollFor::some, false};
    publish(front, kShape, [] {});
    const bool many = P::lanes() > 1 && front.alike == kSomeMessages<P>;
    return {front.alike, 0, many ? many_like(front) : PollFor::some, false};
  }
  /// Unpacks message e of those that take_some() has stored, to be handled.
  FLYWHEEL_TASK void unpack(std::uint32_t e) const {
    const PackedMessage message = stored(e);
    store_message([&](std::uint32_t i, std::uint32_t) { return message.word(i); });
    P::converge();
  }

  /// Of the `count` messages that take_some() has stored: how many at the front each submit a follower of one run. Opens these
  /// runs, and enlists them, a lane each: their trips to L2 are one. waits() says afterwards which of them wait. The others
  /// have no predecessor that has not ended, and are to be unpacked and begun.
  FLYWHEEL_TASK std::uint32_t enlist_followers(std::uint32_t count) const {
    std::uint32_t front = 0;
    for (; front < count; ++front) {
      unpack(front);
      const SingleFollower follower = SingleFollower::of(buffer_.message);
      if (!follower.generation) break;
      if (P::lane() == front % P::lanes()) {  // the lane that enlists it
        buffer_.followers[front] = follower;
        buffer_.roots[front] = buffer_.message.run.slot;
      }
      open_follower(buffer_.message);
    }
    for (std::uint32_t e = P::lane(); e < front; e += P::lanes()) {
      Enlistment<typename P::Leader> enlistment(dev_, static_cast<std::uint32_t>(buffer_.roots[e]));
      buffer_.roots[e] = enlistment.follow_only(buffer_.followers[e].before, buffer_.followers[e].generation);
    }
    P::converge();
    return front;
  }
  FLYWHEEL_TASK bool waits(std::uint32_t e) const { return buffer_.roots[e]; }

  /// A poll for many: takes those of the next messages that have come, as far as they are alike and no longer than it expects.
  /// While all of them are, it goes on with the next ones, kMostOnRun times at most, and loads them while it publishes those
  /// before.
  FLYWHEEL_TASK Arrived take_many(std::uint64_t next, PollFor what) const {
    constexpr std::uint32_t kMostOnRun = 4;
    const PollShape shape = shape_of<P>(what);
    PolledSeveral<P> polled;
    inbox().load_several(next, polled, shape);
    std::uint32_t taken = 0, alike = shape.count;
    PollFor like = what;
    for (std::uint32_t run = 0; run < kMostOnRun && alike == shape.count; ++run) {
      const Front front = inbox().look(next + taken, polled, shape, buffer_.packed);
      alike = front.alike;
      taken += alike;
      if (alike == shape.count) like = many_like(front);
      const auto load_next = [&] {
        if (alike == shape.count && run + 1 < kMostOnRun) inbox().load_several(next + taken, polled, shape);
      };
      if (alike) publish(front, shape, load_next);
    }
    return {taken, 0, taken > kSomeMessages<P> ? like : PollFor::some, false};
  }

 private:
  static constexpr std::uint32_t kWordsEach = message_words_each<P>();

  FLYWHEEL_TASK Inbox<P> inbox() const { return Views<P>{dev_}.inbox(); }

  /// Delivers the root of the message's run over the direct slot, if the worker waits there and needs no more than the
  /// message. The lanes write what each has read where the worker and others will look for it, so nothing is laid out and then
  /// copied by one lane. False: nothing was done.
  FLYWHEEL_TASK bool deliver(const std::uint32_t (&mine)[kWordsEach]) const {
    const std::uint32_t flags = word_of(mine, offsetof(RunConstants, flags));
    if (!(flags & kForDirectSlot)) return false;
    if (!P::any(P::lane() == 0 && claim_direct_slot<P>(direct_slot_))) return false;
    const std::uint32_t slot = word_of(mine, offsetof(RunConstants, slot));
    const std::uint32_t sinks = word_of(mine, offsetof(RunConstants, sinks));
    const std::uint32_t serial = word_of(mine, offsetof(RunConstants, serial));
    const std::uint32_t of_graph =
        word_of(mine, offsetof(RunConstants, first_record)) + word_of(mine, offsetof(RunConstants, root_task));
    const bool carried = flags & kInlineRoot;
    const std::uint32_t record = carried ? dev_.inline_base + slot : of_graph;  // as only_root() has it
    P::converge();  // orders the claim, and what each lane has acquired, before what any lane does next
    RunState& run = dev_.runs[slot];
    const Starter starter(direct_slot_);
    const auto word = [&](std::uint32_t, std::uint32_t k) { return mine[k]; };
    open_line<P>(run.line, word);
    if (carried) store_record<P>(dev_.records[record], word);
    else starter.fetch(dev_, record, serial);
    // Plain, as in MessageHandler::copy_params(): the start or the item releases all of it. Bytes behind the parameters are
    // zero.
    auto* constants = reinterpret_cast<std::uint32_t*>(&starter.constants());
    auto* to =
        reinterpret_cast<std::uint32_t*>(carried ? static_cast<void*>(&starter.record()) : static_cast<void*>(run.params));
    for (std::uint32_t i = P::lane(), k = 0; i < kMessageWords; i += P::lanes(), ++k) {
      if (i < kRunWords) constants[i] = mine[k];
      else if (flags & kCarries) to[i - kRunWords] = mine[k];
    }
    // Relaxed: as in MessageHandler::admit().
    if (P::lane() == 0) P::device(run.outstanding).store(sinks, Order::relaxed);
    P::converge();  // the leading lane releases what all lanes wrote, see open_line()
    if (P::lane() != 0) return true;
    const Item root{record, static_cast<std::uint16_t>(slot), false};
    starter.start(run, root, carried);
    deliver_directly<P>(direct_slot_, root.pack(), Starter::kStarts);
    return true;
  }

  FLYWHEEL_TASK PackedMessage stored(std::uint32_t e) const { return PackedMessage(buffer_.packed + e * kFirstWords); }
  /// All lanes: opens the run of a message as MessageHandler::admit() does, with the same orders.
  FLYWHEEL_TASK void open_follower(const Message& message) const {
    const std::uint32_t slot = message.run.slot;
    RunState& run = dev_.runs[slot];
    const auto* words = reinterpret_cast<const std::uint32_t*>(&message);
    const auto word = [&](std::uint32_t i, std::uint32_t) { return words[i]; };
    open_line<P>(run.line, word);
    // Relaxed, here and below: pair with arrive_sink() and with the bodies; the lane that enlists the run releases them.
    if (P::lane() == 0) P::device(run.outstanding).store(message.run.sinks, Order::relaxed);
    if (message.run.flags & kInlineRoot) {
      store_record<P>(dev_.records[dev_.inline_base + slot], word);
    } else {
      auto* params = reinterpret_cast<std::uint32_t*>(run.params);
      for (std::uint32_t i = P::lane(); i < (message.run.param_bytes + 3) / 4; i += P::lanes())
        P::device(params[i]).store(words[kRunWords + i], Order::relaxed);  // relaxed: as above
    }
    P::converge();  // a lane releases what all of them wrote: a follower may be the predecessor of the next
  }

  /// The word at `offset` of a message, for all lanes, from the lane that holds it.
  FLYWHEEL_TASK static std::uint32_t word_of(const std::uint32_t* mine, std::size_t offset) {
    return P::word_of_lanes(mine, static_cast<std::uint32_t>(offset / 4));
  }

  /// Lays a message out in the buffer. word(i, k) is word i of the message, the k-th of this lane.
  template <class Word>
  FLYWHEEL_TASK void store_message(Word&& word) const {
    auto* words = reinterpret_cast<std::uint32_t*>(&buffer_.message);
    for (std::uint32_t i = P::lane(), k = 0; i < kMessageWords; i += P::lanes(), ++k) words[i] = word(i, k);
  }

  /// Opens the runs of those messages that are alike, a lane each, and publishes the roots that they carry together. Each trip
  /// to L2 goes on while the lanes do what does not need it, and so does across PCIe what load_next() begins.
  template <class LoadNext>
  FLYWHEEL_TASK void publish(const Front& front, PollShape shape, LoadNext&& load_next) const {
    LaneDelivery<P> delivery(dev_);
    for (std::uint32_t e = P::lane(); e < front.alike; e += P::lanes())
      buffer_.roots[front.place_of(e)] = open_run(PackedMessage(buffer_.packed + (e << shape.bits))).pack();
    delivery.claim(front.alike);
    load_next();
    P::converge();  // the lanes release what all of them wrote, see open_line()
    delivery.publish([&](std::uint32_t level) { return front.count_of(level); }, buffer_.roots);
    P::converge();  // the next messages are laid out where these were
  }
  /// One lane: writes the line of a run with one task, and the record, which the message carries, as open_line() and
  /// store_record() do; returns the task. Two words at a time, in the order in which they are packed, which takes some 330
  /// instructions for all messages together. A message after the other with a word for each lane: 740, see tuning.md.
  FLYWHEEL_TASK Item open_run(PackedMessage message) const {
    constexpr std::uint32_t kPairs = kRunWords / 2, kRecordPairs = sizeof(TaskRecord) / 8;
    static_assert(offsetof(Message, carried) == kRunWords * 4);
    std::uint64_t pair[kPairs];
    for_constants<kPairs>([&](auto i) { pair[i] = message.take_pair(std::integral_constant<std::uint32_t, 2 * i>{}); });
    const auto word_at = [&](std::size_t offset) { return static_cast<std::uint32_t>(pair[offset / 8] >> offset % 8 * 8); };
    const std::uint32_t slot = word_at(offsetof(RunConstants, slot)), record = dev_.inline_base + slot;
    RunState& run = dev_.runs[slot];
    auto* line = reinterpret_cast<std::uint64_t*>(&run.line);
    auto* words = reinterpret_cast<std::uint64_t*>(&dev_.records[record]);
    // All relaxed: as in open_line() and MessageHandler::admit().
    for_constants<kLineWords / 2>(
        [&](auto i) { P::device(line[i]).store(i < kPairs ? pair[i < kPairs ? i : 0] : 0, Order::relaxed); });
    P::device(run.outstanding).store(word_at(offsetof(RunConstants, sinks)), Order::relaxed);
    for_constants<kRecordPairs>([&](auto i) {
      const std::uint64_t next = message.take_pair(std::integral_constant<std::uint32_t, kRunWords + 2 * i>{});
      P::device(words[i]).store(next, Order::relaxed);
    });
    return {record, static_cast<std::uint16_t>(slot), false};
  }

  const DeviceState& dev_;
  DirectSlot& direct_slot_;
  PollerBuffer& buffer_;
};

}  // namespace flywheel::detail
