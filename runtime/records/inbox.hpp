// The inbox: a ring of messages from the host to the resident kernel (submit, cancel, park, suspend).
//
// Its entries are in host memory, and the GPU reads them across PCIe. Any host thread writes (host/kernel/inbox.hpp), and there
// is one reader (the inbox poller). Each 8-byte word has a 32-bit tag beside its 32-bit payload, so one coalesced read shows
// both that the entry is complete and what it contains (README.md).
//
// A second trip across PCIe adds 1.4 us to a submission. So a message carries what the run needs at once: the record of a
// task that belongs to no loaded graph, or the run's parameters. And the fewer bytes a poll reads, the more messages it can
// take: a warp has about 1 KB under way at a time (tuning.md of runtime/dynamic). So an entry is packed: it holds the words of
// the message that are not as usual, behind two words with a bit for each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../base/bits.hpp"
#include "../base/constants.hpp"
#include "../base/platform.hpp"
#include "run.hpp"
#include "task.hpp"

namespace flywheel::detail {

/// `park`: the kernel ends once all admitted runs have ended. `suspend`: it ends as soon as the workers can leave; the runs
/// go on in the next launch, see runtime/dynamic/README.md.
enum class InboxOp : std::uint32_t { submit = 1, cancel = 2, park = 3, suspend = 4 };

/// The payload of an entry. `cancel` uses slot and generation of `run`, `park` its operation alone.
struct alignas(16) Message {
  RunConstants run;
  // With kInlineRoot a TaskRecord; else the run's parameters, if they have at most most_carried() bytes, and at the end
  // the FollowedRuns of a follower.
  alignas(16) unsigned char carried[kInlineBytes];
};

/// The runs that a follower waits for, and the values that it takes from them. They were in flight when the message was
/// written. Generation 0: none.
struct FollowedRuns {
  std::uint32_t generations[kMostPredecessors];
  std::uint16_t slots[kMostPredecessors];
  FollowedValue values[kMostValues];
};
inline constexpr std::uint32_t kFollowedWords = offsetof(FollowedRuns, values) / 4;
inline constexpr std::uint32_t kFollowedRunsAt = kInlineBytes - sizeof(FollowedRuns);  // in `carried`

/// Puts the predecessors of a follower, a run with kFollows, into its message. A record fills `carried`; then they lie in
/// fields that only runs of loaded graphs use, and there are no values, since there are no parameters.
inline void put_followed_runs(Message& message, const FollowedRuns& all) {
  RunConstants& run = message.run;
  if (!(run.flags & kInlineRoot)) {
    memcpy(message.carried + kFollowedRunsAt, &all, sizeof all);
    return;
  }
  std::uint32_t words[kFollowedWords];
  memcpy(words, &all, sizeof words);
  run.exec = words[0], run.serial = words[1], run.first_root = words[2], run.root_task = words[3];
  run.counters[0] = words[4], run.counters[1] = words[5];
}
/// Takes them out of it; the values only if there may be any. `all` is in memory that a thread may index at no cost.
FLYWHEEL_TASK inline void take_followed_runs(FollowedRuns& all, const Message& message) {
  const RunConstants& run = message.run;
  const std::uint32_t words[] = {run.exec, run.serial, run.first_root, run.root_task, run.counters[0], run.counters[1]};
  static_assert(sizeof words == 4 * kFollowedWords);
  if (run.flags & kInlineRoot) memcpy(&all, words, sizeof words);
  else memcpy(&all, message.carried + kFollowedRunsAt, sizeof all);
}

/// Bytes of parameters that travel in the message of a run with these flags; longer parameters are in DeviceState::params.
FLYWHEEL_TASK constexpr std::uint32_t most_carried(std::uint32_t flags) {
  return flags & kFollows ? kFollowedRunsAt : kInlineBytes;
}
inline constexpr std::uint32_t kMessageWords = sizeof(Message) / 4;

/// The predecessor of a run that has one, whose message carries all that there is to know. The lanes of a warp enlist several
/// of them at once.
struct SingleFollower {
  std::uint32_t before, generation;  // its slot and generation; generation 0: it is no such message

