// The executor of a CPU worker: the worker's own thread.
//
// An executor runs task bodies. The worker's loop (dynamic/worker.hpp) fetches a task into a slot, starts it and waits
// for it. On a GPU the compute warps run the body while the loop prefetches the next task; here the body runs inside
// wait().
#pragma once

#include "../dynamic/awaited.hpp"
#include "../dynamic/task_list.hpp"
#include "../records/task_slot.hpp"
#include "compiled.hpp"

namespace flywheel::detail {

template <class P = CpuPlatform>
class CpuExecutor {
 public:
  CpuExecutor(const DeviceState& dev, const CpuTasks<P>& tasks, std::uint32_t worker, unsigned char* scratch)
      : dev_(dev),
        tasks_(tasks),
        worker_(worker),
        scratch_(scratch) {}

  static constexpr bool kPrefetches = false;  // the loop cannot prefetch while this thread runs a body
  static constexpr bool kStartsDirectly = false;

  FLYWHEEL_TASK LocalWork& work() { return work_; }
  FLYWHEEL_TASK PrefetchedTask& ahead() { return ahead_; }
  FLYWHEEL_TASK std::uint32_t next_slot() const { return next_; }

  /// Copies the task's record and its run's line into the slot. copy_line() names the orders.
  FLYWHEEL_TASK const TaskSlot& fetch(std::uint32_t slot, const TaskRecord& record, RunState& run) {
    task_slots_[slot].record = record;
    copy_line<P>(task_slots_[slot].run, run.line);
    return task_slots_[slot];
  }

  /// The same for a run whose constants came over the direct slot. It was admitted just now: nothing else of its line
  /// is set.
  FLYWHEEL_TASK const TaskSlot& fetch_direct(std::uint32_t slot, const TaskRecord& record, std::uint32_t,
                                             const RunConstants& run) {
    task_slots_[slot].record = record;
    task_slots_[slot].run = {run, 0, 0, 0, 0, 0, 0, {}, 0, 0, 0};
    return task_slots_[slot];
  }
  /// For a chain of runs, see serve_chain(). A body runs in has_ended(); if somebody else is to finish the task, wait() only
  /// returns its outcome.
  struct ChainSlots {
    CpuExecutor& executor;

    std::uint32_t running() const { return executor.next_ ^ 1; }
    const TaskSlot& task() const { return executor.task_slots_[running()]; }
    Outcome outcome() const { return executor.contexts_[running()].outcome; }
    bool fetch(const DeviceState& dev, Item item) const {
      executor.fetch(executor.next_, dev.records[item.record], dev.runs[item.run]);
      return !executor.cancelled_or_traced();
    }
    void fetch_expected(const DeviceState& dev, Item item, const RunConstants& run) const {
      executor.task_slots_[executor.next_].record = dev.records[item.record];
      executor.task_slots_[executor.next_].run = {run, 0, 0, 0, 0, 0, 0, {}, 0, 0, 0};
    }
    void start(const DeviceState&, Item item) const { executor.start(executor.next_, item); }
    bool has_ended() const {
      executor.run_body(running());
      return executor.has_run_ = true;
    }
    void take_end() const { executor.has_run_ = false; }
  };
  FLYWHEEL_TASK ChainSlots chain_slots() { return {*this}; }
  FLYWHEEL_TASK void leave_chain(const ChainSlots&) const {}
  /// See finish_with_successors(). A CPU worker awaits nothing: it would take the core from the one that it waits for.
  struct NoAwaiter {
    FLYWHEEL_TASK bool operator()(const PrefetchedTask&) const { return false; }
  };
  FLYWHEEL_TASK NoAwaiter successor_awaiter() { return {}; }
  /// For executors of tests: see SuccessorAwaiter.
  FLYWHEEL_TASK bool await_successors() {
    ChainSlots slots = chain_slots();
    note_turn(work_, AwaitedLoop<P, ChainSlots>(dev_, worker_, work_.epoch, ahead_, slots)());
    return work_.awaited.ended != 0;
  }
  FLYWHEEL_TASK bool take_awaited() const { return work_.awaited.has_next; }
  FLYWHEEL_TASK void keep_constants(std::uint32_t, const RunConstants&) const {}  // fetch_direct() has copied them

