// The worker: while there is a next task, run it and finish it.
//
// One thread (the leader of the control warp, or a CPU thread) turns this loop; a crew runs the bodies. Each function
// below is one word of the loop.
#pragma once

#include "runtime/dynamic/finish.hpp"
#include "runtime/dynamic/look.hpp"
#include "runtime/records/stage.hpp"

namespace flywheel {

template <class P, class Crew>
class Worker {
 public:
  FLYWHEEL_TASK Worker(const World& world, std::uint32_t id, Crew& crew, Porch* porch)
      : world_(world), crew_(crew), id_(id), look_(world, id, porch, crew.desk()),
        finish_(world, id, crew.desk()) {}

  FLYWHEEL_TASK void operator()() {
    sign(WorkerState::present);
    Staged task{};
    while (next(task)) {
      run(task);
      finish_(task, ahead_);
    }
    look_.show_stats();
    sign(WorkerState::absent);
  }

 private:
  // ---- next: what was staged ahead, a kept successor, the rest of a batch, or whatever arrives ----

  FLYWHEEL_TASK bool next(Staged& task) {
    if (ahead_.live) {
      task = ahead_;
      ahead_.live = false;
      return true;
    }
    std::uint64_t item = kept();
    if (item == kEmptyMailbox) item = look_.rest_of_batch();
    if (item == kEmptyMailbox) item = wait_for_item();
    if (item == kEmptyMailbox) return false;
    stage(item, task);
    return true;
  }

  /// A long chain must not keep this worker from a phased run that all the others wait in, nor from the end.
  FLYWHEEL_TASK std::uint64_t kept() {
    if (!finish_.has_kept()) {
      kept_in_row_ = 0;
      return kEmptyMailbox;
    }
    const std::uint64_t item = finish_.take_kept();
    ++look_.stats().kept;
    const bool looks = ++kept_in_row_ % kLooksOneIn == 0 || P::kNearMemory;
    if (!looks || !look_.is_wanted()) return item;
    publish_items<P>(world_, id_, 1, world_.runs[Item::unpack(item).run].line.constants.priority, &item);
    return kEmptyMailbox;
  }

  FLYWHEEL_TASK std::uint64_t wait_for_item() {
    for (;;) {
      std::uint64_t item = kEmptyMailbox;
      const Seen seen = look_.until_something(item);
      if (seen == Seen::item) return item;
      if (seen == Seen::stop) return kEmptyMailbox;
      join_run_of_all();
    }
  }

  /// Fetches the record and the run's line, and starts the body unless the task is to be skipped.
  FLYWHEEL_TASK void stage(std::uint64_t packed, Staged& task) {
    task.item = Item::unpack(packed);
    task.slot = crew_.next_slot();
    task.live = true;
    const TaskRecord& record = world_.records[task.item.record];
    const RunConstants* porch = look_.porch_run();
    if (Crew::kLooksAhead) finish_.expect(task, !porch);
    task.stage = porch ? &crew_.stage_porch(task.slot, record, task.item.record, *porch)
                       : &crew_.stage(task.slot, record, world_.runs[task.item.run]);
    task.runs = !task.item.skip && !crew_.cancelled();
    task.failed = !task.runs;
    task.asked = {};
    if (task.runs) crew_.start(task.slot, task.item);
    if (porch) crew_.keep_constants(task.slot, *porch);  // only now: bodies do not look at them
    finish_.prepare(task);
  }

  // ---- run: look ahead while it runs, wait for it ----

  FLYWHEEL_TASK void run(Staged& task) {
    if (!task.runs) {
      ++look_.stats().skipped;
      return;
    }
    if (Crew::kLooksAhead) look_ahead();
    const std::uint64_t item = task.item.pack();
    bool was_slow = false;
    const auto slow = [&](std::uint64_t elapsed_ns) {
      was_slow = true;
      sign(WorkerState::slow, item, elapsed_ns);
    };
    task.asked = crew_.wait(task.slot, slow, [&] { takes_long(task); }, [&] { lasts(); });
    if (was_slow) sign(WorkerState::present);
    ++look_.stats().tasks;
  }

  /// Nobody shall wait for the task's successor, nor for that of the one behind it. Who waits for this worker in a run of all
  /// workers shall know that it gets on: what it has in hand may be many long tasks.
  FLYWHEEL_TASK void takes_long(Staged& task) {
    show_progress<P>(world_, id_);
    finish_.let_go(task);
    if (ahead_.live) finish_.let_go(ahead_);
  }
  /// The body has run for some 20 us: beside that, a look at the board before each task costs little.
  FLYWHEEL_TASK void lasts() {
    look_.bodies_last();
    kept_in_row_ = kLooksOneIn - 1;
  }

  /// With a successor kept or a batch in hand the next task can be staged behind the running one: the crew goes over to it by
  /// itself. So a kept successor waits for one task at most that was staged before it. More is popped in advance only by a
  /// worker that found work in the queue before: others have no batch to follow up.
  FLYWHEEL_TASK void look_ahead() {
    std::uint64_t item = kEmptyMailbox;
    if (finish_.has_kept()) {
      if (kept_in_row_ % kLooksOneIn == kLooksOneIn - 1) return;  // kept() sees first whether the worker is wanted
      ++kept_in_row_;
      ++look_.stats().kept;
      item = finish_.take_kept();
    } else {
      item = look_.rest_of_batch();
      if (item == kEmptyMailbox && look_.had_batch()) item = look_.batch_if_deep();
    }
    if (item != kEmptyMailbox) stage(item, ahead_);
  }

  /// All workers take part in a phased or compiled run. Of a phased one, worker 0 tells the host when it is over.
  FLYWHEEL_TASK void join_run_of_all() {
    const std::uint16_t slot = look_.phased_run();
    const auto slow = [&](std::uint64_t elapsed_ns, std::uint32_t task = 0) {
      sign(WorkerState::slow, Item{task, slot, false}.pack(), elapsed_ns);
    };
    const bool is_compiled = world_.runs[slot].line.constants.flags & kCompiled;
    PhasesEnd end{};
    if (is_compiled) crew_.run_compiled(slot, slow);
    else end = crew_.run_phased(slot, slow);
    sign(WorkerState::present);
    if (is_compiled || id_ != 0) return;
    // Not complete: the host fails it, with the report of who gave up.
    if (end.early && P::device(world_.control->board.abort).load(Order::relaxed)) return;
    RunLine& line = world_.runs[slot].line;
    P::device(line.iteration).store(end.pass, Order::relaxed);
    complete_run<P>(world_, line.constants, false);
  }

  FLYWHEEL_TASK void sign(WorkerState state, std::uint64_t item = 0, std::uint64_t elapsed_ns = 0) const {
    beat<P>(world_.heartbeats[id_], state, item, elapsed_ns);
  }

  const World& world_;
  Crew& crew_;
  std::uint32_t id_;
  Lookout<P> look_;
  Finisher<P> finish_;
  Staged ahead_{};
  static constexpr std::uint32_t kLooksOneIn = 64;  // successors kept in a row: one look to see whether the worker is wanted
  std::uint32_t kept_in_row_ = 0;
};

}  // namespace flywheel