  FLYWHEEL_TASK static SingleFollower of(const Message& message) {
    const RunConstants& run = message.run;
    const bool is_submit = run.op == static_cast<std::uint32_t>(InboxOp::submit);
    const bool follows = (run.flags & (kFollows | kTakesValues)) == kFollows;
    if (!is_submit || !follows || run.param_bytes > most_carried(run.flags)) return {0, 0};
    // As put_followed_runs() has them.
    if (run.flags & kInlineRoot) return {run.counters[0] & 0xffff, run.serial ? 0 : run.exec};
    const auto& all = *reinterpret_cast<const FollowedRuns*>(message.carried + kFollowedRunsAt);
    return {all.slots[0], all.generations[1] ? 0 : all.generations[0]};
  }
};

/// Whether a message carries anything, so that its words behind the run's are written and read.
FLYWHEEL_TASK constexpr bool carries(const RunConstants& run) {
  const bool params = run.param_bytes && run.param_bytes <= most_carried(run.flags);
  return run.op == static_cast<std::uint32_t>(InboxOp::submit) && (params || (run.flags & (kInlineRoot | kFollows)));
}

/// Whether the message submits a run that one task begins, that waits for nothing and is not traced, and whose parameters, if
/// it has any, the message carries: the worker at the direct slot needs nothing else.
FLYWHEEL_TASK constexpr bool is_for_direct_slot(const RunConstants& run) {
  const bool has_one_root = (run.flags & kInlineRoot) || run.root_count == 1;
  return run.op == static_cast<std::uint32_t>(InboxOp::submit) && has_one_root &&
         !(run.flags & (kFollows | kAllWorkers | kTraced)) && run.param_bytes <= most_carried(run.flags);
}

/// Word i of a message of the most frequent kind, which submits a task that belongs to no loaded graph. Packed messages leave
/// out the words that are like these. It chooses and does not branch: on a GPU each lane asks for another word, and the lanes
/// would take branches one after the other (see tuning.md of runtime/dynamic).
FLYWHEEL_TASK constexpr std::uint32_t usual_word(std::uint32_t i) {
  constexpr std::uint32_t kFlags = kRootsUniform | kRootsDense | kInlineRoot | kCarries | kForDirectSlot;
  constexpr std::size_t kHeader = offsetof(Message, carried) + offsetof(TaskRecord, header);
  std::uint32_t word = 0;
  word = 4 * i == offsetof(RunConstants, op) ? static_cast<std::uint32_t>(InboxOp::submit) : word;
  word = 4 * i == offsetof(RunConstants, priority) ? static_cast<std::uint32_t>(Priority::normal) : word;
  word = 4 * i == offsetof(RunConstants, flags) ? kFlags : word;
  word = 4 * i == offsetof(RunConstants, repeat) ? 1 : word;
  word = 4 * i == offsetof(RunConstants, sinks) ? 1 : word;
  word = 4 * i == offsetof(RunConstants, root_count) ? 1 : word;
  return 4 * i == kHeader + offsetof(TaskHeader, result_offset) ? kResultInCompletion : word;
}

inline constexpr std::uint32_t kMaskWords =
    2;  // bit i of the two: word i of the message is not as usual and among those behind
inline constexpr std::uint32_t kMostPacked = kMaskWords + kMessageWords;
static_assert(kMessageWords <= 64);

/// How many words of a message each lane holds at most, and of the packed words after the first kFirstWords.
template <class P>
FLYWHEEL_TASK constexpr std::uint32_t message_words_each() {
  return (kMessageWords + P::lanes() - 1) / P::lanes();
}
inline constexpr std::uint32_t kFirstWords = 32;  // that one trip reads of a message
inline constexpr std::uint32_t kShortWords = 8;   // most packed words of a short message
inline constexpr std::uint32_t kMediumWords = 16;

/// One message.
struct alignas(128) InboxEntry {
  std::uint64_t words[64];  // {tag:32 | payload:32}; kMostPacked are in use
};

/// What the lanes have loaded of the first kWords packed words of an entry: word i is register i / lanes of lane i % lanes.
template <class P, std::uint32_t kWords>
struct Polled {
  static constexpr std::uint32_t kRegisters = (kWords + P::lanes() - 1) / P::lanes();
  std::uint64_t words[kRegisters] = {};
};

/// What a poll for several messages loads: the first words() packed words of each of `count` entries.
struct PollShape {
  std::uint32_t count, bits;
  FLYWHEEL_TASK constexpr std::uint32_t words() const { return 1u << bits; }
  FLYWHEEL_TASK constexpr std::uint32_t all() const { return count << bits; }
};
inline constexpr std::uint32_t kSeveralWords = 256;  // that such a poll loads at most

/// What the lanes have loaded in that shape: word i of entry e is at place e * words() + i, which is register place / lanes of
/// lane place % lanes.
template <class P>
struct PolledSeveral {
  static constexpr std::uint32_t kRegisters = kSeveralWords / P::lanes();
  static_assert(P::lanes() == 1 || P::lanes() % 8 == 0, "entries begin at a lane of their own");
  std::uint64_t words[kRegisters] = {};