  /// Whether the run of the task that was fetched last was cancelled by then, or is traced: start_traced() knows.
  FLYWHEEL_TASK bool cancelled_or_traced() const {
    const RunLine& line = task_slots_[next_].run;
    return (line.cancelled | (line.constants.flags & kTraced)) != 0;
  }

  /// Prepares the task's context; the body runs in wait().
  FLYWHEEL_TASK void start(std::uint32_t slot, Item item) {
    next_ = slot ^ 1;
    const TaskSlot& task_slot = task_slots_[slot];
    contexts_[slot] = {&dev_,   &task_slot.record.header,          dev_.runs + item.run, item,
                       worker_, {0, 0, 0, task_slot.run.iteration}};
  }

  /// In place of start() where cancelled_or_traced() is true: false if the run was cancelled.
  FLYWHEEL_COLD bool start_traced(std::uint32_t slot, Item item) {
    if (!is_traced<P>(dev_.runs[item.run].line)) return false;
    start(slot, item);
    contexts_[slot].outcome = first_outcome(true, task_slots_[slot].run.iteration);
    return true;
  }

  /// Runs the body. The callbacks are for executors whose body runs elsewhere: the first for bodies that take long,
  /// `takes_long` for those of more than a few microseconds, `last` for those of more than some 20. Here only
  /// `takes_long` is called, after the body; the watchdog keeps the time, see begin_body().
  template <class Slow, class Long, class Last>
  FLYWHEEL_TASK Outcome wait(std::uint32_t slot, Slow&&, Long&& takes_long, Last&&) {
    if (!has_run_) run_body(slot);
    has_run_ = false;
    takes_long();
    return contexts_[slot].outcome;
  }

  /// Takes part in the phased run in `run_slot`; returns how it ended.
  FLYWHEEL_TASK PhasesEnd run_phased(std::uint16_t run_slot) {
    RunState& run = dev_.runs[run_slot];
    const bool traced = run.line.constants.flags & kTraced;
    TaskContext context{&dev_, nullptr, &run, {0, run_slot, false}, worker_, first_outcome(traced, 0)};
    CpuWorkerBlock<P> block(tasks_, context, scratch_);
    return run_phases<CatchingTasks>(dev_, run.line, block);
  }

  /// Takes part in the compiled run in `run_slot`.
  FLYWHEEL_TASK void run_compiled(std::uint16_t run_slot) {
    CpuCompiled<P> part(dev_, tasks_, run_slot, worker_, scratch_);
    part();
  }

 private:
  void run_body(std::uint32_t slot) {
    CpuWorkerBlock<P> block(tasks_, contexts_[slot], scratch_);
    const bool traced = contexts_[slot].outcome.stop & kTracedBody;
    if (traced) step_traced<P>(dev_, worker_, kNoLocal, contexts_[slot].outcome.iteration);
    begin_body<P>(dev_.heartbeats[worker_], contexts_[slot].item.pack());
    run_dynamic<CatchingTasks>(task_slots_[slot].record, block);
    end_body<P>(dev_.heartbeats[worker_]);
    if (traced) end_traced<P>(dev_, worker_, task_slots_[slot].record.header, contexts_[slot].outcome.iteration);
  }

  const DeviceState& dev_;
  const CpuTasks<P>& tasks_;
  std::uint32_t worker_;
  unsigned char* scratch_;
  std::uint32_t next_ = 0;
  bool has_run_ = false;  // the body of the task that was started last, see ChainSlots
  LocalWork work_;
  PrefetchedTask ahead_;
  TaskSlot task_slots_[2];
  TaskContext contexts_[2];
};

}  // namespace flywheel::detail
