// What a worker has in hand: the rest of a batch it popped, and a share of a run's roots.
#pragma once

#include "runtime/roots.hpp"

namespace flywheel {

/// What the board says.
struct Board {
  std::uint64_t bulletin;
  std::uint32_t level;  // of the most urgent tasks queued
  std::uint32_t depth;  // how many; 0: none at any level
  bool abort;
};

template <class P>
FLYWHEEL_TASK Board read_board(const World& world) {
  // All relaxed: hints. What they lead to is acquired where it is taken: a task with its slot, a run of all workers with
  // the bulletin in Lookout::take_phased(); an abort is an end, of which nothing is read.
  BoardWords& words = world.control->board;
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

/// A share of what is there, as in guided self-scheduling (Polychronopoulos and Kuck, 1987): much at once while there is
/// plenty, single tasks near the end.
FLYWHEEL_TASK inline std::uint32_t share_of(const World& world, std::uint32_t depth, std::uint32_t most) {
  const std::uint32_t share = (depth >> world.share_shift) + 1;
  return share < most ? share : most;
}

namespace detail {
template <class P>
FLYWHEEL_TASK void put_back(const World& world, std::uint32_t worker, std::uint64_t ticket) {
  // The ticket may be stale and its run's line be changing; any level will do then.
  RunConstants& run = world.runs[Item::unpack(ticket).run].line.constants;
  const std::uint32_t seen = P::device(run.priority).load(Order::relaxed);
  const Wires<P> wires{world};
  const std::uint32_t level = seen < kPriorities ? seen : kPriorities - 1;
  wires.ready(level).push(1, [&](std::uint32_t) { return ticket; }, wires.wait(worker));
}

template <class P>
FLYWHEEL_TASK bool something_urgent(const World& world, const Desk& desk) {
  const Board board = read_board<P>(world);
  return (board.depth && board.level < desk.roots_level) || bulletin_epoch(board.bulletin) != desk.epoch || board.abort;
}

/// The first share is a single root, to learn how many are left. False if there are none, or if something more urgent
/// waits: then the ticket goes back to the queue.
template <class P>
FLYWHEEL_TASK bool take_share(const World& world, Desk& desk, std::uint32_t worker) {
  constexpr std::uint32_t kMost = 32;
  const std::uint64_t ticket = desk.ticket;
  desk.ticket = kEmptyMailbox;
  if (desk.roots_left && something_urgent<P>(world, desk)) {
    put_back<P>(world, worker, ticket);
    return false;
  }
  RunState& run = world.runs[Item::unpack(ticket).run];
  const RootShare share = take_roots<P>(run, share_of(world, desk.roots_left, kMost));
  if (!share.count) return false;
  const RootList roots = RootList::of(run.line.constants);  // the run lives at least until these roots are done
  desk.roots_first_record = roots.first_record;
  desk.roots_first = roots.first_root;
  desk.roots_slot = roots.slot;
  desk.roots_dense = roots.dense;
  desk.roots_next = share.first;
  desk.roots_end = share.first + share.count;
  desk.roots_left = share.left - share.count;
  desk.roots_level = run.line.constants.priority;
  if (desk.roots_left) desk.ticket = ticket;
  return true;
}
}  // namespace detail

/// One is enough: with another of the same run there is nothing to add, one of another run is for somebody else.
template <class P>
FLYWHEEL_COLD void keep_ticket(const World& world, Desk& desk, std::uint32_t worker, std::uint64_t ticket) {
  if (desk.ticket == ticket) return;
  if (desk.ticket != kEmptyMailbox) return detail::put_back<P>(world, worker, ticket);
  desk.ticket = ticket;
  desk.roots_left = 0;
}

/// Pops a share of the tasks queued at `level`; returns how many.
template <class P>
FLYWHEEL_COLD std::uint32_t pop_batch(const World& world, Desk& desk, std::uint32_t worker, std::uint32_t level,
                                      std::uint32_t depth) {
  constexpr std::uint32_t kMost = sizeof(Desk::batch) / sizeof(std::uint64_t);
  const Wires<P> wires{world};
  desk.batch_next = 0;
  desk.batch_size = wires.ready(level).pop(share_of(world, depth, kMost), desk.batch, wires.wait(worker));
  return desk.batch_size;
}

/// The next task of what is in hand, or kEmptyMailbox.
template <class P>
FLYWHEEL_COLD std::uint64_t take_in_hand(const World& world, Desk& desk, std::uint32_t worker) {
  for (;;) {
    if (desk.roots_next < desk.roots_end) {
      const RootList roots{desk.roots_first_record, desk.roots_first, desk.roots_slot, desk.roots_dense};
      return roots.item(world, desk.roots_next++);
    }
    if (desk.batch_next < desk.batch_size) {
      const std::uint64_t item = desk.batch[desk.batch_next++];
      if (Item::unpack(item).record != Item::kRootTicket) return item;
      keep_ticket<P>(world, desk, worker, item);
    } else if (desk.ticket == kEmptyMailbox || !detail::take_share<P>(world, desk, worker)) {
      return kEmptyMailbox;
    }
  }
}

}  // namespace flywheel