  /// Calls f(r) for the registers that a poll of this shape fills. `r` is a constant, but for a lone thread.
  template <class F>
  FLYWHEEL_TASK static void for_registers(PollShape shape, F&& f) {
    if constexpr (P::lanes() == 1) {
      for (std::uint32_t r = 0; r < shape.all(); ++r) f(r);
    } else {
      for_constants<kRegisters>([&](auto r) {
        if (r * P::lanes() < shape.all()) f(r);
      });
    }
  }
  /// How many words of entry e, from its first on, the lanes have voted for; `votes` of each register.
  FLYWHEEL_TASK static std::uint32_t votes_in_front(const std::uint32_t (&votes)[kRegisters], PollShape shape,
                                                    std::uint32_t e) {
    const std::uint32_t lanes =
        shape.words() < P::lanes() ? shape.words() : P::lanes();  // that hold an entry's in one register
    const std::uint32_t first = (e << shape.bits) / P::lanes(), lane = (e << shape.bits) % P::lanes();
    std::uint32_t all = 0;
    for_registers(shape, [&](auto r) {
      const std::uint32_t bits = low_ones(votes[r] >> lane), here = bits < lanes ? bits : lanes;
      all += r >= first && r - first < shape.words() / lanes && all == (r - first) * lanes ? here : 0;
    });
    return all;
  }
};

/// The masks of a packed message: which of its words are as usual, and where the others are.
class MessageMasks {
 public:
  FLYWHEEL_TASK MessageMasks(std::uint32_t low, std::uint32_t high) : bits_(low | std::uint64_t{high} << 32) {}
  /// How many packed words the message has.
  FLYWHEEL_TASK std::uint32_t size() const { return kMaskWords + count_bits(bits_); }
  FLYWHEEL_TASK bool is_usual(std::uint32_t i) const { return i >= kMessageWords || !(bits_ >> i & 1); }
  FLYWHEEL_TASK bool has_usual(std::size_t offset) const { return is_usual(static_cast<std::uint32_t>(offset / 4)); }
  /// Where word i of the message is among the packed words, if it is; else 0.
  FLYWHEEL_TASK std::uint32_t place_of(std::uint32_t i) const { return is_usual(i) ? 0 : place_at(i); }
  /// The same; else any place up to size().
  FLYWHEEL_TASK std::uint32_t place_at(std::uint32_t i) const {
    return kMaskWords + count_bits(bits_ & ((std::uint64_t{1} << i) - 1));
  }

 private:
  std::uint64_t bits_;
};

/// A packed message that was laid out in memory, where each lane reads what it wants. Behind its words is one that may be read.
class PackedMessage {
 public:
  FLYWHEEL_TASK explicit PackedMessage(const std::uint32_t* packed) : packed_(packed), masks_(packed[0], packed[1]) {}
  FLYWHEEL_TASK const MessageMasks& masks() const { return masks_; }
  /// Word i of the message, below kMessageWords.
  FLYWHEEL_TASK std::uint32_t word(std::uint32_t i) const {
    const std::uint32_t value = packed_[masks_.place_at(i)];  // in any case: a load that no lane branches around
    return masks_.is_usual(i) ? usual_word(i) : value;
  }
  FLYWHEEL_TASK std::uint32_t word_at(std::size_t offset) const { return word(static_cast<std::uint32_t>(offset / 4)); }

  /// For one thread that takes all words in turn: words i and i + 1. `i`: a constant, two further each time.
  template <class I>
  FLYWHEEL_TASK std::uint64_t take_pair(I i) {
    const std::uint32_t low = take<i>();
    return low | std::uint64_t{take<i + 1>()} << 32;
  }

 private:
  template <std::uint32_t kWord>
  FLYWHEEL_TASK std::uint32_t take() {
    constexpr std::uint32_t kUsual = usual_word(kWord);
    const std::uint32_t value = packed_[at_];
    const bool is_usual = masks_.is_usual(kWord);
    at_ += is_usual ? 0 : 1;
    return is_usual ? kUsual : value;
  }

