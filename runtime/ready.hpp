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
  FLYWHEEL_TASK Ready(const World& world, std::uint32_t worker) : wires_{world}, wait_(wires_.wait(worker)) {}

  /// Collective. Publishes n tasks of one priority, `item_of(i)` packed: first to idle workers, the rest queued.
  template <class ItemOf>
  FLYWHEEL_TASK bool publish(std::uint32_t n, std::uint32_t priority, ItemOf&& item_of,
                             std::uint32_t idle_hint = 0) const {
    std::uint32_t sent = hand_out(n, item_of, idle_hint);
    bool ok = true;
    while (ok && sent < n) {
      const std::uint32_t batch = n - sent < kPublishBatch ? n - sent : kPublishBatch;
      ok = wires_.ready(priority).push(batch, [&](std::uint32_t i) { return item_of(sent + i); }, wait_);
      sent += batch;
    }
    return ok;
  }

  /// Collective. Each lane may bring one item, each with its own priority.
  FLYWHEEL_TASK bool publish_lanes(bool have, std::uint64_t item, std::uint32_t priority,
                                   std::uint32_t idle_hint = 0) const {
    bool ok = true;
    for (std::uint32_t level = 0; level < kPriorities; ++level) {
      const std::uint32_t mask = P::ballot(have && priority == level);
      if (!mask) continue;
      // Lane i takes over the item of the i-th lane that brought one. The shuffle is no fence: converge() is, and it
      // puts what the leading lane acquired for these tasks before every lane's release.
      const std::uint64_t mine = P::broadcast(item, nth_bit(mask, P::lane()));
      P::converge();
      ok &= publish(count_bits(mask), level, [&](std::uint32_t) { return mine; }, idle_hint);
    }
    return ok;
  }

 private:
  template <class ItemOf>
  FLYWHEEL_TASK std::uint32_t hand_out(std::uint32_t n, ItemOf&& item_of, std::uint32_t hint) const {
    const IdleSet<P> idle = wires_.idle();
    std::uint32_t sent = 0;
    P::release_fence();  // while the claim is on its way, for what it will deliver
    while (sent < n) {
      std::uint32_t word = 0;
      const std::uint32_t claimed = idle.claim(n - sent < 32 ? n - sent : 32, word, hint);
      hint = 0;
      if (!claimed) break;
      const std::uint32_t count = count_bits(claimed);
      for (std::uint32_t i = P::lane(); i < count; i += P::lanes())
        idle.deliver(word * 32 + nth_bit(claimed, i), item_of(sent + i));
      P::converge();
      sent += count;
    }
    return sent;
  }

  Wires<P> wires_;
  WaitContext wait_;
};

}  // namespace flywheel
