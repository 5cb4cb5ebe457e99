// The loop of one worker: while there is a next task, run it and finish it.
//
// One thread of a worker runs this loop: the leader of the control warp on a GPU (device/kernel.cuh), the worker's
// thread on a CPU (cpu/entry.hpp). An executor (device/executor.cuh, cpu/executor.hpp) runs the task bodies. Each
// function below is one word of the loop.
#pragma once

#include "../records/task_slot.hpp"
#include "chain.hpp"
#include "suspend.hpp"
#include "work_finder.hpp"

namespace flywheel::detail {

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
    if (!is_due()) return item;
    const Item task = Item::unpack(item);
    const std::uint32_t own = dev_.records[task.record].header.priority, of_run = dev_.runs[task.run].line.constants.priority;
    publish_items<P>(dev_, id_, 1, level_of(own, of_run), &item);
    return kEmptyMailbox;
  }

  /// Counts a successor or follower that this worker goes on with. True if all workers are wanted, as far as it has looked.
  FLYWHEEL_TASK bool is_due() {
    const bool polls = ++kept_in_row_ % kPollsOneIn == 0 || P::kNearMemory;
    return polls && finder_.is_wanted();
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
  /// to be skipped. One test finds both what is cancelled and what is traced.
  FLYWHEEL_TASK void fetch(std::uint64_t packed, PrefetchedTask& task) {
    task.item = Item::unpack(packed);
    task.slot = executor_.next_slot();
    const TaskRecord& record = dev_.records[task.item.record];
    const RunConstants* direct_run = finder_.direct_run();
    if constexpr (Executor::kStartsDirectly)
      if (direct_run && executor_.is_started()) return take_over(task);
    task.task_slot = direct_run ? &executor_.fetch_direct(task.slot, record, task.item.record, *direct_run)
                                : &executor_.fetch(task.slot, record, dev_.runs[task.item.run]);
    task.runs = !task.item.skip && !executor_.cancelled_or_traced();
    task.failed = !task.runs;
    task.outcome = {};
    if (task.runs) {
      executor_.start(task.slot, task.item);
    } else if (!task.item.skip && executor_.start_traced(task.slot, task.item)) {
      task.runs = true;
      task.failed = false;
    }
    if (direct_run) executor_.keep_constants(task.slot, *direct_run);  // after start(): bodies do not read them
    if (Executor::kPrefetches) finish_.expect(task, !direct_run);
    Finisher<P>::prepare(dev_, task);
  }

  /// Takes over a task that the inbox poller has started.
  FLYWHEEL_TASK void take_over(PrefetchedTask& task) {
    finish_.expect(task, false);
    task.task_slot = &executor_.take_started();
    task.runs = true;
    task.failed = false;
    task.outcome = {};
    Finisher<P>::prepare(dev_, task);
  }

  // ---- run: prefetch the next task while the body runs, then wait for the body ----

  /// Waits for the body, unless the task is skipped, and notes its outcome.
  FLYWHEEL_TASK void run(PrefetchedTask& task) {
    if (!task.runs) {
      ++finder_.stats().skipped;
      return;
    }
    if (Executor::kPrefetches) prefetch_next();
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

  // ---- finish ----

  /// If the task has ended a run with followers and the worker keeps the root of one, goes on with that, and with what follows.
  FLYWHEEL_TASK void finish(PrefetchedTask& task) {
    const FinishEnd end = finish_(
        task, has_ahead_ ? executor_.ahead().task_slot : nullptr, [&] { finder_.note_end(); }, executor_.successor_awaiter());
    if (end == FinishEnd::nothing) return;
    if (end == FinishEnd::awaited) {
      has_ahead_ = executor_.take_awaited();  // a task that was started and is not finished
      finish_.keep(executor_.work().awaited.item);
      return;
    }
    if (has_ahead_ || !finish_.has_kept()) return;
    if (is_due()) {
      kept_in_row_ = kPollsOneIn - 1;  // kept() looks again, and gives the follower away
      return;
    }
    const auto turn = serve_chain<P>(dev_, id_, executor_.work(), executor_.ahead(), finder_.direct_slot(),
                                     Item::unpack(finish_.take_kept()), executor_.chain_slots());
    executor_.leave_chain(turn.slots);
    has_ahead_ = turn.started;
    finish_.keep(turn.item);
    finder_.stats().tasks += turn.ended;
    finder_.stats().kept += turn.ended;
  }

  /// Takes part in the phased or compiled run of the announcement, as all workers do. At the end of its part of a phased run
  /// worker 0 speaks for all; of a compiled run its leader has done so in end_compiled().
  FLYWHEEL_TASK void join_collective_run() {
    const std::uint16_t slot = finder_.phased_run();
    const bool is_compiled = dev_.runs[slot].line.constants.flags & kCompiled;
    const std::uint64_t began_ns = P::now_ns();
    PhasesEnd end{};
    if (is_compiled) executor_.run_compiled(slot);
    else end = executor_.run_phased(slot);
    // A run too short for a report of a slow task leaves the heartbeat as it was. On a GPU each word of it crosses PCIe, and
    // the host would see the end 5 us later.
    if (P::kNearMemory || P::now_ns() - began_ns >= kSlowTaskNs) sign(WorkerState::present);
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
  bool has_ahead_ = false;                          // executor_.ahead() is the next task
  static constexpr std::uint32_t kPollsOneIn = 64;  // kept successors in a row between two checks of is_wanted()
  std::uint32_t kept_in_row_ = 0;
};

}  // namespace flywheel::detail
