// Ready tasks: from whoever makes one ready to a worker that runs it.
//
// An idle worker gets it in its mailbox; with nobody idle it goes to the queue of its priority.
#pragma once

#include <cstdint>

#include "runtime/world.hpp"

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
  FLYWHEEL_TASK Ready(const World& world, std::uint32_t worker)
      : wires_{world}, wait_(wires_.wait(worker)), id_(worker) {}

  /// Publishes n tasks of one priority, `item_of(i)` packed: first to idle workers, the rest queued.
  template <class ItemOf>
  FLYWHEEL_TASK bool publish(std::uint32_t n, std::uint32_t priority, ItemOf&& item_of) const {
    std::uint32_t sent = hand_out(n, item_of);
    bool ok = true;
    while (ok && sent < n) {
      const std::uint32_t batch = n - sent < kPublishBatch ? n - sent : kPublishBatch;
      ok = wires_.ready(priority).push(batch, [&](std::uint32_t i) { return item_of(sent + i); }, wait_);
      sent += batch;
    }
    return ok;
  }
  FLYWHEEL_TASK bool publish_one(std::uint64_t item, std::uint32_t priority) const {
    return publish(1, priority, [&](std::uint32_t) { return item; });
  }

  /// Claims one idle worker in advance, or kNobody; see give_hand() and drop_hand().
  FLYWHEEL_TASK std::uint32_t take_hand() const {
    const IdleSet<P> idle = wires_.idle();
    const std::uint32_t word = id_ / 64 < idle.words() ? id_ / 64 : 0;
    const Claim claim = idle.claim(word, idle.seen(word), 1, id_);
    return claim.bits ? word * 64 + lowest_bit(claim.bits) : kNobody;
  }
  FLYWHEEL_TASK void give_hand(std::uint32_t hand, std::uint64_t item) const {
    P::release_fence();
    wires_.idle().deliver(hand, item);
  }
  FLYWHEEL_TASK void drop_hand(std::uint32_t hand) const { wires_.idle().enroll(hand); }

 private:
  /// Gives items 0, 1, ... of n to idle workers; returns how many.
  template <class ItemOf>
  FLYWHEEL_TASK std::uint32_t hand_out(std::uint32_t n, ItemOf&& item_of) const {
    const IdleSet<P> idle = wires_.idle();
    std::uint32_t sent = 0;
    for (std::uint32_t w = 0; w < idle.words() && sent < n; ++w) {
      const std::uint32_t word = (id_ / 64 + w) % idle.words();
      Claim claim = idle.claim(word, idle.seen(word), n - sent, id_);
      if (!claim.bits) continue;
      P::release_fence();
      for (; claim.bits; claim.bits &= claim.bits - 1, ++sent)
        idle.deliver(word * 64 + lowest_bit(claim.bits), item_of(sent));
    }
    return sent;
  }

  Wires<P> wires_;
  WaitContext wait_;
  std::uint32_t id_;
};

}  // namespace flywheel
