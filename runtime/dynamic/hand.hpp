// What a worker has in hand: the rest of a batch it popped, and a share of a run's roots.
#pragma once

#include "runtime/dynamic/roots.hpp"

namespace flywheel {

/// What the board says.
struct Board {
  std::uint64_t bulletin;
  std::uint32_t level;  // of the most urgent work
  std::int64_t count;   // of what waits there, see kRootedRun; 0: nothing waits anywhere
  bool abort;

  FLYWHEEL_TASK bool has_work() const { return count > 0; }
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
    if (counts[level] > 0) {
      board.level = level;
      board.count = counts[level];
    }
  return board;
}

/// A share of what is there, as in guided self-scheduling (Polychronopoulos and Kuck, 1987): much at once while there is
/// plenty, single tasks near the end.
FLYWHEEL_TASK inline std::uint32_t share_of(const World& world, std::uint32_t depth, std::uint32_t most) {
  const std::uint32_t share = (depth >> world.share_shift) + 1;
  return share < most ? share : most;
}

/// The level of the most urgent work that waits, if that is more urgent than `level`; else `level`.
template <class P>
FLYWHEEL_TASK std::uint32_t most_urgent(const World& world, std::uint32_t level) {
  // Relaxed: hints, as in read_board().
  for (std::uint32_t above = 0; above < level; ++above)
    if (P::device(world.control->board.queued[above]).load(Order::relaxed) > 0) return above;
  return level;
}

/// All workers are wanted for a run of all of them, or are to leave.
template <class P>
FLYWHEEL_TASK bool is_wanted(const World& world, const Desk& desk) {
  // Relaxed: hints, as in read_board().
  BoardWords& words = world.control->board;
  return bulletin_epoch(P::device(words.bulletin).load(Order::relaxed)) != desk.epoch ||
         P::device(words.abort).load(Order::relaxed) != 0;
}

FLYWHEEL_TASK inline RootList roots_in_hand(const Desk& desk) {
  return {desk.roots_first_record, desk.roots_first, desk.roots_slot, desk.roots_dense};
}

/// The tasks in hand go to the queue of their level. There is room: each was counted when its run was let in.
template <class P>
FLYWHEEL_TASK void put_back_tasks(const World& world, Desk& desk, std::uint32_t worker) {
  const Wires<P> wires{world};
  const RootList roots = roots_in_hand(desk);
  const std::uint32_t n = desk.roots_end - desk.roots_next, rest = desk.batch_size - desk.batch_next;
  const auto item = [&](std::uint32_t i) {
    return i < n ? roots.item(world, desk.roots_next + i) : desk.batch[desk.batch_next + i - n];
  };
  if (n + rest) wires.ready(desk.level).push(n + rest, item, wires.wait(worker));
  desk.roots_next = desk.roots_end = desk.batch_next = desk.batch_size = 0;
}

/// All of what is in hand. The run whose roots it was to take next keeps its bit for others.
template <class P>
FLYWHEEL_COLD void put_back_hand(const World& world, Desk& desk, std::uint32_t worker) {
  put_back_tasks<P>(world, desk, worker);
  desk.roots_open = false;
}

/// A body lasts: the worker keeps nothing in hand meanwhile, and its next two shares are single tasks: the one that it runs next
/// and the one that it stages behind that. So it looks for more urgent work before each task, and begins at most one that was
/// staged before the look.
template <class P>
FLYWHEEL_COLD void take_singly(const World& world, Desk& desk, std::uint32_t worker) {
  desk.single_shares = 2;
  put_back_tasks<P>(world, desk, worker);
}
/// How many tasks the next share may have, of `most`.
FLYWHEEL_TASK inline std::uint32_t most_of_share(Desk& desk, std::uint32_t most) {
  if (!desk.single_shares) return most;
  --desk.single_shares;
  return 1;
}

namespace detail {
/// Of a run of which not known is how many are left, a single root. False if there are none, or if something more urgent
/// waits: the run keeps its bit for others.
template <class P>
FLYWHEEL_TASK bool take_share(const World& world, Desk& desk) {
  constexpr std::uint32_t kMost = 64;
  desk.roots_open = false;
  if (desk.roots_left) {
    const Board board = read_board<P>(world);  // all of it at once: one trip to L2
    if (board.has_work() && board.level < desk.level) return false;
    if (board.abort || bulletin_epoch(board.bulletin) != desk.epoch) return false;
  }
  RunState& run = world.runs[desk.roots_slot];
  const RootShare share = take_roots<P>(run, share_of(world, desk.roots_left, most_of_share(desk, kMost)));
  if (!share.count) return false;
  const RunConstants& constants = run.line.constants;  // the run lives at least until these roots are done
  const RootList roots = RootList::of(constants);
  desk.roots_first_record = roots.first_record;
  desk.roots_first = roots.first_root;
  desk.roots_dense = roots.dense;
  desk.roots_next = share.first;
  desk.roots_end = share.first + share.count;
  desk.roots_left = share.left - share.count;
  desk.level = constants.priority;
  desk.roots_open = desk.roots_left != 0;
  if (!desk.roots_open) close_roots<P>(world, desk.roots_slot, desk.level);
  return true;
}
}  // namespace detail

/// The worker, with nothing in hand, was told of a run with many roots.
FLYWHEEL_TASK inline void keep_ticket(Desk& desk, std::uint32_t slot, std::uint32_t left) {
  desk.roots_slot = static_cast<std::uint16_t>(slot);
  desk.roots_left = left;
  desk.roots_open = true;
}

/// Finds a run with roots left at `level`. Each worker begins behind the run that it took from last, so none is passed for
/// ever. False if there is none by now.
template <class P>
FLYWHEEL_TASK bool find_roots(const World& world, Desk& desk, std::uint32_t level) {
  const std::uint32_t words = (world.run_slots + 63) / 64, start = desk.roots_slot + 1u;
  for (std::uint32_t w = 0; w <= words; ++w) {
    const std::uint32_t word = (start / 64 + w) % words;
    // Relaxed: a hint, see open_roots().
    std::uint64_t bits = P::device(world.control->root_bits[level][word]).load(Order::relaxed);
    if (w == 0) bits &= ~std::uint64_t{0} << start % 64;
    for (; bits; bits &= bits - 1) {
      const std::uint32_t slot = word * 64 + lowest_bit(bits), left = roots_left<P>(world, slot);
      if (!left) continue;
      keep_ticket(desk, slot, left);
      desk.level = level;
      return true;
    }
  }
  return false;
}

/// Takes from where the board has its most urgent work, at `level`: a share of the tasks queued there, or a run with roots
/// left; in turn, where it has both. How many are in hand: of roots that is 1, for all that is known.
template <class P>
FLYWHEEL_COLD std::uint32_t take_work(const World& world, Desk& desk, std::uint32_t worker, std::uint32_t level,
                                      std::int64_t count) {
  constexpr std::uint32_t kMost = sizeof(Desk::batch) / sizeof(std::uint64_t);
  const std::uint32_t depth = Queue<P>::as_size(count);
  const bool roots = count >= kRootedRun / 2 && (!depth || desk.roots_turn);
  desk.roots_turn = !roots;
  if (roots) return find_roots<P>(world, desk, level);
  const Wires<P> wires{world};
  desk.level = level;
  desk.batch_next = 0;
  desk.batch_size = wires.ready(level).pop(share_of(world, depth, most_of_share(desk, kMost)), desk.batch, wires.wait(worker));
  return desk.batch_size;
}

/// A task that is more urgent than what is in hand, or kEmptyMailbox. What is in hand is put back for one, and when all workers
/// are wanted. Only a worker that has got such a task does so; the others' hands stay as they are.
template <class P>
FLYWHEEL_COLD std::uint64_t give_way(const World& world, Desk& desk, std::uint32_t worker) {
  const std::uint32_t level = most_urgent<P>(world, desk.level);
  const Wires<P> wires{world};
  const Queue<P> queue = wires.ready(level);
  std::uint64_t item = kEmptyMailbox;
  if (level != desk.level && queue.size_hint()) {
    if (!queue.pop(1, &item, wires.wait(worker))) return kEmptyMailbox;
    ++desk.urgent;
  } else if (level == desk.level && !is_wanted<P>(world, desk)) {
    return kEmptyMailbox;
  }
  put_back_hand<P>(world, desk, worker);
  return item;
}

/// The next task of what is in hand, or kEmptyMailbox.
template <class P>
FLYWHEEL_COLD std::uint64_t take_in_hand(const World& world, Desk& desk) {
  for (;;) {
    if (desk.roots_next < desk.roots_end) return roots_in_hand(desk).item(world, desk.roots_next++);
    if (desk.batch_next < desk.batch_size) return desk.batch[desk.batch_next++];
    if (!desk.roots_open || !detail::take_share<P>(world, desk)) return kEmptyMailbox;
  }
}

}  // namespace flywheel
