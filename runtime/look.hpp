// The lookout: where an idle worker finds its next task.
#pragma once

#include "runtime/world.hpp"

namespace flywheel {

enum class Seen { item, phased, stop };

/// Looks at the queues, the bulletin and the worker's seat, and keeps the batch it popped.
template <class P>
class Lookout {
 public:
  FLYWHEEL_TASK Lookout(const World& world, std::uint32_t id, Porch* porch)
      : world_(world), wires_{world}, seat_{wires_.idle(), id, porch}, wait_(wires_.wait(id)),
        stats_(world.stats[id]), epoch_(world.control->door.epoch) {}

  /// Collective. Waits for a task, a phased run or the stop sign. There is no budget here: being idle is no fault.
  FLYWHEEL_TASK Seen until_something(std::uint64_t& item) {
    for (std::uint32_t spins = 0;; ++spins) {
      const View view = look();
      if (view.item != kEmptyMailbox) return took(view.item, item);
      if (view.abort) return Seen::stop;
      if (view.queued) {
        if (withdraw() && pop(kMaxBatch)) return batched(item);
      } else if (bulletin_epoch(view.bulletin) != epoch_) {
        if (withdraw()) return take_phased(view.bulletin);
      } else if (bulletin_stop(view.bulletin) == world_.launch) {
        if (withdraw()) return Seen::stop;
      } else {
        enroll();
      }
      ++stats_.looks;
      P::pause(spins);
    }
  }

  /// Collective. The next task of the batch in hand, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t rest_of_batch() {
    if (batch_next_ == batch_size_) return kEmptyMailbox;
    return P::broadcast(batch_, batch_next_++);
  }

  /// Collective. Takes more work in advance, but only when so much is queued that nobody could be idle for want of
  /// what this worker holds.
  FLYWHEEL_TASK std::uint64_t batch_if_deep() {
    std::uint32_t depth = 0;
    if (P::lane() < kPriorities) depth = wires_.ready(P::lane()).size_hint();
    for (std::uint32_t level = 1; P::lanes() == 1 && level < kPriorities; ++level) depth += wires_.ready(level).size_hint();
    if (!P::ballot(depth >= 2 * world_.workers) || !pop(kMaxBatch)) return kEmptyMailbox;
    stats_.queued += batch_size_;
    return rest_of_batch();
  }

  FLYWHEEL_TASK std::uint16_t phased_run() const { return phased_run_; }
  FLYWHEEL_TASK WorkerStats& stats() { return stats_; }

  /// One lane. The counters live in registers; the host sees them when the worker is idle or leaves.
  FLYWHEEL_TASK void show_stats() {
    WorkerStats& shown = world_.stats[seat_.worker];
    P::device(shown.tasks).store(stats_.tasks, Order::relaxed);
    P::device(shown.skipped).store(stats_.skipped, Order::relaxed);
    P::device(shown.kept).store(stats_.kept, Order::relaxed);
    P::device(shown.queued).store(stats_.queued, Order::relaxed);
    P::device(shown.handed).store(stats_.handed, Order::relaxed);
    P::device(shown.looks).store(stats_.looks, Order::relaxed);
  }

 private:
  static constexpr std::uint32_t kMaxBatch = 8;
  // Places to look at, one a lane: the queues' counts, then these.
  static constexpr std::uint32_t kBulletin = kPriorities;
  static constexpr std::uint32_t kAbort = kPriorities + 1;
  static constexpr std::uint32_t kSeat = kPriorities + 2;
  static constexpr std::uint32_t kPlaces = kPriorities + 3;

  struct View {
    std::uint64_t item;
    std::uint64_t bulletin;
    bool queued;
    bool abort;
  };