  const std::uint32_t* packed_;
  const MessageMasks masks_;
  std::uint32_t at_ = kMaskWords;  // of the next word that is not as usual
};

/// The entry of a poll for one: its packed words in registers of the lanes, who exchange them, and its masks, which all hold.
template <class P>
class PolledMessage {
  using One = Polled<P, kFirstWords>;

 public:
  FLYWHEEL_TASK explicit PolledMessage(const One& polled) : masks_(word_of(polled.words, 0), word_of(polled.words, 1)) {}
  FLYWHEEL_TASK const MessageMasks& masks() const { return masks_; }

  /// Unpacks it: lane l gets words l, l + lanes, ... of the message, but for those that lie behind kFirstWords.
  FLYWHEEL_TASK void unpack(const One& polled, std::uint32_t (&mine)[message_words_each<P>()]) const {
    for_constants<message_words_each<P>()>([&](auto k) {
      const std::uint32_t i = P::lane() + k * P::lanes();
      const std::uint32_t value = word_of(polled.words, masks_.place_of(i));  // in any case: no lane may turn off
      mine[k] = masks_.is_usual(i) ? usual_word(i) : value;
    });
  }
  /// Adds those. `rest`: the packed words behind kFirstWords.
  template <std::uint32_t kRest>
  FLYWHEEL_TASK void unpack_rest(const std::uint64_t (&rest)[kRest], std::uint32_t (&mine)[message_words_each<P>()]) const {
    for_constants<message_words_each<P>()>([&](auto k) {
      const std::uint32_t at = masks_.place_of(P::lane() + k * P::lanes());
      const std::uint32_t value = word_of(rest, at - kFirstWords);
      if (at >= kFirstWords) mine[k] = value;
    });
  }

 private:
  /// The payload at a place, which may differ from lane to lane. Any value for a place that is none.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK static std::uint32_t word_of(const std::uint64_t (&words)[kCount], std::uint32_t at) {
    if constexpr (P::lanes() == 1) {
      return static_cast<std::uint32_t>(words[at < kCount ? at : 0]);
    } else {
      std::uint32_t value = 0;
      for_constants<kCount>([&](auto r) {
        const auto payload = static_cast<std::uint32_t>(words[r]);
        const std::uint32_t there = P::word_of_lanes(&payload, at % P::lanes());
        if (at / P::lanes() == r) value = there;
      });
      return value;
    }
  }

  const MessageMasks masks_;
};

/// What has come at the front of a poll's entries.
struct Front {
  std::uint32_t complete;  // entries before the first that has not come, or has more words than were loaded
  std::uint32_t alike;     // of these, those before the first that is no task that waits for nothing and came with its message
  std::uint32_t words;     // 8, 16 or more: so many hold each of the complete ones
  std::uint32_t of_level[kPriorities];  // those alike of this priority, a bit for each entry

  FLYWHEEL_TASK std::uint32_t count_of(std::uint32_t level) const { return count_bits(of_level[level]); }
  /// The place of entry e among those alike, the more urgent first, else in order.
  FLYWHEEL_TASK std::uint32_t place_of(std::uint32_t e) const {
    std::uint32_t place = 0, before = 0;
    for_constants<kPriorities>([&](auto level) {
      if (of_level[level] >> e & 1) place = before + count_bits(of_level[level] & ((1u << e) - 1));
      before += count_of(level);
    });
    return place;
  }
};

/// Plain handle of the inbox for both ends.
template <class P>
struct Inbox {
  InboxEntry* entries;      // host memory
  std::uint32_t capacity;   // a power of two
  std::uint64_t* consumed;  // host memory: entries that the inbox poller has read and the host may overwrite

  /// The tag of entry `number`. Each use of an entry has another tag, so words need no reset.
  FLYWHEEL_TASK static constexpr std::uint32_t tag(std::uint64_t number) { return static_cast<std::uint32_t>(number + 1); }

  /// Host side: writes entry `number`, with kCarries and kForDirectSlot among the flags if they hold. The caller knows that the
  /// entry is free.
  FLYWHEEL_TASK void write(std::uint64_t number, const Message& message) const {
    constexpr std::uint32_t kFlagsWord = offsetof(RunConstants, flags) / 4;
    const bool all = carries(message.run);
    std::uint32_t words[kMessageWords], packed[kMostPacked];
    memcpy(words, &message, sizeof words);
    words[kFlagsWord] |= (all ? kCarries : 0u) | (is_for_direct_slot(message.run) ? kForDirectSlot : 0u);
    const std::uint32_t count = pack(words, all ? kMessageWords : kRunWords, packed);
    InboxEntry& entry = entries[number & (capacity - 1)];
    for (std::uint32_t i = count; i-- > 0;)
      // Release: pairs with the acquire loads in load(). It publishes the run's parameters and the loaded graph.
      P::system(entry.words[i]).store((std::uint64_t{tag(number)} << 32) | packed[i], Order::release);
  }

