// A bounded multi-producer, multi-consumer ring of 48-bit items with atomic tickets.
//
// A producer takes tickets with one fetch_add for k items and publishes each with one release store. A consumer first
// takes a token from `count`, which exists only for items whose producer already holds a ticket; so a pop never
// blocks on an empty queue and a ticket, once taken, is always filled. (The token-then-ticket idea is that of the
// broker queue, Kerbl et al., ICS 2018.)
//
// Slots: {lap:16 | item:48}. Slot s is free for lap n, then full in lap n, then free for lap n+1: strict alternation,
// so the lap may wrap. A producer that laps a slow consumer waits for the slot; it never overwrites.
#pragma once

#include <cstdint>

#include "platform.hpp"
#include "wait.hpp"

namespace flywheel {

inline constexpr std::uint64_t kNoItem = (std::uint64_t{1} << 48) - 1;

/// One run with roots left, in the word that counts a ready queue's tokens: {runs:24 | tokens:40}. One look tells both, see
/// roots.hpp. Tokens may be below zero for a moment; either way they stay far below 2^39.
inline constexpr std::int64_t kRootedRun = std::int64_t{1} << 40;
FLYWHEEL_TASK constexpr std::int64_t tokens_of(std::int64_t count) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(count) << 24) >> 24;
}
FLYWHEEL_TASK constexpr std::int64_t rooted_runs_of(std::int64_t count) { return (count - tokens_of(count)) / kRootedRun; }

/// The words of one queue. Lies in memory all workers share; set up by `reset_queue` before first use.
struct QueueWords {
  Padded<std::uint64_t> head;  // next ticket to pop
  Padded<std::uint64_t> tail;  // next ticket to push
  Padded<std::uint32_t> peak;  // most tokens ever seen by a push: for the user's eyes only
};

/// Plain handle. Pass it by value; it owns nothing.
template <class P>
struct Queue {
  std::int64_t* count;  // tokens: published or about to be, minus taken; runs with roots left are counted above them
  QueueWords* words;
  std::uint64_t* slots;
  std::uint32_t capacity;  // a power of two

  FLYWHEEL_TASK static constexpr std::uint64_t free_slot(std::uint64_t lap) { return ((lap & 0xffff) << 48) | kNoItem; }
  FLYWHEEL_TASK static constexpr std::uint64_t full_slot(std::uint64_t lap, std::uint64_t item) {
    return ((lap & 0xffff) << 48) | item;
  }

  /// Tokens may be below zero for a moment, see take_tokens().
  FLYWHEEL_TASK static constexpr std::uint32_t as_size(std::int64_t count) {
    const std::int64_t tokens = tokens_of(count);
    return tokens > 0 ? static_cast<std::uint32_t>(tokens) : 0;
  }
  /// Rough number of items, for decisions that may be wrong: relaxed, never negative.
  FLYWHEEL_TASK std::uint32_t size_hint() const { return as_size(P::device(*count).load(Order::relaxed)); }

  /// `item_of(i)` gives item i of n. Waits only where a consumer that holds a ticket of the lap before has not read its
  /// slot yet. False if the wait was given up (abort).
  template <class ItemOf>
  FLYWHEEL_TASK bool push(std::uint32_t n, ItemOf&& item_of, const WaitContext& wait) const {
    const std::uint64_t first = P::device(words->tail.value).fetch_add(n, Order::relaxed);
    P::release_fence();  // one for all n items, see publish()
    bool published = true;
    for (std::uint32_t i = 0; i < n && published; ++i) published = publish(first + i, item_of(i), wait);
    add_tokens(n);
    return published;
  }

  /// Takes up to `want` items; returns how many are in `items`. To be called when size_hint() was not 0: a try at an
  /// empty queue costs two atomics.
  FLYWHEEL_TASK std::uint32_t pop(std::uint32_t want, std::uint64_t* items, const WaitContext& wait) const {
    const std::uint32_t taken = take_tokens(want);
    if (!taken) return 0;
    const std::uint64_t first = P::device(words->head.value).fetch_add(taken, Order::relaxed);
    for (std::uint32_t i = 0; i < taken; ++i)
      if (!consume(first + i, items[i], wait)) return 0;
    P::acquire_fence();  // one for all, see consume()
    return taken;
  }

 private:
  FLYWHEEL_TASK void add_tokens(std::uint32_t n) const {
    // Relaxed: a token promises a ticket, not its contents; the consumer acquires the slot itself.
    const std::uint32_t now = as_size(P::device(*count).fetch_add(n, Order::relaxed) + n);
    // Not exact when two push at once; only a push that leaves something behind is worth a look.
    if (now > n && now > P::device(words->peak.value).load(Order::relaxed))
      P::device(words->peak.value).store(now, Order::relaxed);
  }

  /// Tokens are anonymous, so a take that went below zero gives the surplus back: nothing is lost or doubled.
  FLYWHEEL_TASK std::uint32_t take_tokens(std::uint32_t want) const {
    const std::int64_t outcome = want;  // both relaxed: a token tells that there is an item, and its slot brings it
    const std::int64_t before = tokens_of(P::device(*count).fetch_add(-outcome, Order::relaxed));
    const std::int64_t got = before <= 0 ? 0 : (before < outcome ? before : outcome);
    if (got < outcome) P::device(*count).add(outcome - got, Order::relaxed);
    return static_cast<std::uint32_t>(got);
  }

  FLYWHEEL_TASK bool publish(std::uint64_t ticket, std::uint64_t item, const WaitContext& wait) const {
    std::uint64_t& slot = slots[ticket & (capacity - 1)];
    const std::uint64_t lap = ticket / capacity;
    // Relaxed: the slot guards no other data on its way back, coherence of the one word is enough.
    const bool free = spin_until<P>(wait, WaitReason::queue_slot_free, &slot, free_slot(lap), [&](std::uint64_t& saw) {
      saw = P::device(slot).load(Order::relaxed);
      return saw == free_slot(lap);
    });
    // Released by the fence in push(): pairs with the acquire in consume() and pop(); all that the producer knows of
    // the task goes with it.
    if (free) P::device(slot).store(full_slot(lap, item), P::kAfterRelease);
    return free;
  }

  FLYWHEEL_TASK bool consume(std::uint64_t ticket, std::uint64_t& item, const WaitContext& wait) const {
    std::uint64_t& slot = slots[ticket & (capacity - 1)];
    const std::uint64_t lap = ticket / capacity;
    // Acquired by the fence in pop(): pairs with publish(). The wait is short: the producer holds its ticket already.
    const bool full = spin_until<P>(wait, WaitReason::queue_slot_full, &slot, lap, [&](std::uint64_t& saw) {
      saw = item = P::device(slot).load(P::kBeforeAcquire);
      return (saw >> 48) == (lap & 0xffff) && (saw & kNoItem) != kNoItem;
    });
    item &= kNoItem;
    if (full) P::device(slot).store(free_slot(lap + 1), Order::relaxed);  // seen by publish() one lap later
    return full;
  }
};

/// Host-side initialisation before any worker runs; `filled` items i = 0..filled-1 start inside the queue.
inline void reset_queue(std::int64_t& count, QueueWords& words, std::uint64_t* slots, std::uint32_t capacity,
                        std::uint32_t filled = 0) {
  words = {};
  count = filled;
  words.tail.value = filled;
  for (std::uint32_t s = 0; s < capacity; ++s)
    slots[s] = s < filled ? Queue<CpuPlatform>::full_slot(0, s) : Queue<CpuPlatform>::free_slot(0);
}

}  // namespace flywheel
