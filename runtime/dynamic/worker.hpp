// The loop of one worker: while there is a next task, run it and finish it.
//
// One thread of a worker runs this loop: the leader of the control warp on a GPU (device/kernel.cuh), the worker's
// thread on a CPU (cpu/entry.hpp). An executor (device/executor.cuh, cpu/executor.hpp) runs the task bodies. Each
// function below is one word of the loop.
#pragma once

#include "../records/task_slot.hpp"
#include "finish.hpp"
#include "suspend.hpp"
#include "work_finder.hpp"

namespace flywheel::detail {

// A chain of runs. Both functions are out of line, so that the worker's loop keeps its registers, and what they change lies in
// shared memory on a GPU. `Slot`: the executor's FollowerSlot.

/// While the last task of `run` runs: if that has one follower by now, fetches the follower's task, to be started as soon as
/// this one has ended. `known`: `list` is the run's list of followers; else it is loaded.
template <class P, class Slot>
FLYWHEEL_COLD bool fetch_follower(const DeviceState& dev, std::uint32_t run, std::uint32_t generation, bool known,
                                  std::uint64_t list, PrefetchedTask& ahead, Slot slot) {
  // Acquire, with the fence in expect_follower(): pairs with Enlistment::put_in_front().
  if (!known) list = P::device(dev.runs[run].line.followers).load(P::kBeforeAcquire);
  const ExpectedFollower expected = expect_follower<P>(dev, list, generation);
  if (!expected.there) return false;
  ahead.item = Item::unpack(only_root(dev, expected.constants));
  ahead.slot = slot.slot;
  ahead.done = list;
  ahead.level = expected.constants.priority;
  ahead.task_slot = &slot.fetch(dev, ahead.item.record, expected);
  ahead.runs = true;
  ahead.failed = false;
  ahead.outcome = {};
  return true;
}

/// Ends `run`, whose last task has ended with nothing else to do, and starts `ahead`, the task of the follower that was
/// expected, before the host is told. Not if there are other followers by now, the follower was cancelled, or more urgent work
/// waits. Returns the followers that are to be let in; 0 if it was started.
template <class P, class Slot>
FLYWHEEL_COLD std::uint64_t end_with_follower(const DeviceState& dev, std::uint32_t run, std::uint64_t done,
                                              const PrefetchedTask& ahead, Slot slot) {
  P::release_fence_of_system();  // for close_followers() and report_end()
  const Followers followers = close_followers<P>(dev, run, static_cast<std::uint32_t>(done >> 32), false);
  // Relaxed: a hint, as in copy_line(). It is on its way beside the exchange, and so is what most_urgent_queued() loads.
  const std::uint32_t cancelled = P::device(dev.runs[ahead.item.run].line.cancelled).load(Order::relaxed);
  const std::uint32_t waits_at = most_urgent_queued<P>(dev);
  const bool starts = followers.list == ahead.done && !cancelled && ahead.level <= waits_at;
  if (starts) slot.start(dev, ahead.item);
  report_end<P>(dev, run, done);
  count_end<P>(dev);
  return starts ? 0 : followers.list;
}

/// The worker `id`: its loop over the executor's tasks. `direct_slot` is null, or the direct slot of the worker that
/// shares its block with the inbox poller.
template <class P, class Executor>
class Worker {
 public:
  FLYWHEEL_TASK Worker(const DeviceState& dev, std::uint32_t id, Executor& executor, DirectSlot* direct_slot)
      : dev_(dev),
        executor_(executor),
        id_(id),
        finder_(dev, id, direct_slot, executor.work()),
        finish_(dev, id, executor.work()) {}

  FLYWHEEL_TASK void operator()() {
    sign(WorkerState::present);
    PrefetchedTask task{};
    while (next(task)) {
      run(task);
      finish(task);
    }
    finder_.show_stats();
    sign(WorkerState::absent);
  }

 private:
  // ---- next: the prefetched task, a kept successor, the rest of the local work, or whatever arrives ----

  /// Gets the next task. False if the worker is to leave.
  FLYWHEEL_TASK bool next(PrefetchedTask& task) {
    if (has_ahead_) {
      task = executor_.ahead();
      has_ahead_ = false;
      return true;
    }
    std::uint64_t item = kept();
    if (item == kEmptyMailbox) item = finder_.rest_of_batch();
    if (item == kEmptyMailbox) item = wait_for_item();
    if (item == kEmptyMailbox) return false;
    fetch(item, task);
    return true;
  }