  /// Device side, called by all lanes: loads words `from` to `to` (below kBase + kWords) of an entry. No load waits for
  /// another, nor does this wait for them.
  template <std::uint32_t kBase = 0, std::uint32_t kWords>
  FLYWHEEL_TASK void load(std::uint64_t number, Polled<P, kWords>& polled, std::uint32_t from, std::uint32_t to) const {
    InboxEntry& entry = entries[number & (capacity - 1)];
    for_constants<Polled<P, kWords>::kRegisters>([&](auto r) {
      const std::uint32_t i = kBase + P::lane() + r * P::lanes();
      if (i < from || i >= to) return;
      // A lone thread reads on only where the first word is there.
      if (P::lanes() == 1 && i && !kBase && !has_tag(polled.words[0], number)) return;
      // Before an acquire: see take().
      polled.words[r] = P::system(entry.words[i]).load(P::kBeforeAcquire);
    });
  }
  /// The same of several entries from `number` on.
  FLYWHEEL_TASK void load_several(std::uint64_t number, PolledSeveral<P>& several, PollShape shape) const {
    PolledSeveral<P>::for_registers(shape, [&](auto r) {
      const std::uint32_t place = P::lane() + r * P::lanes(), e = place >> shape.bits, i = place & (shape.words() - 1);
      if (P::lanes() == 1 && i && !has_tag(several.words[e << shape.bits], number + e)) return;  // as in load()
      InboxEntry& entry = entries[(number + e) & (capacity - 1)];
      // Before an acquire: see look().
      several.words[r] = P::system(entry.words[i]).load(P::kBeforeAcquire);
    });
  }

  /// Loads the first `loaded` words of one entry, and if these are a line at most, lane 31 the first word of the entry behind.
  FLYWHEEL_TASK void load_first(std::uint64_t number, Polled<P, kFirstWords>& polled, std::uint32_t loaded) const {
    if constexpr (P::lanes() != kFirstWords) {
      load(number, polled, 0, loaded);
    } else {
      const bool is_behind = looks_behind(loaded) && P::lane() == P::lanes() - 1;
      InboxEntry& entry = entries[(number + is_behind) & (capacity - 1)];
      // Before an acquire: see take().
      if (P::lane() < loaded || is_behind)
        polled.words[0] = P::system(entry.words[is_behind ? 0 : P::lane()]).load(P::kBeforeAcquire);
    }
  }
  /// Whether the entry behind has come, too, as far as such a poll tells.
  FLYWHEEL_TASK bool has_more(std::uint64_t number, const Polled<P, kFirstWords>& polled, std::uint32_t loaded) const {
    return P::lanes() == kFirstWords && looks_behind(loaded) &&
           P::any(P::lane() == P::lanes() - 1 && has_tag(polled.words[0], number + 1));
  }

  /// Looks at a poll of several entries: all lanes call, and lay the payloads out, entry e's at packed[e * words()]. Then each
  /// lane looks at an entry of its own, and the votes of all say how far the front goes.
  FLYWHEEL_TASK Front look(std::uint64_t number, const PolledSeveral<P>& polled, PollShape shape, std::uint32_t* packed) const {
    using Several = PolledSeveral<P>;
    std::uint32_t tagged[Several::kRegisters];
    Several::for_registers(shape, [&](auto r) {
      const std::uint32_t place = P::lane() + r * P::lanes();
      packed[place] = static_cast<std::uint32_t>(polled.words[r]);
      tagged[r] = P::votes(has_tag(polled.words[r], number + (place >> shape.bits)));
    });
    P::converge();
    Front front{0, 0, kShortWords, {}};
    for (std::uint32_t first = 0; first < shape.count; first += P::lanes()) {
      const std::uint32_t e = first + P::lane() < shape.count ? first + P::lane() : shape.count - 1;
      const PackedMessage message(packed + (e << shape.bits));
      const MessageMasks& masks = message.masks();
      const bool complete = masks.size() <= Several::votes_in_front(tagged, shape, e);
      const bool alike =
          complete && masks.has_usual(offsetof(RunConstants, op)) && masks.has_usual(offsetof(RunConstants, flags));
      const std::uint32_t level = message.word_at(offsetof(RunConstants, priority));
      add_front(front.complete, first, shape.count, P::votes(complete));
      add_front(front.alike, first, shape.count, P::votes(alike));
      for_constants<kPriorities>([&](auto l) { front.of_level[l] |= P::votes(alike && level == l) << first; });
      const bool beyond_short = P::any(complete && masks.size() > kShortWords);
      const bool beyond_medium = P::any(complete && masks.size() > kMediumWords);
      const std::uint32_t words = beyond_medium ? kFirstWords : beyond_short ? kMediumWords : kShortWords;
      front.words = words > front.words ? words : front.words;
    }
    const std::uint32_t those = front.alike < 32 ? (1u << front.alike) - 1 : ~0u;
    for_constants<kPriorities>([&](auto l) { front.of_level[l] &= those; });
    // Acquire: with the loads in load_several() it pairs with the release stores in write(). The run's parameters and the
    // loaded graph come with the entry.
    if (front.complete) P::acquire_fence_of_system();
    P::converge();  // orders what each lane has acquired before what any lane does next
    return front;
  }

