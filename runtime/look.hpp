// The lookout: where an idle worker finds its next task.
#pragma once

#include "runtime/roots.hpp"

namespace flywheel {

enum class Seen { item, phased, stop };

/// Looks at the queues, the bulletin and the worker's seat, and keeps the batch it popped.
template <class P>
class Lookout {
 public:
  FLYWHEEL_TASK Lookout(const World& world, std::uint32_t id, Porch* porch)
      : world_(world), wires_{world}, seat_{wires_.idle(), id, porch}, wait_(wires_.wait(id)),
        stats_(world.stats[id]), epoch_(world.phased_before) {}

  /// Collective. Waits for a task, a phased run or the stop sign. There is no budget here: being idle is no fault.
  FLYWHEEL_TASK Seen until_something(std::uint64_t& item) {
    for (std::uint32_t spins = 0;; ++spins) {
      const View view = look();
      if (view.item != kEmptyMailbox) item = took(view.item);  // empty again if it was a ticket and all is taken
      if (item != kEmptyMailbox) return Seen::item;
      if (view.abort) return Seen::stop;
      // Before the queues: all workers must join, and a busy queue must not keep some of them away.
      if (bulletin_epoch(view.bulletin) != epoch_) {
        if (withdraw()) return take_phased(view.bulletin);
      } else if (view.depth) {
        if (withdraw() && pop(view.level, view.depth)) item = batched();
        if (item != kEmptyMailbox) return Seen::item;
      } else if (bulletin_stop(view.bulletin) == world_.launch) {
        if (withdraw()) return Seen::stop;
      } else {
        enroll();
      }
      ++stats_.looks;
      P::pause(spins);
    }
  }

  /// Collective. The next task of the batch in hand, or of the roots it holds a ticket for, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t rest_of_batch() {
    while (batch_next_ < batch_size_ || (ticket_ != kEmptyMailbox && take_share())) {
      const std::uint64_t item = P::broadcast(batch_, batch_next_++);
      if (Item::unpack(item).record != Item::kRootTicket) return item;
      keep_ticket(item);
    }
    return kEmptyMailbox;
  }

  /// Collective. Takes more work in advance, but only when so much is queued that nobody could be idle for want of
  /// what this worker holds. `waiting` is what glance() saw.
  FLYWHEEL_TASK std::uint64_t batch_if_deep(std::uint64_t waiting) {
    const std::uint32_t deep = P::ballot(waiting >= 2 * world_.workers);
    if (!deep) return kEmptyMailbox;
    const std::uint32_t level = lowest_bit(deep);
    return pop(level, P::broadcast(static_cast<std::uint32_t>(waiting), level)) ? batched() : kEmptyMailbox;
  }