  /// The successor that this worker kept, or kEmptyMailbox. A long chain of kept successors must not delay a collective
  /// run or the end of the launch: one time in kPollsOneIn (on a CPU each time) the worker checks whether all workers
  /// are wanted. If so, it publishes the successor for any worker and returns kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t kept() {
    if (!finish_.has_kept()) {
      kept_in_row_ = 0;
      return kEmptyMailbox;
    }
    const std::uint64_t item = finish_.take_kept();
    ++finder_.stats().kept;
    const bool polls = ++kept_in_row_ % kPollsOneIn == 0 || P::kNearMemory;
    if (!polls || !finder_.is_wanted()) return item;
    const Item task = Item::unpack(item);
    const std::uint32_t own = dev_.records[task.record].header.priority, of_run = dev_.runs[task.run].line.constants.priority;
    publish_items<P>(dev_, id_, 1, level_of(own, of_run), &item);
    return kEmptyMailbox;
  }

  /// Waits for an item; joins collective runs in between. kEmptyMailbox if the worker is to leave.
  FLYWHEEL_TASK std::uint64_t wait_for_item() {
    for (;;) {
      std::uint64_t item = kEmptyMailbox;
      const Found seen = finder_.wait_for_work(item, executor_);
      if (item != kEmptyMailbox) return item;
      if (seen == Found::stop) return kEmptyMailbox;
      if (seen == Found::phased) join_collective_run();
    }
  }

  /// Copies the task's record and its run's line into the executor's next slot, and starts the body unless the task is
  /// to be skipped.
  FLYWHEEL_TASK void fetch(std::uint64_t packed, PrefetchedTask& task) {
    task.item = Item::unpack(packed);
    task.slot = executor_.next_slot();
    const TaskRecord& record = dev_.records[task.item.record];
    const RunConstants* direct_run = finder_.direct_run();
    if constexpr (Executor::kStartsDirectly)
      if (direct_run && executor_.is_started()) return take_over(task);
    task.task_slot = direct_run ? &executor_.fetch_direct(task.slot, record, task.item.record, *direct_run)
                                : &executor_.fetch(task.slot, record, dev_.runs[task.item.run]);
    task.runs = !task.item.skip && !executor_.cancelled();
    task.failed = !task.runs;
    task.outcome = {};
    if (task.runs) executor_.start(task.slot, task.item);
    if (direct_run) executor_.keep_constants(task.slot, *direct_run);  // after start(): bodies do not read them
    if (Executor::kPrefetches) finish_.expect(task, !direct_run);
    finish_.prepare(task);
  }

  /// Takes over a task that the inbox poller has started.
  FLYWHEEL_TASK void take_over(PrefetchedTask& task) {
    finish_.expect(task, false);
    task.task_slot = &executor_.take_started();
    task.runs = true;
    task.failed = false;
    task.outcome = {};
    finish_.prepare(task);
  }

  // ---- run: prefetch the next task while the body runs, then wait for the body ----

  /// Waits for the body, unless the task is skipped, and notes its outcome.
  FLYWHEEL_TASK void run(PrefetchedTask& task) {
    if (!task.runs) {
      ++finder_.stats().skipped;
      return;
    }
    if (Executor::kPrefetches) {
      prefetch_next();
      if (chain_) look_for_follower(task);
    }
    const std::uint64_t item = task.item.pack();
    bool was_slow = false;
    const auto slow = [&](std::uint64_t elapsed_ns) {
      was_slow = true;
      sign(WorkerState::slow, item, elapsed_ns);
    };
    task.outcome = executor_.wait(
        task.slot, slow, [&] { takes_long(task); }, [&] { lasts(); });
    if (was_slow) sign(WorkerState::present);
    ++finder_.stats().tasks;
  }

  /// The body takes longer than a few polls. The worker releases the idle workers it claimed for the successors of this
  /// task and of the prefetched one, so that they do not wait for this body. It also shows progress: the time limit of
  /// a worker that waits for this one in a collective run starts anew, since this worker may have many long tasks
  /// before it joins.
  FLYWHEEL_TASK void takes_long(PrefetchedTask& task) {
    show_progress<P>(dev_, id_);
    finish_.let_go(task);
    if (has_ahead_) finish_.let_go(executor_.ahead());
  }
  /// The body has run for some 20 us. Beside such bodies a read of the broadcast words before each task costs little,
  /// so the worker takes single tasks from now on, and the next kept() checks as well.
  FLYWHEEL_TASK void lasts() {
    finder_.bodies_last();
    kept_in_row_ = kPollsOneIn - 1;
  }

