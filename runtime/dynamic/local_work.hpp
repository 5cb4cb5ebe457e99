// A worker's local work: the rest of a batch that it popped, and its share of a run's roots. The functions take work,
// put it back in the queues, and give way to more urgent work. The work finder (work_finder.hpp) includes this header.
#pragma once

#include "../ready/roots.hpp"

namespace flywheel::detail {

/// One reading of the broadcast words.
struct Broadcast {
  std::uint64_t announcement;
  std::uint32_t level;  // the most urgent level at which work waits
  std::int64_t count;   // what waits there, see kRootedRun; 0: no level has work
  bool abort;

  FLYWHEEL_TASK bool has_work() const { return count > 0; }
};

template <class P>
FLYWHEEL_TASK Broadcast read_broadcast(const DeviceState& dev) {
  // All relaxed: hints. What they lead to is acquired where it is taken: a task in Queue::pop(), roots in take_roots(),
  // a collective run in WorkFinder::take_announcement(). They pair with Announcer::post(), with report_wait() and the
  // host's abort, and with Queue::push(), open_roots() and close_roots().
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

/// How many of `depth` waiting tasks a worker takes at once, at most `most`: many while many wait, one near the end.
/// This is guided self-scheduling (Polychronopoulos and Kuck, 1987).
FLYWHEEL_TASK inline std::uint32_t guided_share(const DeviceState& dev, std::uint64_t depth, std::uint32_t most) {
  const std::uint64_t share = (depth >> dev.share_shift) + 1;
  return share < most ? static_cast<std::uint32_t>(share) : most;
}

/// The most urgent level above `level` at which work waits; `level` if there is none.
template <class P>
FLYWHEEL_TASK std::uint32_t most_urgent(const DeviceState& dev, std::uint32_t level) {
  // Relaxed: hints, as in read_broadcast().
  for (std::uint32_t above = 0; above < level; ++above)
    if (P::device(dev.control->broadcast.queued[above]).load(Order::relaxed) > 0) return above;
  return level;
}

/// True if all workers are wanted for a collective run or are to leave, or the runtime was aborted.
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

/// Pushes the tasks of the local work to the queue of their level. The queue has room: each task was counted when its
/// run was admitted.
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

/// Puts all local work back. The run whose roots the worker would have taken next keeps its root bit for other workers.
template <class P>
FLYWHEEL_COLD void put_back_all(const DeviceState& dev, LocalWork& work, std::uint32_t worker) {
  put_back_tasks<P>(dev, work, worker);
  work.roots_open = false;
}

/// For long bodies: puts the tasks of the local work back, so that other workers can run them, and limits the next two
/// shares to one task: the one that runs next, and the one prefetched behind it. The worker thus checks for more urgent
/// work before each task, and begins at most one that was prefetched before the check.
template <class P>
FLYWHEEL_COLD void take_singly(const DeviceState& dev, LocalWork& work, std::uint32_t worker) {
  work.single_shares = 2;
  put_back_tasks<P>(dev, work, worker);
}
/// The limit of the next share: `most`, or 1 after take_singly().
FLYWHEEL_TASK inline std::uint32_t most_of_share(LocalWork& work, std::uint32_t most) {
  if (!work.single_shares) return most;
  --work.single_shares;
  return 1;
}

/// Takes a share of the roots of the run in work.roots_slot; a single root while the number of roots left is not known.
/// False if no root is left, or if more urgent work, a collective run or an abort waits: the run keeps its root bit for
/// other workers.
template <class P>
FLYWHEEL_TASK bool take_share(const DeviceState& dev, LocalWork& work) {
  constexpr std::uint32_t kMost = 64;
  work.roots_open = false;
  std::uint64_t waiting = work.roots_left;
  if (work.roots_left) {
    const Broadcast broadcast = read_broadcast<P>(dev);  // all words in one trip to L2
    if (broadcast.has_work() && broadcast.level < work.level) return false;
    if (broadcast.abort || announcement_epoch(broadcast.announcement) != work.epoch) return false;
    // Where runs of a few hundred roots wait, a worker takes of one as if all were one run: a share is five trips to L2.
    const std::int64_t runs = broadcast.level == work.level ? rooted_runs_of(broadcast.count) : 1;
    if (runs > 1) waiting *= static_cast<std::uint64_t>(runs);
  }
  RunState& run = dev.runs[work.roots_slot];
  const RootShare share = take_roots<P>(run, guided_share(dev, waiting, most_of_share(work, kMost)));
  if (!share.count) return false;
  const RunConstants& constants = run.line.constants;  // valid: the run does not end before these roots are done
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

/// Notes that the run in `slot` has roots left; `left` of them when last seen, 0: not known. The local work is empty.
FLYWHEEL_TASK inline void keep_ticket(LocalWork& work, std::uint32_t slot, std::uint32_t left) {
  work.roots_slot = static_cast<std::uint16_t>(slot);
  work.roots_left = left;
  work.roots_open = true;
}

/// Finds a run at `level` with roots left. Each worker starts behind the run that it took from last, so that no run is
/// passed over for ever. False if there is none.
template <class P>
FLYWHEEL_TASK bool find_roots(const DeviceState& dev, LocalWork& work, std::uint32_t level) {
  const std::uint32_t words = (dev.run_slots + 63) / 64, start = work.roots_slot + 1u;
  for (std::uint32_t w = 0; w <= words; ++w) {
    const std::uint32_t word = (start / 64 + w) % words;
    // Relaxed: a hint; pairs with open_roots() and close_roots(). take_roots() acquires.
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

/// Takes work at `level`, the most urgent level of the broadcast words; `count` is that level's word. The worker takes
/// a share of the queued tasks or finds a run with roots left; where both wait they take turns. Returns how many tasks
/// it took; 1 for a run with roots, whose number is not known yet.
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
  work.batch_size =
      views.ready(level).pop(guided_share(dev, depth, most_of_share(work, kMost)), work.batch, views.wait(worker));
  return work.batch_size;
}

/// Lets more urgent work and collective runs pass the local work. If a task is queued at a more urgent level, the
/// worker pops it, puts its local work back and returns the task; if other workers took it first, the local work stays.
/// If only roots wait at that level, or all workers are wanted, the worker puts its local work back and returns
/// kEmptyMailbox.
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

/// Whether there are tasks in hand. If not, there may still be roots to take, see LocalWork::roots_open.
FLYWHEEL_TASK inline bool has_tasks(const LocalWork& work) {
  return work.roots_next < work.roots_end || work.batch_next < work.batch_size;
}

/// The next task of the local work, or kEmptyMailbox.
template <class P>
FLYWHEEL_COLD std::uint64_t take_local(const DeviceState& dev, LocalWork& work) {
  for (;;) {
    if (work.roots_next < work.roots_end) return local_roots(work).item(dev, work.roots_next++);
    if (work.batch_next < work.batch_size) return work.batch[work.batch_next++];
    if (!work.roots_open || !take_share<P>(dev, work)) return kEmptyMailbox;
  }
}

}  // namespace flywheel::detail