  /// Lane i < kPriorities: how many tasks are queued at priority i. A single lane has nobody to run a task while it
  /// looks ahead, and sees nothing.
  FLYWHEEL_TASK std::uint64_t glance() const {
    if (P::lanes() == 1 || P::lane() >= kPriorities) return 0;
    return wires_.ready(P::lane()).size_hint();
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
    std::uint32_t level;  // of the most urgent tasks queued
    std::uint32_t depth;  // how many; 0: none at any level
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
    View view{seen[kSeat], seen[kBulletin], 0, 0, seen[kAbort] != 0};
    for (std::uint32_t level = kPriorities; level-- > 0;) {
      const std::uint32_t depth = Queue<P>::as_size(static_cast<std::int64_t>(seen[level]));
      if (depth) view.level = level, view.depth = depth;
    }
    return view;
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
  FLYWHEEL_TASK std::uint64_t took(std::uint64_t packed) {
    if (P::lane() == 0) seat_.empty();
    enrolled_ = false;
    ++stats_.handed;
    if (Item::unpack(packed).record != Item::kRootTicket) return packed;
    keep_ticket(packed);
    return rest_of_batch();
  }

  FLYWHEEL_TASK std::uint64_t batched() {
    stats_.queued += batch_size_;
    return rest_of_batch();
  }

  // ---- root tickets, see roots.hpp ----

  /// One is enough: with another of the same run there is nothing to add, one of another run is for somebody else.
  FLYWHEEL_TASK void keep_ticket(std::uint64_t ticket) {
    if (ticket_ == ticket) return;
    if (ticket_ != kEmptyMailbox) return put_back(ticket);
    ticket_ = ticket;
    left_ = 0;
  }

  FLYWHEEL_TASK void put_back(std::uint64_t ticket) const {
    const RunConstants& run = world_.runs[Item::unpack(ticket).run].line.constants;
    const std::uint32_t level = run.priority < kPriorities ? run.priority : kPriorities - 1;
    wires_.ready(level).push(1, [&](std::uint32_t) { return ticket; }, wait_);
  }

  /// The first share is a single root, to learn how many are left. False if there are none, or if something more
  /// urgent waits: then the ticket goes back to the queue.
  FLYWHEEL_TASK bool take_share() {
    RunState& run = world_.runs[Item::unpack(ticket_).run];
    const std::uint64_t ticket = ticket_;
    ticket_ = kEmptyMailbox;
    if (left_ && something_urgent(level_)) {
      put_back(ticket);
      return false;
    }
    RootShare share{};
    if (P::lane() == 0) share = take_roots<P>(run, share_of(left_, P::lanes()));
    const std::uint32_t first = P::broadcast(share.first);
    batch_next_ = 0;
    batch_size_ = P::broadcast(share.count);
    left_ = P::broadcast(share.left) - batch_size_;
    P::converge();
    if (!batch_size_) return false;
    const RunConstants& constants = run.line.constants;  // the run lives at least until these roots are done
    level_ = constants.priority;
    if (P::lane() < batch_size_) batch_ = root_item(world_, constants, first + P::lane());
    if (left_) ticket_ = ticket;
    return true;
  }

  FLYWHEEL_TASK bool something_urgent(std::uint32_t level) const {
    const View view = look();
    return (view.depth && view.level < level) || bulletin_epoch(view.bulletin) != epoch_ || view.abort;
  }

  FLYWHEEL_TASK Seen take_phased(std::uint64_t bulletin) {
    epoch_ = bulletin_epoch(bulletin);
    phased_run_ = static_cast<std::uint16_t>(bulletin_run(bulletin));
    return Seen::phased;
  }

  /// A share of what is queued, as in guided self-scheduling (Polychronopoulos and Kuck, 1987): big batches while
  /// there is plenty, single tasks near the end.
  FLYWHEEL_TASK std::uint32_t share_of(std::uint32_t depth, std::uint32_t most) const {
    const std::uint32_t share = depth / (2 * world_.workers) + 1;
    return share < most ? share : most;
  }

  FLYWHEEL_TASK bool pop(std::uint32_t level, std::uint32_t depth) {
    const std::uint32_t most = P::lanes() < kMaxBatch ? P::lanes() : kMaxBatch;
    batch_next_ = 0;
    batch_size_ = wires_.ready(level).pop(share_of(depth, most), batch_, wait_);
    return batch_size_ != 0;
  }

  const World& world_;
  Wires<P> wires_;
  Seat<P> seat_;
  WaitContext wait_;
  WorkerStats stats_;
  std::uint64_t batch_ = 0;              // lane i holds item i
  std::uint64_t ticket_ = kEmptyMailbox; // for roots of a run
  std::uint32_t left_ = 0;               // roots of that run that nobody had taken, when last seen
  std::uint32_t level_ = 0;              // its priority
  std::uint32_t batch_next_ = 0;
  std::uint32_t batch_size_ = 0;
  std::uint32_t epoch_;
  std::uint16_t phased_run_ = 0;
  bool enrolled_ = false;
};

}  // namespace flywheel