  /// Prefetches the next task and starts it behind the running one; the executor goes over to it by itself. The next
  /// task is a kept successor, else the rest of the local work. Only a worker whose last pop gave it a batch pops more
  /// here, see WorkFinder::had_batch(). A kept successor therefore waits for at most one task that was prefetched
  /// before it.
  FLYWHEEL_TASK void prefetch_next() {
    std::uint64_t item = kEmptyMailbox;
    if (finish_.has_kept()) {
      if (kept_in_row_ % kPollsOneIn == kPollsOneIn - 1) return;  // kept() checks is_wanted()
      ++kept_in_row_;
      ++finder_.stats().kept;
      item = finish_.take_kept();
    } else {
      item = finder_.rest_to_prefetch();
      if (item == kEmptyMailbox && finder_.had_batch()) item = finder_.batch_if_deep();
    }
    has_ahead_ = item != kEmptyMailbox;
    if (has_ahead_) fetch(item, executor_.ahead());
  }

  /// In a chain of runs, when the task that ends its run was started: fetches the task of the follower.
  FLYWHEEL_TASK void look_for_follower(const PrefetchedTask& task) {
    const bool known = chain_ & kListKnown;
    chain_ = 0;
    if (has_ahead_ || !task.ends_run || !dev_.keep_successor) return;
    if (fetch_follower<P>(dev_, task.item.run, static_cast<std::uint32_t>(task.done >> 32), known,
                          known ? task.task_slot->run.followers : 0, executor_.ahead(), executor_.follower_slot()))
      chain_ = kExpects;
  }

  // ---- finish ----

  /// Not with the follower that was expected if kept() is to check is_wanted() before the next task.
  FLYWHEEL_TASK void finish(PrefetchedTask& task) {
    if (chain_ & kExpects) {
      chain_ = 0;
      const bool polls = kept_in_row_ % kPollsOneIn == kPollsOneIn - 1;
      if (!polls && Finisher<P>::only_ends_run(task)) return end_with_follower(task);
    }
    if (finish_(task, has_ahead_ ? executor_.ahead().task_slot : nullptr, [&] { finder_.note_end(); })) chain_ = kChains;
  }

  /// Ends the task's run and goes on with the follower whose task was fetched.
  FLYWHEEL_TASK void end_with_follower(PrefetchedTask& task) {
    PrefetchedTask& ahead = executor_.ahead();
    const Followers left{detail::end_with_follower<P>(dev_, task.item.run, task.done, ahead, executor_.follower_slot()), 0};
    finish_.let_go(task);
    finder_.note_end();
    if (left.first()) return finish_.let_in(left);
    executor_.note_started();
    has_ahead_ = true;
    chain_ = kListKnown;
    ++kept_in_row_;
    ++finder_.stats().kept;
    finish_.expect(ahead, true);
    finish_.prepare(ahead);
  }

  /// Takes part in the phased or compiled run of the announcement, as all workers do. At the end of its part of a phased run
  /// worker 0 speaks for all; of a compiled run its leader has done so in end_compiled().
  FLYWHEEL_TASK void join_collective_run() {
    const std::uint16_t slot = finder_.phased_run();
    const bool is_compiled = dev_.runs[slot].line.constants.flags & kCompiled;
    PhasesEnd end{};
    if (is_compiled) executor_.run_compiled(slot);
    else end = executor_.run_phased(slot);
    sign(WorkerState::present);
    if (!is_compiled && id_ == 0) end_phased<P>(dev_, slot, end);
  }

  /// Writes the worker's heartbeat; beat() names the orders.
  FLYWHEEL_TASK void sign(WorkerState state, std::uint64_t item = 0, std::uint64_t elapsed_ns = 0) const {
    beat<P>(dev_.heartbeats[id_], state, item, elapsed_ns);
  }

  const DeviceState& dev_;
  Executor& executor_;
  std::uint32_t id_;
  WorkFinder<P> finder_;
  Finisher<P> finish_;
  bool has_ahead_ = false;  // executor_.ahead() is the next task
  enum Chain : std::uint32_t {
    kChains = 1,     // the last run that this worker ended had followers
    kListKnown = 2,  // and the followers of the one that runs now are in its task slot
    kExpects = 4,    // executor_.ahead() is the task of a follower, fetched and not started
  };
  std::uint32_t chain_ = 0;
  static constexpr std::uint32_t kPollsOneIn = 64;  // kept successors in a row between two checks of is_wanted()
  std::uint32_t kept_in_row_ = 0;
};

}  // namespace flywheel::detail
