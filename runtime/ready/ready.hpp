// Publishing ready tasks: from the thread that makes a task ready to the worker that runs it. The finisher, spawning
// and the inbox poller use it.
//
// An idle worker gets the task in its mailbox. If no worker is idle, the task goes to the queue of its priority. Terms:
//
//   ClaimedWorker  an idle worker that is claimed in advance, so that the next ready task goes to it          (idle.hpp)
//   IdleSlot       where an idle worker waits: its bit and its mailbox, or the direct slot                    (idle.hpp)
//   DirectSlot     the idle slot of the worker in the inbox poller's block, in shared memory                  (idle.hpp)
//   LocalWork      what a worker keeps between tasks: a popped batch, its share of a run's roots      (device_state.hpp)
#pragma once

#include <cstdint>
#include <cstring>

#include "../base/constants.hpp"
#include "../records/device_state.hpp"

namespace flywheel::detail {

/// At most so many tasks are pushed on one batch of queue tickets.
inline constexpr std::uint32_t kPublishBatch = 1024;

/// The queue that a task goes to: that of its own priority, or of its run's if it inherits.
FLYWHEEL_TASK constexpr std::uint32_t level_of(std::uint32_t own, std::uint32_t of_run) {
  return own == static_cast<std::uint32_t>(Priority::inherit) ? of_run : own;
}

/// The most urgent level with queued work; else the lowest.
template <class P>
FLYWHEEL_TASK std::uint32_t most_urgent_queued(const DeviceState& dev) {
  // Relaxed: hints, as in read_broadcast(). Both loads are issued before the first result is used.
  static_assert(kPriorities == 3);
  const std::int64_t high = P::device(dev.control->broadcast.queued[0]).load(Order::relaxed);
  const std::int64_t normal = P::device(dev.control->broadcast.queued[1]).load(Order::relaxed);
  return high > 0 ? 0 : normal > 0 ? 1 : kPriorities - 1;
}

/// Publishes ready tasks for one worker, or for the inbox poller (its `worker` is DeviceState::workers).
template <class P>
class Ready {
 public:
  FLYWHEEL_TASK Ready(const DeviceState& dev, std::uint32_t worker) : views_{dev}, id_(worker) {}

  /// Publishes n tasks of one priority, item_of(i) packed: first to idle workers, the rest to the queue. False if a
  /// wait in Queue::push() was given up.
  template <class ItemOf>
  FLYWHEEL_TASK bool publish(std::uint32_t n, std::uint32_t priority, ItemOf&& item_of) const {
    std::uint32_t sent = deliver_to_idle(n, item_of);
    bool ok = true;
    while (ok && sent < n) {
      const std::uint32_t batch = n - sent < kPublishBatch ? n - sent : kPublishBatch;
      const auto rest = [&](std::uint32_t i) { return item_of(sent + i); };
      ok = views_.ready(priority).push(batch, rest, views_.wait(id_));
      sent += batch;
    }
    return ok;
  }

  /// Picks an idle worker to claim in advance, if there is one. For claim_planned(), then deliver_to_claimed() or
  /// release_claimed().
  FLYWHEEL_TASK ClaimedWorker plan_claim() const {
    const std::uint32_t word = first_word(views_.idle());
    return IdleSet<P>::plan(word, views_.idle().seen(word), id_);
  }
  /// The same after `claim` was delivered to, among the idle workers that the claim saw: no new read.
  FLYWHEEL_TASK ClaimedWorker plan_claim_after(const ClaimedWorker& claim) const {
    return IdleSet<P>::plan(claim.worker / 64, claim.before & ~claim.wanted, id_);
  }
  /// Claims the planned worker if it is still idle: see IdleSet::take(). The fence in deliver_to_claimed() acquires the
  /// claim.
  FLYWHEEL_TASK ClaimedWorker claim_planned(const ClaimedWorker& planned) const { return views_.idle().take(planned); }
  /// Delivers `item` to the claimed worker.
  FLYWHEEL_TASK void deliver_to_claimed(const ClaimedWorker& claim, std::uint64_t item) const {
    // Acquires the claim: pairs with the release in IdleSet::enroll(). Releases the task's inputs for the store in
    // IdleSet::deliver(): pairs with the acquire in IdleSlot::peek().
    P::fence();
    views_.idle().deliver(claim.worker, item);
  }
  /// Gives the claim up: the worker is enrolled as idle again. Release: see IdleSet::enroll().
  FLYWHEEL_TASK void release_claimed(const ClaimedWorker& claim) const { views_.idle().enroll(claim.worker); }