  /// One look is one load: the lanes read the words side by side. Acquire, for the two that bring something: the
  /// seat (pairs with IdleSet::deliver() or offer_porch()) and the bulletin (pairs with the door's post()).
  FLYWHEEL_TASK View look() const {
    std::uint64_t seen[kPlaces];
    for (std::uint32_t base = 0; base < kPlaces; base += P::lanes()) {
      const std::uint32_t place = base + P::lane();
      std::uint64_t mine = place == kSeat ? kEmptyMailbox : 0;
      if (place < kPlaces && (place != kSeat || enrolled_)) mine = P::device(*place_word(place)).load(Order::acquire);
      for (std::uint32_t k = 0; k < P::lanes() && base + k < kPlaces; ++k) seen[base + k] = P::broadcast(mine, k);
    }
    P::converge();  // what one lane acquired with its word, all lanes may use
    const auto some = [](std::uint64_t count) { return Queue<P>::as_size(static_cast<std::int64_t>(count)) != 0; };
    return {seen[kSeat], seen[kBulletin], some(seen[0]) || some(seen[1]) || some(seen[2]), seen[kAbort] != 0};
  }

  FLYWHEEL_TASK std::uint64_t* place_word(std::uint32_t place) const {
    std::uint64_t* count = reinterpret_cast<std::uint64_t*>(&world_.queue_words[place < kPriorities ? place : 0].count.value);
    std::uint64_t* word = place == kBulletin ? &world_.control->bulletin.value : &world_.control->abort.value;
    return place < kPriorities ? count : place == kSeat ? &seat_.inbox() : word;
  }

  FLYWHEEL_TASK void enroll() {
    if (enrolled_) return;
    if (P::lane() == 0) {
      seat_.enroll();
      show_stats();
    }
    enrolled_ = true;
  }

  /// True once no item can arrive any more. If one is on its way, stay: the next look will find it.
  FLYWHEEL_TASK bool withdraw() {
    bool out = true;
    if (enrolled_ && P::lane() == 0) out = seat_.withdraw();
    out = P::broadcast(out);
    enrolled_ = enrolled_ && !out;
    return out;
  }

  /// The giver has unseated this worker already; what is left is to empty the seat for the next one.
  FLYWHEEL_TASK Seen took(std::uint64_t packed, std::uint64_t& item) {
    if (P::lane() == 0) seat_.empty();
    enrolled_ = false;
    ++stats_.handed;
    item = packed;
    return Seen::item;
  }

  FLYWHEEL_TASK Seen batched(std::uint64_t& item) {
    stats_.queued += batch_size_;
    item = rest_of_batch();
    return Seen::item;
  }

  FLYWHEEL_TASK Seen take_phased(std::uint64_t bulletin) {
    epoch_ = bulletin_epoch(bulletin);
    phased_run_ = static_cast<std::uint16_t>(bulletin_run(bulletin));
    return Seen::phased;
  }

  /// A share of what is queued, as in guided self-scheduling (Polychronopoulos and Kuck, 1987): big batches while
  /// there is plenty, single tasks near the end.
  FLYWHEEL_TASK bool pop(std::uint32_t most) {
    for (std::uint32_t level = 0; level < kPriorities; ++level) {
      const Queue<P> queue = wires_.ready(level);
      const std::uint32_t depth = P::broadcast(queue.size_hint());
      if (!depth) continue;
      std::uint32_t share = depth / (2 * world_.workers) + 1;
      if (share > most) share = most;
      if (share > P::lanes()) share = P::lanes();
      batch_next_ = 0;
      batch_size_ = queue.pop(share, batch_, wait_);
      if (batch_size_) return true;
    }
    return false;
  }

  const World& world_;
  Wires<P> wires_;
  Seat<P> seat_;
  WaitContext wait_;
  WorkerStats stats_;
  std::uint64_t batch_ = 0;
  std::uint32_t batch_next_ = 0;
  std::uint32_t batch_size_ = 0;
  std::uint32_t epoch_;
  std::uint16_t phased_run_ = 0;
  bool enrolled_ = false;
};

}  // namespace flywheel
