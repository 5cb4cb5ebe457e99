// The worker: while there is a next task, run it and finish it.
//
// One thread (the leader of the control warp, or a CPU thread) turns this loop; an executor runs the bodies. Each function
// below is one word of the loop.
#pragma once

#include "finish.hpp"
#include "work_finder.hpp"
#include "../records/task_slot.hpp"

namespace flywheel {

template <class P, class Executor>
class Worker {
 public:
  FLYWHEEL_TASK Worker(const DeviceState& dev, std::uint32_t id, Executor& executor, DirectSlot* direct_slot)
      : dev_(dev), executor_(executor), id_(id), finder_(dev, id, direct_slot, executor.work()),
        finish_(dev, id, executor.work()) {}

  FLYWHEEL_TASK void operator()() {
    sign(WorkerState::present);
    PrefetchedTask task{};
    while (next(task)) {
      run(task);
      finish_(task, ahead_);
    }
    finder_.show_stats();
    sign(WorkerState::absent);
  }

 private:
  // ---- next: what was staged ahead, a kept successor, the rest of a batch, or whatever arrives ----

  FLYWHEEL_TASK bool next(PrefetchedTask& task) {
    if (ahead_.live) {
      task = ahead_;
      ahead_.live = false;
      return true;
    }
    std::uint64_t item = kept();
    if (item == kEmptyMailbox) item = finder_.rest_of_batch();
    if (item == kEmptyMailbox) item = wait_for_item();
    if (item == kEmptyMailbox) return false;
    fetch(item, task);
    return true;
  }

  /// A long chain must not keep this worker from a phased run that all the others wait in, nor from the end.
  FLYWHEEL_TASK std::uint64_t kept() {
    if (!finish_.has_kept()) {
      kept_in_row_ = 0;
      return kEmptyMailbox;
    }
    const std::uint64_t item = finish_.take_kept();
    ++finder_.stats().kept;
    const bool polls = ++kept_in_row_ % kLooksOneIn == 0 || P::kNearMemory;
    if (!polls || !finder_.is_wanted()) return item;
    publish_items<P>(dev_, id_, 1, dev_.runs[Item::unpack(item).run].line.constants.priority, &item);
    return kEmptyMailbox;
  }

  FLYWHEEL_TASK std::uint64_t wait_for_item() {
    for (;;) {
      std::uint64_t item = kEmptyMailbox;
      const Found seen = finder_.wait_for_work(item);
      if (seen == Found::item) return item;
      if (seen == Found::stop) return kEmptyMailbox;
      join_collective_run();
    }
  }

  /// Fetches the record and the run's line, and starts the body unless the task is to be skipped.
  FLYWHEEL_TASK void fetch(std::uint64_t packed, PrefetchedTask& task) {
    task.item = Item::unpack(packed);
    task.slot = executor_.next_slot();
    task.live = true;
    const TaskRecord& record = dev_.records[task.item.record];
    const RunConstants* direct_slot = finder_.direct_run();
    if (Executor::kLooksAhead) finish_.expect(task, !direct_slot);
    task.task_slot = direct_slot ? &executor_.fetch_direct(task.slot, record, task.item.record, *direct_slot)
                       : &executor_.fetch(task.slot, record, dev_.runs[task.item.run]);
    task.runs = !task.item.skip && !executor_.cancelled();
    task.failed = !task.runs;
    task.outcome = {};
    if (task.runs) executor_.start(task.slot, task.item);
    if (direct_slot) executor_.keep_constants(task.slot, *direct_slot);  // only now: bodies do not look at them
    finish_.prepare(task);
  }

  // ---- run: look ahead while it runs, wait for it ----

  FLYWHEEL_TASK void run(PrefetchedTask& task) {
    if (!task.runs) {
      ++finder_.stats().skipped;
      return;
    }
    if (Executor::kLooksAhead) look_ahead();
    const std::uint64_t item = task.item.pack();
    bool was_slow = false;
    const auto slow = [&](std::uint64_t elapsed_ns) {
      was_slow = true;
      sign(WorkerState::slow, item, elapsed_ns);
    };
    task.outcome = executor_.wait(task.slot, slow, [&] { takes_long(task); }, [&] { lasts(); });
    if (was_slow) sign(WorkerState::present);
    ++finder_.stats().tasks;
  }

  /// Nobody shall wait for the task's successor, nor for that of the one behind it. Who waits for this worker in a run of all
  /// workers shall know that it gets on: what it has in hand may be many long tasks.
  FLYWHEEL_TASK void takes_long(PrefetchedTask& task) {
    show_progress<P>(dev_, id_);
    finish_.let_go(task);
    if (ahead_.live) finish_.let_go(ahead_);
  }
  /// The body has run for some 20 us: beside that, a look at the broadcast words before each task costs little.
  FLYWHEEL_TASK void lasts() {
    finder_.bodies_last();
    kept_in_row_ = kLooksOneIn - 1;
  }

  /// With a successor kept or a batch in hand the next task can be staged behind the running one: the executor goes over to it by
  /// itself. So a kept successor waits for one task at most that was staged before it. More is popped in advance only by a
  /// worker that found work in the queue before: others have no batch to follow up.
  FLYWHEEL_TASK void look_ahead() {
    std::uint64_t item = kEmptyMailbox;
    if (finish_.has_kept()) {
      if (kept_in_row_ % kLooksOneIn == kLooksOneIn - 1) return;  // kept() sees first whether the worker is wanted
      ++kept_in_row_;
      ++finder_.stats().kept;
      item = finish_.take_kept();
    } else {
      item = finder_.rest_of_batch();
      if (item == kEmptyMailbox && finder_.had_batch()) item = finder_.batch_if_deep();
    }
    if (item != kEmptyMailbox) fetch(item, ahead_);
  }

  /// All workers take part in a phased or compiled run. Of a phased one, worker 0 tells the host when it is over.
  FLYWHEEL_TASK void join_collective_run() {
    const std::uint16_t slot = finder_.phased_run();
    const auto slow = [&](std::uint64_t elapsed_ns, std::uint32_t task = 0) {
      sign(WorkerState::slow, Item{task, slot, false}.pack(), elapsed_ns);
    };
    const bool is_compiled = dev_.runs[slot].line.constants.flags & kCompiled;
    PhasesEnd end{};
    if (is_compiled) executor_.run_compiled(slot, slow);
    else end = executor_.run_phased(slot, slow);
    sign(WorkerState::present);
    if (is_compiled || id_ != 0) return;
    // Not complete: the host fails it, with the report of who gave up.
    if (end.early && P::device(dev_.control->broadcast.abort).load(Order::relaxed)) return;
    RunLine& line = dev_.runs[slot].line;
    P::device(line.iteration).store(end.pass, Order::relaxed);
    complete_run<P>(dev_, line.constants, false);
  }

  FLYWHEEL_TASK void sign(WorkerState state, std::uint64_t item = 0, std::uint64_t elapsed_ns = 0) const {
    beat<P>(dev_.heartbeats[id_], state, item, elapsed_ns);
  }

  const DeviceState& dev_;
  Executor& executor_;
  std::uint32_t id_;
  WorkFinder<P> finder_;
  Finisher<P> finish_;
  PrefetchedTask ahead_{};
  static constexpr std::uint32_t kLooksOneIn = 64;  // successors kept in a row: one look to see whether the worker is wanted
  std::uint32_t kept_in_row_ = 0;
};

}  // namespace flywheel
