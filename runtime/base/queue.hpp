// A bounded multi-producer, multi-consumer ring of 48-bit items: the ready queues and the pool of spawn records.
//
// A producer takes k tickets with one fetch_add and publishes each item with one release store. A consumer takes tokens,
// then as many tickets, then reads the slots. Tokens exist only for items whose producer already holds a ticket, so a pop
// never blocks on an empty queue (the broker queue of Kerbl et al., ICS 2018). The states of a slot: README.md.
#pragma once

#include <cstdint>

#include "constants.hpp"
#include "platform.hpp"
#include "wait.hpp"

namespace flywheel::detail {

inline constexpr std::uint64_t kNoItem = (std::uint64_t{1} << 48) - 1;

/// The addend for one run with roots left in a ready queue's count: {runs:24 | tokens:40}. One load shows both numbers
/// (runtime/ready/roots.hpp). The number of tokens may be negative for a short time; its magnitude stays far below 2^39.
inline constexpr std::int64_t kRootedRun = std::int64_t{1} << 40;
FLYWHEEL_TASK constexpr std::int64_t tokens_of(std::int64_t count) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(count) << 24) >> 24;
}
FLYWHEEL_TASK constexpr std::int64_t rooted_runs_of(std::int64_t count) { return (count - tokens_of(count)) / kRootedRun; }

/// The tickets of one queue, in memory that all workers share. reset_queue() initializes them before first use.
struct QueueWords {
  Padded<std::uint64_t> head;  // next ticket to pop
  Padded<std::uint64_t> tail;  // next ticket to push
  Padded<std::uint32_t> peak;  // most tokens that a push has seen, for Stats::queue_peak
};

/// Plain handle of one queue. It owns nothing; pass it by value.
template <class P>
struct Queue {
  std::int64_t* count;  // tokens of pushed items minus those taken; runs with roots left in the upper bits, see kRootedRun
  QueueWords* words;
  std::uint64_t* slots;
  std::uint32_t capacity;  // a power of two

  // A slot is {lap:16 | item:48}: free for lap n, full in lap n, free for lap n + 1, and so on.
  FLYWHEEL_TASK static constexpr std::uint64_t free_slot(std::uint64_t lap) { return ((lap & 0xffff) << 48) | kNoItem; }
  FLYWHEEL_TASK static constexpr std::uint64_t full_slot(std::uint64_t lap, std::uint64_t item) {
    return ((lap & 0xffff) << 48) | item;
  }

  /// The number of tokens in a count, 0 if it is negative: take_tokens() may make it negative for a short time.
  FLYWHEEL_TASK static constexpr std::uint32_t as_size(std::int64_t count) {
    const std::int64_t tokens = tokens_of(count);
    return tokens > 0 ? static_cast<std::uint32_t>(tokens) : 0;
  }
  /// Approximate number of items, at least 0, for decisions that may be wrong. Relaxed: pairs with the updates in
  /// add_tokens() and take_tokens(). It only tells the caller that pop() is worth an attempt.
  FLYWHEEL_TASK std::uint32_t size_hint() const { return as_size(P::device(*count).load(Order::relaxed)); }

  /// Pushes n items; `item_of(i)` returns item i. Waits only if a consumer that holds a ticket of the previous lap has
  /// not read its slot yet. Returns false if the runtime was aborted or the wait's budget ended.
  template <class ItemOf>
  FLYWHEEL_TASK bool push(std::uint32_t n, ItemOf&& item_of, const WaitContext& wait) const {
    const std::uint64_t first = take_tickets(n);
    P::release_fence();  // one for the stores of all n items in publish_some(); pairs with the acquire in pop()
    bool published = true;
    for (std::uint32_t base = 0; base < n && published; base += kAtOnce) {
      const std::uint32_t rest = n - base < kAtOnce ? n - base : kAtOnce;
      published = publish_some(
          first + base, rest, [&](std::uint32_t i) { return item_of(base + i); }, wait);
    }
    add_tokens(n);
    return published;
  }

  // The parts of push(), for lanes that push together: each lane puts items, after a release fence, and add_tokens() follows.

