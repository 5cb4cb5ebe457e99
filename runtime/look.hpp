// The lookout: where an idle worker finds its next task.
#pragma once

#include "runtime/hand.hpp"

namespace flywheel {

enum class Seen { item, phased, stop };

/// Looks at the worker's seat and at the board, and keeps the batch it popped and the root ticket it was given.
template <class P>
class Lookout {
 public:
  FLYWHEEL_TASK Lookout(const World& world, std::uint32_t id, Porch* porch, Desk& desk)
      : world_(world), desk_(desk), wires_{world}, seat_{wires_.idle(), id, porch} {
    desk = {};
    desk.ticket = kEmptyMailbox;
    desk.epoch = world.phased_before;
    desk.stats = world.stats[id];
  }

  /// Waits for a task, a phased run or the stop sign. There is no budget here: being idle is no fault.
  FLYWHEEL_TASK Seen until_something(std::uint64_t& item) {
    for (std::uint32_t spins = 0;; ++spins) {
      if (enrolled_) {
        item = look_at_seat();
        if (item != kEmptyMailbox) return Seen::item;
      }
      Seen seen;
      // The board is everybody's: a seated worker, to whom things are brought, looks at it now and then.
      if (spins % kLooksASeat == 0 && look_at_board(item, seen)) return seen;
      ++desk_.stats.looks;
      P::pause(spins);
    }
  }

  /// The next task of the batch in hand, or of the roots it holds a ticket for, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t rest_of_batch() {
    const bool something =
        desk_.roots_next < desk_.roots_end || desk_.batch_next < desk_.batch_size || desk_.ticket != kEmptyMailbox;
    return something ? take_in_hand<P>(world_, desk_, seat_.worker) : kEmptyMailbox;
  }

  /// Takes more work in advance, but only when so much is queued that nobody could be idle for want of what this
  /// worker holds.
  FLYWHEEL_TASK std::uint64_t batch_if_deep() {
    const Board board = read_board<P>(world_);
    if (board.depth < 2 * world_.workers) return kEmptyMailbox;
    return pop(board) ? rest_of_batch() : kEmptyMailbox;
  }

  /// True if the last thing popped from a queue was more than this worker could do at once.
  FLYWHEEL_TASK bool had_batch() const { return desk_.batch_size > 1; }

  /// True if all workers are wanted for a phased run: what this one keeps for itself must wait its turn.
  FLYWHEEL_TASK bool phased_pending() const {
    return bulletin_epoch(P::device(world_.control->board.bulletin).load(Order::relaxed)) != desk_.epoch;
  }
  FLYWHEEL_TASK std::uint16_t phased_run() const { return phased_run_; }
  FLYWHEEL_TASK WorkerStats& stats() { return desk_.stats; }

  /// The counters live in registers; the host sees them when the worker becomes idle or leaves.
  FLYWHEEL_TASK void show_stats() const {
    WorkerStats& shown = world_.stats[seat_.worker];
    P::device(shown.tasks).store(desk_.stats.tasks, Order::relaxed);
    P::device(shown.skipped).store(desk_.stats.skipped, Order::relaxed);
    P::device(shown.kept).store(desk_.stats.kept, Order::relaxed);
    P::device(shown.queued).store(desk_.stats.queued, Order::relaxed);
    P::device(shown.handed).store(desk_.stats.handed, Order::relaxed);
    P::device(shown.looks).store(desk_.stats.looks, Order::relaxed);
  }

 private:
  static constexpr std::uint32_t kMaxBatch = sizeof(Desk::batch) / sizeof(std::uint64_t);
  static constexpr std::uint32_t kLooksASeat = 4;  // looks at the seat for one at the board

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
    if (board.depth) {
      seen = Seen::item;
      if (withdraw() && pop(board)) item = rest_of_batch();
      return item != kEmptyMailbox;
    }
    if (bulletin_stop(board.bulletin) == world_.launch) return withdraw();
    enroll();
    return false;
  }

  /// Empty again if it was a ticket and all roots are taken.
  FLYWHEEL_TASK std::uint64_t look_at_seat() {
    const std::uint64_t item = seat_.peek();
    if (item == kEmptyMailbox) return item;
    seat_.empty();  // the giver has unseated this worker already
    enrolled_ = false;
    desk_.batch_size = desk_.batch_next = 0;
    ++desk_.stats.handed;
    if (Item::unpack(item).record != Item::kRootTicket) return item;
    keep_ticket<P>(world_, desk_, seat_.worker, item);
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
    desk_.batch_next = 0;
    const std::uint32_t share = share_of(world_, board.depth, kMaxBatch);
    desk_.batch_size = wires_.ready(board.level).pop(share, desk_.batch, wires_.wait(seat_.worker));
    desk_.stats.queued += desk_.batch_size;
    return desk_.batch_size != 0;
  }

  const World& world_;
  Desk& desk_;
  Wires<P> wires_;
  Seat<P> seat_;
  std::uint16_t phased_run_ = 0;
  bool enrolled_ = false;
};

}  // namespace flywheel
