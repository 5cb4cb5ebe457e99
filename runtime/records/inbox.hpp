// The inbox: a ring of messages from the host to the resident kernel (submit, cancel, park, suspend).
//
// Its 384-byte entries are in host memory, and the GPU reads them across PCIe. There is one writer (the host thread that holds
// the dispatcher's mutex, host/kernel/inbox.hpp) and one reader (the inbox poller). Each 8-byte word has a 32-bit tag beside
// its 32-bit payload, so one coalesced read shows both that the entry is complete and what it contains (README.md).
//
// A second trip across PCIe adds 1.4 us to a submission. So a message carries what the run needs at once: the record of a
// task that belongs to no loaded graph, or the run's parameters. But the fences of the SM wait for the polls under way, the
// longer the more lines they read: an idle poller reads the first line of an entry, and whole entries only while messages
// carry anything (tuning.md of runtime/dynamic).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../base/constants.hpp"
#include "../base/platform.hpp"
#include "run.hpp"

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
/// Takes them out of it.
FLYWHEEL_TASK inline FollowedRuns followed_runs_of(const Message& message) {
  const RunConstants& run = message.run;
  const std::uint32_t words[] = {run.exec, run.serial, run.first_root, run.root_task, run.counters[0], run.counters[1]};
  static_assert(sizeof words == 4 * kFollowedWords);
  FollowedRuns all{};
  if (run.flags & kInlineRoot) memcpy(&all, words, sizeof words);
  else memcpy(&all, message.carried + kFollowedRunsAt, sizeof all);
  return all;
}

/// Bytes of parameters that travel in the message of a run with these flags; longer ones lie in DeviceState::params.
FLYWHEEL_TASK constexpr std::uint32_t most_carried(std::uint32_t flags) {
  return flags & kFollows ? kFollowedRunsAt : kInlineBytes;
}
inline constexpr std::uint32_t kMessageWords = sizeof(Message) / 4;

/// Whether a message carries anything, so that its words behind the run's are written and read.
FLYWHEEL_TASK constexpr bool carries(const RunConstants& run) {
  const bool params = run.param_bytes && run.param_bytes <= most_carried(run.flags);
  return run.op == static_cast<std::uint32_t>(InboxOp::submit) && (params || (run.flags & (kInlineRoot | kFollows)));
}

/// Whether the message submits a run that one task begins, that waits for nothing, and whose parameters, if it has any, the
/// message carries: the worker at the direct slot needs nothing else.
FLYWHEEL_TASK constexpr bool is_for_direct_slot(const RunConstants& run) {
  const bool has_one_root = (run.flags & kInlineRoot) || run.root_count == 1;
  return run.op == static_cast<std::uint32_t>(InboxOp::submit) && has_one_root && !(run.flags & (kFollows | kAllWorkers)) &&
         run.param_bytes <= most_carried(run.flags);
}

/// How many words of a message each lane holds at most.
template <class P>
FLYWHEEL_TASK constexpr std::uint32_t message_words_each() {
  return (kMessageWords + P::lanes() - 1) / P::lanes();
}

/// One message.
struct alignas(128) InboxEntry {
  std::uint64_t words[kMessageWords];  // {tag:32 | payload:32}
};

/// Plain handle of the inbox for both ends.
template <class P>
struct Inbox {
  InboxEntry* entries;      // host memory
  std::uint32_t capacity;   // a power of two
  std::uint64_t* consumed;  // host memory: entries that the inbox poller has read and the host may overwrite

  /// The tag of entry `number`. Each use of an entry has another tag, so words need no reset.
  FLYWHEEL_TASK static constexpr std::uint32_t tag(std::uint64_t number) { return static_cast<std::uint32_t>(number + 1); }

  /// Host side: writes entry `number`, with kCarries and kForDirectSlot among the flags if they hold. The caller holds the
  /// dispatcher's mutex and knows that the entry is free.
  FLYWHEEL_TASK void write(std::uint64_t number, const Message& message) const {
    InboxEntry& entry = entries[number & (capacity - 1)];
    const auto* payload = reinterpret_cast<const std::uint32_t*>(&message);
    const bool all = carries(message.run);
    const std::uint32_t flags = (all ? kCarries : 0u) | (is_for_direct_slot(message.run) ? kForDirectSlot : 0u);
    // What is carried first: who sees the run's words finds it there.
    for (std::uint32_t i = all ? kMessageWords : kRunWords; i-- > 0;) {
      const std::uint32_t word = i == kFlagsWord ? payload[i] | flags : payload[i];
      // Release: pairs with the acquire loads in read(). It publishes the run's parameters and the loaded graph.
      P::system(entry.words[i]).store((std::uint64_t{tag(number)} << 32) | word, Order::release);
    }
  }