  /// The first of n tickets in a row.
  FLYWHEEL_TASK std::uint64_t take_tickets(std::uint32_t n) const {
    // Relaxed: pairs with the other producers' fetch_add, which makes tickets unique; publish_some() and put() order the items.
    return P::device(words->tail.value).fetch_add(n, Order::relaxed);
  }
  /// Puts the item of one ticket. False as in push().
  FLYWHEEL_TASK bool put(std::uint64_t ticket, std::uint64_t item, const WaitContext& wait) const {
    if (look_at_free(ticket) != free_slot(ticket / capacity) && !wait_for_free(ticket, wait)) return false;
    // Release (by the caller's fence): as in publish_some().
    P::device(slot_of(ticket)).store(full_slot(ticket / capacity, item), P::kAfterRelease);
    return true;
  }
  FLYWHEEL_TASK void add_tokens(std::uint32_t n) const {
    // Relaxed load and store: pair with each other in other producers, and with the host's copy for Stats::queue_peak. The
    // maximum is approximate when two producers push at once. Its load is on its way together with the addition.
    const std::uint32_t peak = P::device(words->peak.value).load(Order::relaxed);
    // Relaxed: pairs with take_tokens(). A token only promises that an item exists; look_at_full() acquires its slot.
    const std::uint32_t now = as_size(P::device(*count).fetch_add(n, Order::relaxed) + n);
    if (now > n && now > peak) P::device(words->peak.value).store(now, Order::relaxed);
  }

  /// Pops up to `want` items into `items` and returns their number; 0 also if the wait for a slot ended early. Call it when
  /// size_hint() was not 0: an attempt at an empty queue costs two atomics.
  FLYWHEEL_TASK std::uint32_t pop(std::uint32_t want, std::uint64_t* items, const WaitContext& wait) const {
    std::uint64_t first = 0;
    const std::uint32_t taken = take(want, first);
    if (!taken) return 0;
    for (std::uint32_t base = 0; base < taken; base += kAtOnce)
      if (!consume_some(first + base, taken - base < kAtOnce ? taken - base : kAtOnce, items + base, wait)) return 0;
    P::acquire_fence();  // one for the loads of all items; pairs with the release in push() and publish_some()
    return taken;
  }

  // The parts of pop(), for threads that pop together: one takes tickets, each awaits the items of some, and frees their slots.

  /// Takes up to `want` items, those of as many tickets from `first` on. Returns their number.
  FLYWHEEL_TASK std::uint32_t take(std::uint32_t want, std::uint64_t& first) const {
    const std::uint32_t taken = take_tokens(want);
    // Relaxed: pairs with the other consumers' fetch_add, which makes tickets unique; look_at_full() orders the items.
    if (taken) first = P::device(words->head.value).fetch_add(taken, Order::relaxed);
    return taken;
  }
  /// The item of a ticket, to be acquired with an acquire fence. False if the wait for it was given up.
  FLYWHEEL_TASK bool await_item(std::uint64_t ticket, std::uint64_t& item, const WaitContext& wait) const {
    const std::uint64_t seen = look_at_full(ticket);
    item = seen & kNoItem;
    return is_full(seen, ticket) || wait_for_full(ticket, item, wait);
  }
  /// The item of a ticket that a thread has seen, before it frees the slot; the caller comes after that thread. Relaxed: only
  /// the number is needed, and the slot's next store comes after free_again().
  FLYWHEEL_TASK std::uint64_t item_of(std::uint64_t ticket) const {
    return P::device(slot_of(ticket)).load(Order::relaxed) & kNoItem;
  }
  /// Relaxed: pairs with look_at_free(), one lap later. The producer overwrites only this word, which was read before.
  FLYWHEEL_TASK void free_again(std::uint64_t ticket) const {
    P::device(slot_of(ticket)).store(free_slot(ticket / capacity + 1), Order::relaxed);
  }

 private:
  /// Takes up to `want` tokens and returns their number. Tokens are interchangeable, so a caller that makes the count
  /// negative adds the surplus back: no item is lost or taken twice.
  FLYWHEEL_TASK std::uint32_t take_tokens(std::uint32_t want) const {
    const std::int64_t wanted = want;
    // Relaxed, both updates: pair with add_tokens() for the same reason.
    const std::int64_t before = tokens_of(P::device(*count).fetch_add(-wanted, Order::relaxed));
    const std::int64_t got = before <= 0 ? 0 : (before < wanted ? before : wanted);
    if (got < wanted) P::device(*count).add(wanted - got, Order::relaxed);
    return static_cast<std::uint32_t>(got);
  }

