// The lookout: where an idle worker finds its next task.
#pragma once

#include "runtime/dynamic/hand.hpp"

namespace flywheel {

enum class Seen { item, phased, stop };

/// Looks at the worker's seat and at the board, and keeps the batch it popped and the root ticket it was given.
template <class P>
class Lookout {
 public:
  FLYWHEEL_TASK Lookout(const World& world, std::uint32_t id, Porch* porch, Desk& desk)
      : world_(world), desk_(desk), wires_{world}, seat_{wires_.idle(), id, porch}, stats_(world.stats[id]),
        looks_(porch ? kLooksAtPorch : kLooksAtMailbox) {
    desk = {};
    desk.epoch = world.phased_before;
  }

  /// Waits for a task, a phased run or the stop sign. There is no budget here: being idle is no fault.
  FLYWHEEL_TASK Seen until_something(std::uint64_t& item) {
    for (std::uint32_t spins = 0;; ++spins) {
      Seen seen;
      if (look_at_board(item, seen)) return seen;
      // The board is everybody's, and a trip to L2 away: a worker to whom things are brought looks at its seat mostly.
      if (enrolled_) item = seat_.peek(looks_);
      if (item != kEmptyMailbox) item = leave_seat(item);
      if (item != kEmptyMailbox) return Seen::item;
      ++stats_.looks;
      P::pause(spins * looks_);
    }
  }

  /// The next task of the batch in hand, or of the roots it holds a ticket for, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t rest_of_batch() {
    if (!in_hand_) return kEmptyMailbox;
    std::uint64_t item = kEmptyMailbox;
    if constexpr (P::kNearMemory) item = give_way<P>(world_, desk_, seat_.worker);
    if (item == kEmptyMailbox) item = take_in_hand<P>(world_, desk_);
    in_hand_ = item != kEmptyMailbox;
    return item;
  }
  /// A body lasts: the worker takes single tasks from now on, see take_singly(). So where looks are cheap, or bodies last, no worker
  /// begins a less urgent task while a more urgent one waits, but for one that is staged already and the successor that it keeps
  /// of that. Else after a share at most.
  FLYWHEEL_TASK void bodies_last() { take_singly<P>(world_, desk_, seat_.worker); }

  /// Takes more work in advance, but only when so much is queued that nobody could be idle for want of what this
  /// worker holds, and when nobody waits for it in a run of all workers.
  FLYWHEEL_TASK std::uint64_t batch_if_deep() {
    const Board board = read_board<P>(world_);
    if (Queue<P>::as_size(board.count) < 2 * world_.workers || board.abort || bulletin_epoch(board.bulletin) != desk_.epoch) return kEmptyMailbox;
    return pop(board) ? rest_of_batch() : kEmptyMailbox;
  }

  /// True if the last thing popped from a queue was more than this worker could do at once, or would have been, see take_singly().
  FLYWHEEL_TASK bool had_batch() const { return had_batch_; }

  /// True if all workers are wanted for a phased run, or are to leave: what this one keeps for itself must wait its turn.
  FLYWHEEL_TASK bool is_wanted() const { return flywheel::is_wanted<P>(world_, desk_); }
  /// The constants of the run whose task came last, if it came over the porch; told once.
  FLYWHEEL_TASK const RunConstants* porch_run() {
    const RunConstants* run = over_porch_ ? &seat_.porch->run : nullptr;
    over_porch_ = false;
    return run;
  }

  FLYWHEEL_TASK std::uint16_t phased_run() const { return phased_run_; }
  FLYWHEEL_TASK WorkerStats& stats() { return stats_; }

  /// The counters live in registers; the host sees them when the worker becomes idle or leaves. Relaxed, all: figures to read,
  /// which belong to nothing else.
  FLYWHEEL_TASK void show_stats() const {
    WorkerStats& shown = world_.stats[seat_.worker];
    P::device(shown.tasks).store(stats_.tasks, Order::relaxed);
    P::device(shown.skipped).store(stats_.skipped, Order::relaxed);
    P::device(shown.kept).store(stats_.kept, Order::relaxed);
    P::device(shown.queued).store(stats_.queued + desk_.urgent, Order::relaxed);
    P::device(shown.handed).store(stats_.handed, Order::relaxed);
    P::device(shown.looks).store(stats_.looks, Order::relaxed);
  }

 private:
  // Tried on an H200: 16 looks (a hop between SMs took 0.03 us more than with 64); 2 to 4 looks under way at once (0.08 to
  // 0.3 us more).
  static constexpr std::uint32_t kLooksAtMailbox = 48;  // for one at the board, some 17 us
  static constexpr std::uint32_t kLooksAtPorch = 512;   // each is shorter: the porch is in shared memory

  /// True if the board had something for this worker: `seen` says what.
  FLYWHEEL_TASK bool look_at_board(std::uint64_t& item, Seen& seen) {
    const Board board = read_board<P>(world_);
    seen = Seen::stop;
    if (board.abort) return true;
    // Before the queues: all workers must join, and a busy queue must not keep some of them away.
    if (bulletin_epoch(board.bulletin) != desk_.epoch) {
      seen = Seen::phased;
      return withdraw() && take_phased();
    }
    if (board.has_work()) {
      seen = Seen::item;
      if (withdraw() && pop(board)) item = rest_of_batch();
      return item != kEmptyMailbox;
    }
    if (bulletin_stop(board.bulletin) == world_.launch) return withdraw();
    enroll();
    return false;
  }

  /// Empty again if it was a ticket and all roots are taken.
  FLYWHEEL_TASK std::uint64_t leave_seat(std::uint64_t item) {
    seat_.empty();  // the giver has unseated this worker already
    enrolled_ = false;
    had_batch_ = false;
    ++stats_.handed;
    if (Item::unpack(item).record != Item::kRootTicket) {
      over_porch_ = seat_.porch != nullptr;
      return item;
    }
    keep_ticket(desk_, Item::unpack(item).run, 0);
    in_hand_ = true;
    return rest_of_batch();
  }

  FLYWHEEL_TASK void enroll() {
    if (enrolled_) return;
    enrolled_ = true;
    seat_.enroll();
    show_stats();
  }

  /// True once no item can arrive any more. If one is on its way, stay: a next look will find it.
  FLYWHEEL_TASK bool withdraw() {
    if (enrolled_) enrolled_ = !seat_.withdraw();
    return !enrolled_;
  }

  FLYWHEEL_TASK bool take_phased() {
    // Acquire: pairs with the door's release in post(); the run's state goes with it.
    const std::uint64_t bulletin = P::device(world_.control->board.bulletin).load(Order::acquire);
    desk_.epoch = bulletin_epoch(bulletin);
    phased_run_ = static_cast<std::uint16_t>(bulletin_run(bulletin));
    return true;
  }

  FLYWHEEL_TASK bool pop(const Board& board) {
    const bool singly = desk_.single_shares != 0;
    const std::uint32_t popped = take_work<P>(world_, desk_, seat_.worker, board.level, board.count);
    stats_.queued += popped;
    in_hand_ = popped != 0;
    had_batch_ = popped > 1 || singly;
    return in_hand_;
  }

  const World& world_;
  Desk& desk_;
  Wires<P> wires_;
  Seat<P> seat_;
  WorkerStats stats_;  // in registers; see show_stats()
  std::uint16_t phased_run_ = 0;
  bool in_hand_ = false;     // there may be more in hand, see hand.hpp
  bool had_batch_ = false;   // see had_batch()
  bool enrolled_ = false;
  bool over_porch_ = false;
  const std::uint32_t looks_;
};

}  // namespace flywheel