  /// Device side, called by all lanes: reads kCount entries from `number` on in one trip across PCIe: no load waits for
  /// another. Returns how many are complete, before the first that is not. Of entry number + e lane i then holds words i,
  /// i + lanes, ... in mine[e].
  /// The trip reads the words of the runs, a line for each entry, and with `whole` what is carried, too; without, a second trip
  /// does that if a message carries anything. Then `whole` is true from now on: more of the kind are likely.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK std::uint32_t read(std::uint64_t number, std::uint32_t (&mine)[kCount][message_words_each<P>()],
                                   bool& whole) const {
    std::uint64_t words[kCount][message_words_each<P>()] = {};
    for_constants<kCount>([&](auto e) { load(number + e, words[e], true); });
    if (whole) for_constants<kCount>([&](auto e) { load(number + e, words[e], false); });
    std::uint32_t count = complete(number, words, mine, kCount, true);
    bool more = false;
    for_constants<kCount>([&](auto e) { more |= e < count && carries_any(mine[e]); });
    if (more && !whole) for_constants<kCount>([&](auto e) { load(number + e, words[e], false); });
    if (more) count = complete(number, words, mine, count, false);
    whole |= more;
    // Acquire: with the loads in load() it pairs with the release stores in write(). The run's parameters and the loaded
    // graph come with the entry.
    if (count) P::acquire_fence_of_system();
    return count;
  }

  /// The word at `offset` of a message, for all lanes, from the lane that holds it.
  FLYWHEEL_TASK static std::uint32_t word(const std::uint32_t* mine, std::size_t offset) {
    return P::word_of_lanes(mine, static_cast<std::uint32_t>(offset / 4));
  }

  /// Device side: lets the host overwrite the entries below `number`.
  FLYWHEEL_TASK void release(std::uint64_t number) const {
    // Release: pairs with the acquire load in InboxWriter::has_room(). The loads in read() come before the host's next stores.
    P::system(*consumed).store(number, Order::release);
  }

 private:
  using Words = std::uint64_t[message_words_each<P>()];
  static constexpr std::uint32_t kFlagsWord = offsetof(RunConstants, flags) / 4;

  /// Whether word i is one of the run, which come first, or of what is carried.
  FLYWHEEL_TASK static constexpr bool is_of(std::uint32_t i, bool run) { return i < kMessageWords && (i < kRunWords) == run; }

  /// Loads this lane's words of an entry: those of the run, or those behind.
  FLYWHEEL_TASK void load(std::uint64_t number, Words& words, bool run) const {
    InboxEntry& entry = entries[number & (capacity - 1)];
    for_constants<message_words_each<P>()>([&](auto k) {
      const std::uint32_t i = P::lane() + k * P::lanes();
      // Before an acquire: see the fence in read().
      if (is_of(i, run)) words[k] = P::system(entry.words[i]).load(P::kBeforeAcquire);
    });
  }
  /// Whether the message whose words the lanes hold carries anything.
  FLYWHEEL_TASK static bool carries_any(const std::uint32_t (&mine)[message_words_each<P>()]) {
    return word(mine, offsetof(RunConstants, flags)) & kCarries;
  }
  /// How many of the first `most` entries have all of these words, before the first that has not. One that carries nothing has
  /// none behind the run's.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK static std::uint32_t complete(std::uint64_t number,
                                              const std::uint64_t (&words)[kCount][message_words_each<P>()],
                                              std::uint32_t (&mine)[kCount][message_words_each<P>()], std::uint32_t most,
                                              bool run) {
    bool all = true;
    std::uint32_t count = 0;
    for_constants<kCount>([&](auto e) {
      const bool there = unpack(number + e, words[e], mine[e], run);
      const bool needed = run || carries_any(mine[e]);
      all &= e < most && !P::any(needed && !there);
      count += all;
    });
    return count;
  }
  /// True if all of those words have the entry's tag.
  FLYWHEEL_TASK static bool unpack(std::uint64_t number, const Words& words, std::uint32_t (&mine)[message_words_each<P>()],
                                   bool run) {
    bool there = true;
    for_constants<message_words_each<P>()>([&](auto k) {
      const bool wanted = is_of(P::lane() + k * P::lanes(), run);
      there &= !wanted || static_cast<std::uint32_t>(words[k] >> 32) == tag(number);
      if (wanted || run) mine[k] = static_cast<std::uint32_t>(words[k]);
    });
    return there;
  }
};

}  // namespace flywheel::detail