  // Slots are looked at several at a time, because each look is a trip to L2. Mostly all of them are as wanted; if one is not,
  // they are waited for one by one.
  static constexpr std::uint32_t kAtOnce = 8;

  FLYWHEEL_TASK std::uint64_t& slot_of(std::uint64_t ticket) const { return slots[ticket & (capacity - 1)]; }

  /// Publishes n items, at most kAtOnce.
  template <class ItemOf>
  FLYWHEEL_TASK bool publish_some(std::uint64_t first, std::uint32_t n, ItemOf&& item_of, const WaitContext& wait) const {
    std::uint64_t seen[kAtOnce];
    for_constants<kAtOnce>([&](auto i) { seen[i] = i < n ? look_at_free(first + i) : 0; });
    bool free = true;
    for_constants<kAtOnce>([&](auto i) { free &= i >= n || seen[i] == free_slot((first + i) / capacity); });
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!free && !wait_for_free(first + i, wait)) return false;
      // Release (by the fence in push()): pairs with the acquire in look_at_full() and pop(). It publishes everything that the
      // producer has written or acquired for the task.
      P::device(slot_of(first + i)).store(full_slot((first + i) / capacity, item_of(i)), P::kAfterRelease);
    }
    return true;
  }
  /// Relaxed: pairs with the store in free_again(). A free slot publishes no other data, so the coherence of this
  /// one word is enough.
  FLYWHEEL_TASK std::uint64_t look_at_free(std::uint64_t ticket) const {
    return P::device(slot_of(ticket)).load(Order::relaxed);
  }
  /// Waits until the slot is free. False if the wait ended early.
  FLYWHEEL_TASK bool wait_for_free(std::uint64_t ticket, const WaitContext& wait) const {
    const std::uint64_t wanted = free_slot(ticket / capacity);
    return spin_until<P>(wait, WaitReason::queue_slot_free, &slot_of(ticket), wanted, [&](std::uint64_t& saw) {
      saw = look_at_free(ticket);
      return saw == wanted;
    });
  }

  /// Takes n items, at most kAtOnce, and frees their slots. False if the wait for one ended early. The wait is short: the
  /// producer already holds its ticket.
  FLYWHEEL_TASK bool consume_some(std::uint64_t first, std::uint32_t n, std::uint64_t* items, const WaitContext& wait) const {
    std::uint64_t seen[kAtOnce];
    for_constants<kAtOnce>([&](auto i) { seen[i] = i < n ? look_at_full(first + i) : 0; });
    bool full = true;
    for_constants<kAtOnce>([&](auto i) {
      full &= i >= n || is_full(seen[i], first + i);
      if (i < n) items[i] = seen[i] & kNoItem;
    });
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!full && !wait_for_full(first + i, items[i], wait)) return false;
      free_again(first + i);
    }
    return true;
  }
  FLYWHEEL_TASK bool is_full(std::uint64_t saw, std::uint64_t ticket) const {
    return (saw >> 48) == (ticket / capacity & 0xffff) && (saw & kNoItem) != kNoItem;
  }
  /// Acquire (by the fence in pop()): pairs with the release store in publish_some(). The task's inputs come with the item.
  FLYWHEEL_TASK std::uint64_t look_at_full(std::uint64_t ticket) const {
    return P::device(slot_of(ticket)).load(P::kBeforeAcquire);
  }
  /// Waits until the slot is full. False if the wait ended early.
  FLYWHEEL_TASK bool wait_for_full(std::uint64_t ticket, std::uint64_t& item, const WaitContext& wait) const {
    const auto look = [&](std::uint64_t& saw) {
      saw = look_at_full(ticket);
      item = saw & kNoItem;
      return is_full(saw, ticket);
    };
    return spin_until<P>(wait, WaitReason::queue_slot_full, &slot_of(ticket), ticket / capacity, look);
  }
};

/// Initializes a queue on the host before any worker runs. The queue then holds items 0, 1, ..., filled - 1. Plain
/// stores: the launch of the workers orders them.
inline void reset_queue(std::int64_t& count, QueueWords& words, std::uint64_t* slots, std::uint32_t capacity,
                        std::uint32_t filled = 0) {
  words = {};
  count = filled;
  words.tail.value = filled;
  for (std::uint32_t s = 0; s < capacity; ++s)
    slots[s] = s < filled ? Queue<CpuPlatform>::full_slot(0, s) : Queue<CpuPlatform>::free_slot(0);
}

}  // namespace flywheel::detail
