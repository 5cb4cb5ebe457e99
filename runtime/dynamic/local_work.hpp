// What a worker has in hand: the rest of a batch it popped, and a share of a run's roots.
#pragma once

#include "roots.hpp"

namespace flywheel {

/// What the broadcast words says.
struct Broadcast {
  std::uint64_t announcement;
  std::uint32_t level;  // of the most urgent work
  std::int64_t count;   // of what waits there, see kRootedRun; 0: nothing waits anywhere
  bool abort;

  FLYWHEEL_TASK bool has_work() const { return count > 0; }
};

template <class P>
FLYWHEEL_TASK Broadcast read_broadcast(const DeviceState& dev) {
  // All relaxed: hints. What they lead to is acquired where it is taken: a task with its slot, a collective run with
  // the announcement in WorkFinder::take_phased(); an abort is an end, of which nothing is read.
  BroadcastWords& words = dev.control->broadcast;
  const std::uint64_t announcement = P::device(words.announcement).load(Order::relaxed);
  const std::uint64_t abort = P::device(words.abort).load(Order::relaxed);
  std::int64_t counts[kPriorities];
  for (std::uint32_t level = 0; level < kPriorities; ++level)
    counts[level] = P::device(words.queued[level]).load(Order::relaxed);
  Broadcast broadcast{announcement, 0, 0, abort != 0};
  for (std::uint32_t level = kPriorities; level-- > 0;)
    if (counts[level] > 0) {
      broadcast.level = level;
      broadcast.count = counts[level];
    }
  return broadcast;
}

/// A share of what is there, as in guided self-scheduling (Polychronopoulos and Kuck, 1987): much at once while there is
/// plenty, single tasks near the end.
FLYWHEEL_TASK inline std::uint32_t share_of(const DeviceState& dev, std::uint32_t depth, std::uint32_t most) {
  const std::uint32_t share = (depth >> dev.share_shift) + 1;
  return share < most ? share : most;
}

/// The level of the most urgent work that waits, if that is more urgent than `level`; else `level`.
template <class P>
FLYWHEEL_TASK std::uint32_t most_urgent(const DeviceState& dev, std::uint32_t level) {
  // Relaxed: hints, as in read_broadcast().
  for (std::uint32_t above = 0; above < level; ++above)
    if (P::device(dev.control->broadcast.queued[above]).load(Order::relaxed) > 0) return above;
  return level;
}

/// All workers are wanted for a collective run, or are to leave.
template <class P>
FLYWHEEL_TASK bool is_wanted(const DeviceState& dev, const LocalWork& work) {
  // Relaxed: hints, as in read_broadcast().
  BroadcastWords& words = dev.control->broadcast;
  return announcement_epoch(P::device(words.announcement).load(Order::relaxed)) != work.epoch ||
         P::device(words.abort).load(Order::relaxed) != 0;
}

FLYWHEEL_TASK inline RootList local_roots(const LocalWork& work) {
  return {work.roots_first_record, work.roots_first, work.roots_slot, work.roots_dense};
}

/// The tasks in hand go to the queue of their level. There is room: each was counted when its run was let in.
template <class P>
FLYWHEEL_TASK void put_back_tasks(const DeviceState& dev, LocalWork& work, std::uint32_t worker) {
  const Views<P> views{dev};
  const RootList roots = local_roots(work);
  const std::uint32_t n = work.roots_end - work.roots_next, rest = work.batch_size - work.batch_next;
  const auto item = [&](std::uint32_t i) {
    return i < n ? roots.item(dev, work.roots_next + i) : work.batch[work.batch_next + i - n];
  };
  if (n + rest) views.ready(work.level).push(n + rest, item, views.wait(worker));
  work.roots_next = work.roots_end = work.batch_next = work.batch_size = 0;
}

/// All of what is in hand. The run whose roots it was to take next keeps its bit for others.
template <class P>
FLYWHEEL_COLD void put_back_all(const DeviceState& dev, LocalWork& work, std::uint32_t worker) {
  put_back_tasks<P>(dev, work, worker);
  work.roots_open = false;
}

/// A body lasts: the worker keeps nothing in hand meanwhile, and its next two shares are single tasks: the one that it runs next
/// and the one that it stages behind that. So it looks for more urgent work before each task, and begins at most one that was
/// staged before the look.
template <class P>
FLYWHEEL_COLD void take_singly(const DeviceState& dev, LocalWork& work, std::uint32_t worker) {
  work.single_shares = 2;
  put_back_tasks<P>(dev, work, worker);
}
/// How many tasks the next share may have, of `most`.
FLYWHEEL_TASK inline std::uint32_t most_of_share(LocalWork& work, std::uint32_t most) {
  if (!work.single_shares) return most;
  --work.single_shares;
  return 1;
}

namespace detail {
/// Of a run of which not known is how many are left, a single root. False if there are none, or if something more urgent
/// waits: the run keeps its bit for others.
template <class P>
FLYWHEEL_TASK bool take_share(const DeviceState& dev, LocalWork& work) {
  constexpr std::uint32_t kMost = 64;
  work.roots_open = false;
  if (work.roots_left) {
    const Broadcast broadcast = read_broadcast<P>(dev);  // all of it at once: one trip to L2
    if (broadcast.has_work() && broadcast.level < work.level) return false;
    if (broadcast.abort || announcement_epoch(broadcast.announcement) != work.epoch) return false;
  }
  RunState& run = dev.runs[work.roots_slot];
  const RootShare share = take_roots<P>(run, share_of(dev, work.roots_left, most_of_share(work, kMost)));
  if (!share.count) return false;
  const RunConstants& constants = run.line.constants;  // the run lives at least until these roots are done
  const RootList roots = RootList::of(constants);
  work.roots_first_record = roots.first_record;
  work.roots_first = roots.first_root;
  work.roots_dense = roots.dense;
  work.roots_next = share.first;
  work.roots_end = share.first + share.count;
  work.roots_left = share.left - share.count;
  work.level = constants.priority;
  work.roots_open = work.roots_left != 0;
  if (!work.roots_open) close_roots<P>(dev, work.roots_slot, work.level);
  return true;
}
}  // namespace detail

/// The worker, with nothing in hand, was told of a run with many roots.
FLYWHEEL_TASK inline void keep_ticket(LocalWork& work, std::uint32_t slot, std::uint32_t left) {
  work.roots_slot = static_cast<std::uint16_t>(slot);
  work.roots_left = left;
  work.roots_open = true;
}

/// Finds a run with roots left at `level`. Each worker begins behind the run that it took from last, so none is passed for
/// ever. False if there is none by now.
template <class P>
FLYWHEEL_TASK bool find_roots(const DeviceState& dev, LocalWork& work, std::uint32_t level) {
  const std::uint32_t words = (dev.run_slots + 63) / 64, start = work.roots_slot + 1u;
  for (std::uint32_t w = 0; w <= words; ++w) {
    const std::uint32_t word = (start / 64 + w) % words;
    // Relaxed: a hint, see open_roots().
    std::uint64_t bits = P::device(dev.control->root_bits[level][word]).load(Order::relaxed);
    if (w == 0) bits &= ~std::uint64_t{0} << start % 64;
    for (; bits; bits &= bits - 1) {
      const std::uint32_t slot = word * 64 + lowest_bit(bits), left = roots_left<P>(dev, slot);
      if (!left) continue;
      keep_ticket(work, slot, left);
      work.level = level;
      return true;
    }
  }
  return false;
}

/// Takes from where the broadcast words has its most urgent work, at `level`: a share of the tasks queued there, or a run with roots
/// left; in turn, where it has both. How many are in hand: of roots that is 1, for all that is known.
template <class P>
FLYWHEEL_COLD std::uint32_t take_work(const DeviceState& dev, LocalWork& work, std::uint32_t worker, std::uint32_t level,
                                      std::int64_t count) {
  constexpr std::uint32_t kMost = sizeof(LocalWork::batch) / sizeof(std::uint64_t);
  const std::uint32_t depth = Queue<P>::as_size(count);
  const bool roots = count >= kRootedRun / 2 && (!depth || work.roots_turn);
  work.roots_turn = !roots;
  if (roots) return find_roots<P>(dev, work, level);
  const Views<P> views{dev};
  work.level = level;
  work.batch_next = 0;
  work.batch_size = views.ready(level).pop(share_of(dev, depth, most_of_share(work, kMost)), work.batch, views.wait(worker));
  return work.batch_size;
}

/// A task that is more urgent than what is in hand, or kEmptyMailbox. What is in hand is put back for one, and when all workers
/// are wanted. Only a worker that has got such a task does so; the others' hands stay as they are.
template <class P>
FLYWHEEL_COLD std::uint64_t give_way(const DeviceState& dev, LocalWork& work, std::uint32_t worker) {
  const std::uint32_t level = most_urgent<P>(dev, work.level);
  const Views<P> views{dev};
  const Queue<P> queue = views.ready(level);
  std::uint64_t item = kEmptyMailbox;
  if (level != work.level && queue.size_hint()) {
    if (!queue.pop(1, &item, views.wait(worker))) return kEmptyMailbox;
    ++work.urgent;
  } else if (level == work.level && !is_wanted<P>(dev, work)) {
    return kEmptyMailbox;
  }
  put_back_all<P>(dev, work, worker);
  return item;
}

/// The next task of what is in hand, or kEmptyMailbox.
template <class P>
FLYWHEEL_COLD std::uint64_t take_local(const DeviceState& dev, LocalWork& work) {
  for (;;) {
    if (work.roots_next < work.roots_end) return local_roots(work).item(dev, work.roots_next++);
    if (work.batch_next < work.batch_size) return work.batch[work.batch_next++];
    if (!work.roots_open || !detail::take_share<P>(dev, work)) return kEmptyMailbox;
  }
}

}  // namespace flywheel