  /// Delivers items 0, 1, ... of n to idle workers; returns how many it delivered.
  template <class ItemOf>
  FLYWHEEL_TASK std::uint32_t deliver_to_idle(std::uint32_t n, ItemOf&& item_of) const {
    // The words are looked at several at a time, because each look is a trip to L2, and mostly no worker is idle.
    constexpr std::uint32_t kAtOnce = 4;
    const IdleSet<P> idle = views_.idle();
    const std::uint32_t words = idle.words(), start = first_word(idle);
    std::uint32_t sent = 0;
    for (std::uint32_t w = 0; w < words && sent < n; w += kAtOnce) {
      std::uint64_t seen[kAtOnce];
      const auto word_of = [&](std::uint32_t i) { return start + w + i < words ? start + w + i : start + w + i - words; };
      for_constants<kAtOnce>([&](auto i) { seen[i] = w + i < words ? idle.seen(word_of(i)) : 0; });
      for_constants<kAtOnce>([&](auto i) {
        if (!seen[i] || sent == n) return;
        const std::uint64_t claimed = idle.claim(word_of(i), seen[i], n - sent, id_).bits();
        if (!claimed) return;
        P::fence();  // as in deliver_to_claimed()
        const std::uint32_t first = word_of(i) * 64;
        for (auto bits = static_cast<std::uint32_t>(claimed); bits; bits &= bits - 1, ++sent)
          idle.deliver(first + lowest_of_32(bits), item_of(sent));
        for (auto bits = static_cast<std::uint32_t>(claimed >> 32); bits; bits &= bits - 1, ++sent)
          idle.deliver(first + 32 + lowest_of_32(bits), item_of(sent));
      });
    }
    return sent;
  }

 private:
  /// Callers start with the word of their own bit, so that they do not all claim the same workers.
  FLYWHEEL_TASK std::uint32_t first_word(const IdleSet<P>& idle) const { return id_ / 64 < idle.words() ? id_ / 64 : 0; }

  Views<P> views_;
  std::uint32_t id_;
};

/// Publishes n packed items of one priority. Out of line, since it is called in several places.
template <class P>
FLYWHEEL_COLD bool publish_items(const DeviceState& dev, std::uint32_t worker, std::uint32_t n, std::uint32_t priority,
                                 const std::uint64_t* items) {
  return Ready<P>(dev, worker).publish(n, priority, [&](std::uint32_t i) { return items[i]; });
}

/// Delivers packed items to idle workers, each lane of P one at most, in three steps between which the lanes do other things:
/// a look at the idle set, claims, deliveries. All lanes call each. Lane l claims workers whose bit is at l in lanes() bits of
/// the set, so it finds its worker, and the rank of its item, with one vote.
template <class P>
class LaneDelivery {
 public:
  FLYWHEEL_TASK explicit LaneDelivery(const DeviceState& dev) : dev_(dev), idle_(Views<P>{dev}.idle()) {
    for_constants<kWords>([&](auto w) { seen_[w] = w < idle_.words() ? idle_.seen(w) : 0; });
  }

  /// Claims up to n idle workers.
  FLYWHEEL_TASK void claim(std::uint32_t n) {
    if (P::lanes() == 1) return;  // a lone thread claims several in publish_items()
    std::uint32_t idle = 0;
    for_constants<kWords>([&](auto w) { idle += count_bits(seen_[w]); });
    constexpr std::uint32_t kPieces = 64 / P::lanes();
    for_constants<kWords * kPieces>([&](auto p) {
      if (wanted_ >= n) return;
      const std::uint64_t bit = std::uint64_t{1} << (p % kPieces * P::lanes() + P::lane());
      const std::uint32_t votes = P::votes(!mine_ && seen_[p / kPieces] & bit);
      const std::uint32_t rank = wanted_ + count_bits(votes & ((1u << P::lane()) - 1));
      wanted_ += count_bits(votes);
      if (!(votes >> P::lane() & 1) || rank >= n) return;
      mine_ = bit;
      rank_ = rank;
      worker_ = p * P::lanes() + P::lane();
      before_ = idle_.claim_workers(p / kPieces, bit);
    });
    saw_all_ = idle <= wanted_ && idle_.words() <= kWords;
    if (wanted_ > n) wanted_ = n;
  }

