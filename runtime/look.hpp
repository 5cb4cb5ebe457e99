// The lookout: where an idle worker finds its next task.
#pragma once

#include "runtime/roots.hpp"

namespace flywheel {

enum class Seen { item, phased, stop };

/// Looks at the worker's seat and at the board, and keeps the batch it popped and the root ticket it was given.
template <class P>
class Lookout {
 public:
  FLYWHEEL_TASK Lookout(const World& world, std::uint32_t id, Porch* porch)
      : world_(world), wires_{world}, seat_{wires_.idle(), id, porch}, wait_(wires_.wait(id)),
        stats_(world.stats[id]), epoch_(world.phased_before) {}

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
      ++stats_.looks;
      P::pause(spins);
    }
  }

  /// The next task of the batch in hand, or of the roots it holds a ticket for, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t rest_of_batch() {
    for (;;) {
      if (roots_next_ < roots_end_) return root_item(world_, world_.runs[roots_slot_].line.constants, roots_next_++);
      if (batch_next_ < batch_size_) {
        const std::uint64_t item = batch_[batch_next_++];
        if (Item::unpack(item).record != Item::kRootTicket) return item;
        keep_ticket(item);
      } else if (ticket_ == kEmptyMailbox || !take_share()) {
        return kEmptyMailbox;
      }
    }
  }

  /// Takes more work in advance, but only when so much is queued that nobody could be idle for want of what this
  /// worker holds.
  FLYWHEEL_TASK std::uint64_t batch_if_deep() {
    const Board board = read_board();
    if (board.depth < 2 * world_.workers) return kEmptyMailbox;
    return pop(board) ? rest_of_batch() : kEmptyMailbox;
  }

  /// True if the last thing popped from a queue was more than this worker could do at once.
  FLYWHEEL_TASK bool had_batch() const { return batch_size_ > 1; }

  /// True if all workers are wanted for a phased run: what this one keeps for itself must wait its turn.
  FLYWHEEL_TASK bool phased_pending() const {
    return bulletin_epoch(P::device(world_.control->board.bulletin).load(Order::relaxed)) != epoch_;
  }
  FLYWHEEL_TASK std::uint16_t phased_run() const { return phased_run_; }
  FLYWHEEL_TASK WorkerStats& stats() { return stats_; }

  /// The counters live in registers; the host sees them when the worker becomes idle or leaves.
  FLYWHEEL_TASK void show_stats() const {
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
  static constexpr std::uint32_t kMaxShare = 32;
  static constexpr std::uint32_t kLooksASeat = 4;  // looks at the seat for one at the board

  struct Board {
    std::uint64_t bulletin;
    std::uint32_t level;  // of the most urgent tasks queued
    std::uint32_t depth;  // how many; 0: none at any level
    bool abort;
  };

  FLYWHEEL_TASK Board read_board() const {
    BoardWords& words = world_.control->board;
    const std::uint64_t bulletin = P::device(words.bulletin).load(Order::relaxed);
    const std::uint64_t abort = P::device(words.abort).load(Order::relaxed);
    std::int64_t counts[kPriorities];
    for (std::uint32_t level = 0; level < kPriorities; ++level)
      counts[level] = P::device(words.queued[level]).load(Order::relaxed);
    Board board{bulletin, 0, 0, abort != 0};
    for (std::uint32_t level = kPriorities; level-- > 0;)
      if (counts[level] > 0) board.level = level, board.depth = Queue<P>::as_size(counts[level]);
    return board;
  }

  /// True if the board had something for this worker: `seen` says what.
  FLYWHEEL_TASK bool look_at_board(std::uint64_t& item, Seen& seen) {
    const Board board = read_board();
    seen = Seen::stop;
    if (board.abort) return true;
    // Before the queues: all workers must join, and a busy queue must not keep some of them away.
    if (bulletin_epoch(board.bulletin) != epoch_) {
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
    batch_size_ = batch_next_ = 0;
    ++stats_.handed;
    if (Item::unpack(item).record != Item::kRootTicket) return item;
    keep_ticket(item);
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
    epoch_ = bulletin_epoch(bulletin);
    phased_run_ = static_cast<std::uint16_t>(bulletin_run(bulletin));
    return true;
  }

  /// A share of what is there, as in guided self-scheduling (Polychronopoulos and Kuck, 1987): much at once while there
  /// is plenty, single tasks near the end.
  FLYWHEEL_TASK std::uint32_t share_of(std::uint32_t depth, std::uint32_t most) const {
    const std::uint32_t share = depth / (2 * world_.workers) + 1;
    return share < most ? share : most;
  }

  FLYWHEEL_TASK bool pop(const Board& board) {
    batch_next_ = 0;
    batch_size_ = wires_.ready(board.level).pop(share_of(board.depth, kMaxBatch), batch_, wait_);
    stats_.queued += batch_size_;
    return batch_size_ != 0;
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
    // The ticket may be stale and its run's line be changing; any level will do then.
    RunConstants& run = world_.runs[Item::unpack(ticket).run].line.constants;
    const std::uint32_t seen = P::device(run.priority).load(Order::relaxed);
    wires_.ready(seen < kPriorities ? seen : kPriorities - 1).push(1, [&](std::uint32_t) { return ticket; }, wait_);
  }

  /// The first share is a single root, to learn how many are left. False if there are none, or if something more
  /// urgent waits: then the ticket goes back to the queue.
  FLYWHEEL_TASK bool take_share() {
    const std::uint64_t ticket = ticket_;
    ticket_ = kEmptyMailbox;
    if (left_ && something_urgent()) {
      put_back(ticket);
      return false;
    }
    roots_slot_ = Item::unpack(ticket).run;
    RunState& run = world_.runs[roots_slot_];
    const RootShare share = take_roots<P>(run, share_of(left_, kMaxShare));
    if (!share.count) return false;
    roots_next_ = share.first;
    roots_end_ = share.first + share.count;
    left_ = share.left - share.count;
    level_ = run.line.constants.priority;  // the run lives at least until these roots are done
    if (left_) ticket_ = ticket;
    return true;
  }

  FLYWHEEL_TASK bool something_urgent() const {
    const Board board = read_board();
    return (board.depth && board.level < level_) || bulletin_epoch(board.bulletin) != epoch_ || board.abort;
  }

  const World& world_;
  Wires<P> wires_;
  Seat<P> seat_;
  WaitContext wait_;
  WorkerStats stats_;
  std::uint64_t batch_[kMaxBatch];
  std::uint32_t batch_next_ = 0;
  std::uint32_t batch_size_ = 0;
  std::uint64_t ticket_ = kEmptyMailbox;  // for roots of a run
  std::uint32_t roots_next_ = 0;          // the share in hand: positions in the root list
  std::uint32_t roots_end_ = 0;
  std::uint32_t left_ = 0;                // roots of that run that nobody had taken, when last seen
  std::uint32_t level_ = 0;               // its priority
  std::uint32_t epoch_;
  std::uint16_t roots_slot_ = 0;
  std::uint16_t phased_run_ = 0;
  bool enrolled_ = false;
};

}  // namespace flywheel
