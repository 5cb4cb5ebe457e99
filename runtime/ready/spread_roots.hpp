// What all lanes of the inbox poller deliver to idle workers: the roots of a run that was admitted just now, and wake-ups. A
// thread alone needs 190 cycles a worker, 13 us for all of an H200: see publish_roots() and wake_idle(), which do the same on
// one thread.
#pragma once

#include "roots.hpp"

namespace flywheel::detail {

/// Whether spread_roots() is for this run: it has more than a few roots, of one priority.
FLYWHEEL_TASK inline bool has_spread_roots(const RunConstants& run) {
  return (run.flags & kRootsUniform) && run.root_count > kFewRoots;
}
/// Whether idle workers get roots, and the others are left to be taken; otherwise all are left, and idle workers get tickets.
/// As in publish_roots().
FLYWHEEL_TASK inline bool gives_roots(const DeviceState& dev, const RunConstants& run) {
  return (run.flags & kRootsDense) && run.root_count <= 2 * dev.workers;
}

/// Looks which workers are idle, claims some and delivers to them, in three steps. All lanes of P call each. In each word of
/// the idle set a lane claims those bits that are its own: its number, modulo the number of lanes. So none delivers what
/// another has claimed.
template <class P>
class LaneSpread {
 public:
  FLYWHEEL_TASK explicit LaneSpread(const DeviceState& dev) : idle_(Views<P>{dev}.idle()) {
    for_constants<kWords>([&](auto w) { seen_[w] = w < idle_.words() ? idle_.seen(w) : 0; });
  }

  /// Claims up to n idle workers.
  FLYWHEEL_TASK void claim(std::uint32_t n) {
    std::uint32_t planned = 0;
    for_constants<kWords * kPieces>([&](auto p) {
      const std::uint64_t bit = bit_of(p % kPieces);
      const std::uint32_t votes = P::votes((seen_[p / kPieces] & bit) != 0);
      if (votes >> P::lane() & 1 && planned + rank_in(votes) < n) wanted_[p / kPieces] |= bit;
      planned += count_bits(votes);
    });
    for_constants<kWords>([&](auto w) { before_[w] = wanted_[w] ? idle_.claim_workers(w, wanted_[w]) : 0; });
  }

  /// Delivers item_of(0), item_of(1), ... to the workers that were claimed; returns how many these are. What the tasks need was
  /// written before the lanes met.
  template <class ItemOf>
  FLYWHEEL_TASK std::uint32_t deliver(ItemOf&& item_of) const {
    P::fence();  // acquires the claims, and releases for IdleSet::deliver(), see Ready::deliver_to_claimed()
    std::uint32_t sent = 0;
    for_constants<kWords * kPieces>([&](auto p) {
      const bool mine = (before_[p / kPieces] & wanted_[p / kPieces] & bit_of(p % kPieces)) != 0;
      const std::uint32_t votes = P::votes(mine);
      if (mine) idle_.deliver(p * P::lanes() + P::lane(), item_of(sent + rank_in(votes)));
      sent += count_bits(votes);
    });
    return sent;
  }

 private:
  static constexpr std::uint32_t kWords = 4;  // of the idle set; other workers find what is left in the broadcast words
  static constexpr std::uint32_t kPieces = 64 / P::lanes();

  FLYWHEEL_TASK static std::uint64_t bit_of(std::uint32_t piece) {
    return std::uint64_t{1} << (piece * P::lanes() + P::lane());
  }
  FLYWHEEL_TASK static std::uint32_t rank_in(std::uint32_t votes) { return count_bits(votes & ((1u << P::lane()) - 1)); }

  const IdleSet<P> idle_;
  std::uint64_t seen_[kWords];                               // the words of the set
  std::uint64_t wanted_[kWords] = {}, before_[kWords] = {};  // of this lane: bits, and the words before its claims
};

/// Publishes the roots of a run from number `first` on, as publish_roots() does. All lanes of P call; `run` is a copy, since
/// the run may end before the call does.
template <class P>
FLYWHEEL_COLD void spread_roots(const DeviceState& dev, const RunConstants& run, std::uint32_t first) {
  using Leader = typename P::Leader;
  const RootList roots = RootList::of(run);
  const bool gives = gives_roots(dev, run);
  LaneSpread<P> spread(dev);
  spread.claim(run.root_count - first);
  if (!gives && P::lane() == 0) open_roots<Leader>(dev, run, first);
  P::converge();  // a ticket comes after the roots are open
  const std::uint64_t ticket = Item{Item::kRootTicket, static_cast<std::uint16_t>(run.slot), false}.pack();
  const auto item = [&](std::uint32_t i) { return gives ? roots.item(dev, first + i) : ticket; };
  const std::uint32_t sent = spread.deliver(item);
  if (gives && first + sent < run.root_count && P::lane() == 0) open_roots<Leader>(dev, run, first + sent);
}

inline constexpr std::uint64_t kWakeUpItem = Item{Item::kWakeUp, 0, false}.pack();

/// After an announcement: idle workers look at the broadcast words at once. Without that they look after so many polls of their
/// idle slots, some 34 us apart on a GPU (tuning.md). One thread calls; `worker`: see Ready.
template <class P>
FLYWHEEL_COLD void wake_idle(const DeviceState& dev, std::uint32_t worker) {
  // The fence in deliver_to_idle() comes after the announcement: a worker that finds the wake-up finds that, too.
  Ready<P>(dev, worker).deliver_to_idle(dev.workers, [](std::uint32_t) { return kWakeUpItem; });
}
/// The same; all lanes of P call.
template <class P>
FLYWHEEL_COLD void wake_idle_by_lanes(const DeviceState& dev) {
  LaneSpread<P> spread(dev);
  spread.claim(dev.workers);
  spread.deliver([](std::uint32_t) { return kWakeUpItem; });  // its fence: as in wake_idle()
}

}  // namespace flywheel::detail