  /// Takes an entry of which a poll has loaded the first `loaded` words, if it has come: lane l then holds words l, l + lanes,
  /// ... of the message. Words that are missing take a second trip.
  FLYWHEEL_TASK bool take(std::uint64_t number, Polled<P, kFirstWords>& polled, std::uint32_t loaded,
                          std::uint32_t (&mine)[message_words_each<P>()], std::uint32_t& size) const {
    if (!has_all(number, polled, kMaskWords)) return false;
    const PolledMessage<P> message(polled);
    size = message.masks().size();
    if (size > loaded && loaded < kFirstWords) load(number, polled, loaded, kFirstWords);
    if (!has_all(number, polled, size)) return false;
    message.unpack(polled, mine);
    if (size > kFirstWords) {
      Polled<P, kRestWords> rest;
      load<kFirstWords>(number, rest, kFirstWords, kMostPacked);
      if (!has_all<kFirstWords>(number, rest, size)) return false;
      message.unpack_rest(rest.words, mine);
    }
    P::acquire_fence_of_system();  // acquire: as in look()
    return true;
  }

  /// Device side: lets the host overwrite the entries below `number`.
  FLYWHEEL_TASK void release(std::uint64_t number) const {
    // Release: pairs with the acquire load in InboxWriter::has_room(). The loads in load() come before the host's next stores.
    P::system(*consumed).store(number, Order::release);
  }

 private:
  FLYWHEEL_TASK static constexpr bool looks_behind(std::uint32_t loaded) { return loaded <= kFirstWords / 2; }
  static constexpr std::uint32_t kRestWords = (kMostPacked - kFirstWords + 31) / 32 * 32;

  /// `votes` of entries `first` and on: adds those before the first that lacks one, if the front goes as far as `first`.
  FLYWHEEL_TASK static void add_front(std::uint32_t& front, std::uint32_t first, std::uint32_t count, std::uint32_t votes) {
    const std::uint32_t lanes = P::lanes() < count ? P::lanes() : count, bits = low_ones(votes);
    if (front == first) front += bits < lanes ? bits : lanes;
  }
  FLYWHEEL_TASK static std::uint32_t pack(const std::uint32_t* words, std::uint32_t count, std::uint32_t* packed) {
    std::uint64_t masks = 0;
    std::uint32_t size = kMaskWords;
    for (std::uint32_t i = 0; i < count; ++i)
      if (words[i] != usual_word(i)) masks |= std::uint64_t{1} << i, packed[size++] = words[i];
    packed[0] = static_cast<std::uint32_t>(masks);
    packed[1] = static_cast<std::uint32_t>(masks >> 32);
    return size;
  }

  FLYWHEEL_TASK static bool has_tag(std::uint64_t word, std::uint64_t number) {
    return static_cast<std::uint32_t>(word >> 32) == tag(number);
  }
  /// True if words kBase to `size` of the entry, as far as the poll is about them, have its tag.
  template <std::uint32_t kBase = 0, std::uint32_t kWords>
  FLYWHEEL_TASK static bool has_all(std::uint64_t number, const Polled<P, kWords>& polled, std::uint32_t size) {
    bool there = true;
    for_constants<Polled<P, kWords>::kRegisters>([&](auto r) {
      if (kBase + P::lane() + r * P::lanes() < size) there &= has_tag(polled.words[r], number);
    });
    return !P::any(!there);
  }
};

}  // namespace flywheel::detail
