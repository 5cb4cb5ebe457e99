// Ready tasks: from whoever makes one ready to a worker that runs it.
//
// An idle worker gets it in its mailbox; with nobody idle it goes to the queue of its priority. The words of this journey:
//
//   Hand   an idle worker claimed in advance, so that a task that gets ready goes straight to it    (idle.hpp)
//   Seat   where an idle worker is found: its bit and its mailbox, or the porch                     (idle.hpp)
//   Porch  the seat of the worker that shares its SM with the door: in shared memory, near at hand  (idle.hpp)
//   Desk   what a worker keeps from task to task: a batch it popped, its share of a run's roots     (world.hpp)
#pragma once

#include <cstdint>

#include "runtime/records/world.hpp"

namespace flywheel {

/// Tasks that go out on one batch of tickets.
inline constexpr std::uint32_t kPublishBatch = 1024;

/// The queue a task goes to: its own priority, or its run's.
FLYWHEEL_TASK constexpr std::uint32_t level_of(std::uint32_t own, std::uint32_t of_run) {
  return own == static_cast<std::uint32_t>(Priority::inherit) ? of_run : own;
}

template <class P>
class Ready {
 public:
  FLYWHEEL_TASK Ready(const World& world, std::uint32_t worker) : wires_{world}, id_(worker) {}

  /// Publishes n tasks of one priority, `item_of(i)` packed: first to idle workers, the rest queued.
  template <class ItemOf>
  FLYWHEEL_TASK bool publish(std::uint32_t n, std::uint32_t priority, ItemOf&& item_of) const {
    std::uint32_t sent = hand_out(n, item_of);
    bool ok = true;
    while (ok && sent < n) {
      const std::uint32_t batch = n - sent < kPublishBatch ? n - sent : kPublishBatch;
      const auto rest = [&](std::uint32_t i) { return item_of(sent + i); };
      ok = wires_.ready(priority).push(batch, rest, wires_.wait(id_));
      sent += batch;
    }
    return ok;
  }

  /// An idle worker to claim in advance, if there is one; for take_hand(), then give_hand() or drop_hand().
  FLYWHEEL_TASK Hand plan_hand() const {
    const std::uint32_t word = first_word(wires_.idle());
    return IdleSet<P>::plan(word, wires_.idle().seen(word), id_);
  }
  /// The same after `hand` was given, by what was seen when it was taken.
  FLYWHEEL_TASK Hand plan_after(const Hand& hand) const {
    return IdleSet<P>::plan(hand.worker / 64, hand.before & ~hand.wanted, id_);
  }
  FLYWHEEL_TASK Hand take_hand(const Hand& planned) const { return wires_.idle().take(planned); }
  FLYWHEEL_TASK void give_hand(const Hand& hand, std::uint64_t item) const {
    P::fence();  // acquires the claim and releases the task's inputs, see IdleSet::deliver()
    wires_.idle().deliver(hand.worker, item);
  }
  FLYWHEEL_TASK void drop_hand(const Hand& hand) const { wires_.idle().enroll(hand.worker); }

  /// Gives items 0, 1, ... of n to idle workers; returns how many.
  template <class ItemOf>
  FLYWHEEL_TASK std::uint32_t hand_out(std::uint32_t n, ItemOf&& item_of) const {
    const IdleSet<P> idle = wires_.idle();
    std::uint32_t sent = 0, word = first_word(idle);
    for (std::uint32_t w = 0; w < idle.words() && sent < n; ++w) {
      std::uint64_t claimed = idle.claim(word, idle.seen(word), n - sent, id_).bits();
      if (claimed) P::fence();  // as in give_hand()
      for (; claimed; claimed &= claimed - 1, ++sent) idle.deliver(word * 64 + lowest_bit(claimed), item_of(sent));
      if (++word == idle.words()) word = 0;
    }
    return sent;
  }

 private:
  /// Claimers begin with the word of their own bit, so that they do not all go for the same workers.
  FLYWHEEL_TASK std::uint32_t first_word(const IdleSet<P>& idle) const {
    return id_ / 64 < idle.words() ? id_ / 64 : 0;
  }

  Wires<P> wires_;
  std::uint32_t id_;
};

/// Publishes n packed items of one priority. Out of line: the finisher calls it from several places.
template <class P>
FLYWHEEL_COLD bool publish_items(const World& world, std::uint32_t worker, std::uint32_t n, std::uint32_t priority,
                                 const std::uint64_t* items) {
  return Ready<P>(world, worker).publish(n, priority, [&](std::uint32_t i) { return items[i]; });
}

}  // namespace flywheel