  /// Publishes as many items as were claimed for, count_of(level) of each priority, the more urgent first: delivers one to each
  /// worker that was claimed, and publishes the rest. The lanes have met since the items, and what the tasks need, were
  /// written.
  template <class CountOf>
  FLYWHEEL_TASK void publish(CountOf&& count_of, const std::uint64_t* items) const {
    P::fence();  // acquires the claim, and releases for IdleSet::deliver(), see Ready::deliver_to_claimed()
    const bool sent = before_ & mine_;
    if (sent) idle_.deliver(worker_, items[rank_]);
    const std::uint32_t votes = P::votes(mine_ && !sent);  // who was late
    for (std::uint32_t lane = 0; lane < P::lanes() && votes >> lane; ++lane) {
      const std::uint32_t own = rank_, rank = P::word_of_lanes(&own, lane % P::lanes());
      if (votes >> lane & 1 && P::lane() == 0) publish_rest(rank, rank + 1, count_of, items);
    }
    if (!saw_all_) {
      if (P::lane() == 0) publish_rest(wanted_, ~0u, count_of, items);
    } else if constexpr (P::lanes() > 1) {
      push_rest(count_of, items);
    }
  }

 private:
  static constexpr std::uint32_t kWords = 4;  // of the idle set; of more workers, publish_items() claims the others

  /// Items `from` to `to`, those of each priority together.
  template <class CountOf>
  FLYWHEEL_TASK void publish_rest(std::uint32_t from, std::uint32_t to, CountOf& count_of, const std::uint64_t* items) const {
    for (std::uint32_t level = 0, end = 0; level < kPriorities; ++level) {
      const std::uint32_t begin = end > from ? end : from;
      end += count_of(level);
      const std::uint32_t last = end < to ? end : to;
      if (begin < last) publish_items<typename P::Leader>(dev_, dev_.workers, last - begin, level, items + begin);
    }
  }

  /// Pushes items wanted_ and on, each lane its share, to the queues of their priorities: the trips to L2 of all of them are
  /// one.
  template <class CountOf>
  FLYWHEEL_TASK void push_rest(CountOf& count_of, const std::uint64_t* items) const {
    using Leader = typename P::Leader;
    const Views<Leader> views{dev_};
    std::uint32_t begin[kPriorities], end[kPriorities], n = 0;  // of the rest of each priority
    for_constants<kPriorities>([&](auto level) {
      begin[level] = n > wanted_ ? n : wanted_;
      n += count_of(level);
      end[level] = n > wanted_ ? n : wanted_;
    });
    if (n <= wanted_) return;
    std::uint32_t own = 0;  // lanes 0, 1 and 2: of the priority with that number
    for_constants<kPriorities>([&](auto level) { own = P::lane() == level ? end[level] - begin[level] : own; });
    const std::uint64_t first = own ? views.ready(P::lane()).take_tickets(own) : 0;
    const std::uint32_t halves[] = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(first >> 32)};
    std::uint64_t tickets[kPriorities];  // of item 0, if it had that priority
    for_constants<kPriorities>([&](auto level) {
      const std::uint64_t high = P::word_of_lanes(halves, level + P::lanes());
      tickets[level] = (high << 32 | P::word_of_lanes(halves, level)) - begin[level];
    });
    for (std::uint32_t rank = wanted_ + P::lane(); rank < n; rank += P::lanes()) {
      std::uint32_t level = 0;
      std::uint64_t ticket = tickets[0] + rank;
      for_constants<kPriorities - 1>([&](auto before) {
        if (rank >= end[before]) level = before + 1, ticket = tickets[before + 1] + rank;
      });
      // Released by the fence in publish(). An abort that ends the wait ends all else, too.
      views.ready(level).put(ticket, items[rank], views.wait(dev_.workers));
    }
    P::converge();  // a token promises that its item is there soon
    if (own) views.ready(P::lane()).add_tokens(own);
  }

  const DeviceState& dev_;
  const IdleSet<P> idle_;
  std::uint64_t seen_[kWords];
  std::uint32_t wanted_ = 0;  // workers that all lanes together tried to claim
  bool saw_all_ = false;      // no other worker was idle
  // Of this lane's claim: the worker, its bit (0: none), the word before, and the rank of its item.
  std::uint64_t mine_ = 0, before_ = 0;
  std::uint32_t worker_ = 0, rank_ = 0;
};

}  // namespace flywheel::detail
