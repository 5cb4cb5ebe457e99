// The worker: while there is a next task, run it and finish it.
//
// One control warp (or CPU thread) turns this loop; a crew runs the bodies. Each function below is one word of the
// loop. "Collective" holds throughout: all lanes of P call, and all come to the same decisions.
#pragma once

#include "runtime/finish.hpp"
#include "runtime/look.hpp"

namespace flywheel {

template <class P, class Crew>
class Worker {
 public:
  FLYWHEEL_TASK Worker(const World& world, std::uint32_t id, Crew& crew, Porch* porch)
      : world_(world), crew_(crew), id_(id), look_(world, id, porch), finish_(world, id), stats_(world.stats + id) {}

  FLYWHEEL_TASK void operator()() {
    sign(WorkerState::present);
    Staged task{};
    while (next(task)) {
      run(task);
      finish(task);
    }
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
    std::uint64_t item = finish_.take_kept();
    if (item == kEmptyMailbox) item = look_.rest_of_batch();
    if (item == kEmptyMailbox) item = wait_for_item();
    if (item == kEmptyMailbox) return false;
    task = stage(item);
    return true;
  }

  FLYWHEEL_TASK std::uint64_t wait_for_item() {
    for (;;) {
      std::uint64_t item = kEmptyMailbox;
      const Seen seen = look_.until_something(item);
      if (seen == Seen::item) return item;
      if (seen == Seen::stop) return kEmptyMailbox;
      join_phases();
    }
  }

  // ---- run: start it, look ahead while it runs, wait for it ----

  FLYWHEEL_TASK void run(Staged& task) {
    if (!task.runs) return;
    look_ahead();
    const std::uint64_t item = task.item.pack();
    bool was_slow = false;
    task.outcome = crew_.wait(task.slot, [&](std::uint64_t elapsed_ns) {
      was_slow = true;
      sign(WorkerState::slow, item, elapsed_ns);
    });
    if (was_slow) sign(WorkerState::present);
    if (P::lane() == 0) bump(stats_->tasks);
  }

  /// With a batch in hand the next task can be staged behind the running one: the crew goes over to it by itself.
  FLYWHEEL_TASK void look_ahead() {
    std::uint64_t item = look_.rest_of_batch();
    if (item == kEmptyMailbox) item = look_.batch_if_deep();
    if (item != kEmptyMailbox) ahead_ = stage(item);
  }

  FLYWHEEL_TASK Staged stage(std::uint64_t packed) {
    Staged task{};
    task.item = Item::unpack(packed);
    task.slot = crew_.next_slot();
    task.live = true;
    RunState& run = world_.runs[task.item.run];
    std::uint32_t cancelled = 0, iteration = 0;
    if (P::lane() == 0) {
      cancelled = P::device(run.cancelled).load(Order::relaxed);
      iteration = P::device(run.iteration).load(Order::relaxed);
    }
    task.header = crew_.stage(task.slot, world_.records[task.item.record]).header;
    task.edge = finish_.fetch_edge(task.header, P::lane());
    task.runs = !task.item.skip && !P::broadcast(cancelled);
    task.failed = !task.runs;
    if (task.runs) {
      crew_.start(task.slot, task.item, P::broadcast(iteration));
    } else if (P::lane() == 0) {
      bump(stats_->skipped);
    }
    return task;
  }

  // ---- finish: tell the successors, or the run ----

  FLYWHEEL_TASK void finish(const Staged& task) { finish_(task); }

  /// All workers take part in a phased run; worker 0 tells the host when it is over.
  FLYWHEEL_TASK void join_phases() {
    const std::uint16_t slot = look_.phased_run();
    const std::uint32_t passes = crew_.run_phased(slot, [&](std::uint64_t elapsed_ns) {
      sign(WorkerState::slow, Item{0, slot, false}.pack(), elapsed_ns);
    });
    sign(WorkerState::present);
    if (id_ == 0 && P::lane() == 0) {
      P::device(world_.runs[slot].iteration).store(passes ? passes - 1 : 0, Order::relaxed);
      complete_run<P>(world_, slot);
    }
    P::converge();
  }

  FLYWHEEL_TASK void bump(std::uint64_t& counter) const { P::device(counter).store(counter + 1, Order::relaxed); }

  FLYWHEEL_TASK void sign(WorkerState state, std::uint64_t item = 0, std::uint64_t elapsed_ns = 0) const {
    if (P::lane() == 0) beat<P>(world_.heartbeats[id_], state, item, elapsed_ns);
  }

  const World& world_;
  Crew& crew_;
  std::uint32_t id_;
  Lookout<P> look_;
  Finisher<P> finish_;
  WorkerStats* stats_;
  Staged ahead_{};
};

}  // namespace flywheel
