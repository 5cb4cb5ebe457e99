// Running a compiled schedule: what each worker does with its stream of instructions, on any processor. The roles of a
// GPU worker (device/compiled/control.cuh) and the CPU worker (cpu/compiled.hpp) call these functions: join_compiled(), then
// follow_stream() with wait_before() and signal_done() for each instruction, leave_compiled() and, on the leader,
// end_compiled().
#pragma once

#include "../dynamic/block.hpp"
#include "../dynamic/suspend.hpp"
#include "../records/device_state.hpp"
#include "../records/schedule.hpp"
#include "../records/trace.hpp"

namespace flywheel::detail {

/// A worker's copy of what it needs of a compiled run. Filled as the worker joins: when it leaves, the run's slot may
/// be in use again.
struct CompiledRun {
  const DeviceState* dev;
  RunState* state;
  Schedule* schedule;
  std::uint64_t* counters;
  WorkerStream stream;          // this worker's
  std::uint64_t passes;         // of the schedule, before this run
  std::uint64_t runs;           // of the schedule, before this run or this part of it
  std::uint64_t passes_of_all;  // of all compiled runs before this one
  std::uint64_t gate_base;      // the grid barrier's word when the run began
  std::uint32_t first_pass;     // of this part of the run: 0 unless it was suspended
  std::uint32_t repeat;         // passes of this run
  std::uint32_t sinks;          // arrivals at the gate in a pass
  std::uint32_t slot;           // the run's
  std::uint32_t worker;
  std::uint32_t traced;  // not 0: the run writes a trace
  std::uint32_t warps;   // not 0: so many warps of the worker follow a stream of their own, `stream` is the first
  bool is_leader;        // this worker tells the host of the end
  bool bare;             // no task has parts, operands or an early begin
};

/// What became of the tasks that an instruction's task waits for.
enum class Before : std::uint32_t { done, failed, aborted };

/// Joins the compiled run in `slot`, at its begin or where it was suspended: one thread of a worker that has acquired the
/// announcement. A suspension has written back what an end would, so the counts "before this run" are those of now, less the
/// passes that the run has behind it.
template <class P>
FLYWHEEL_TASK CompiledRun join_compiled(const DeviceState& dev, std::uint16_t slot, std::uint32_t worker) {
  RunState& state = dev.runs[slot];
  const RunConstants& constants = state.line.constants;
  Schedule& schedule = *dev.execs[constants.exec].schedule;
  // Relaxed: pairs with the store in end_compiled() of the previous compiled run, which came before that run's
  // completion; the host submits the next collective run only then. The plain words came with the announcement.
  const std::uint64_t passes_of_all = P::device(dev.control->compiled_passes.value).load(Order::relaxed);
  const std::uint32_t first_pass = state.line.resume.pass;
  return {&dev,
          &state,
          &schedule,
          schedule.counters,
          schedule.streams[worker],
          schedule.passes - first_pass,
          schedule.runs,
          passes_of_all - first_pass,
          state.line.barrier_base,
          first_pass,
          constants.repeat,
          schedule.sinks,
          slot,
          worker,
          constants.flags & kTraced,
          schedule.warps,
          schedule.leader % dev.workers == worker,
          schedule.bare != 0};
}

/// The stamp of words written in pass `pass` of the run. No other pass has it until 2^32 passes have gone by.
FLYWHEEL_TASK inline std::uint32_t stamp_of(const CompiledRun& run, std::uint32_t pass) {
  return static_cast<std::uint32_t>(run.passes_of_all + pass + 1);
}

FLYWHEEL_TASK inline std::uint64_t* counter_of(const CompiledRun& run, std::uint32_t counter) {
  return run.counters + std::size_t{counter} * kCounterStride;
}

/// For each counter that the instruction waits for: polls until look(counter, goal, saw) is true. `goal` is what the
/// counter holds after this pass. False if the runtime was aborted.
template <class P, class Look>
FLYWHEEL_TASK bool wait_for_counters(const CompiledRun& run, const Instruction& instruction, std::uint32_t pass, Look&& look) {
  const PhaseWait limit = Views<P>{*run.dev}.wait_for_phase(run.worker);
  for (std::uint32_t i = 0; i < instruction.wait_count; ++i) {
    std::uint64_t* counter = counter_of(run, instruction.waits[i].counter);
    const std::uint64_t goal = (run.passes + pass + 1) * instruction.waits[i].arrivals;
    const bool there = spin_until<P>(limit, WaitReason::predecessors, counter, goal,
                                     [&](std::uint64_t& saw) { return look(counter, goal, saw); });
    if (!there) return false;
  }
  return true;
}

/// The word on which an instruction's task signals that it has sent; null if no task waits for it.
FLYWHEEL_TASK inline std::uint64_t* sent_word(const CompiledRun& run, const Instruction& instruction) {
  return instruction.signal == kNoCounter ? nullptr : counter_of(run, instruction.signal) + kSentWord;
}

/// One thread of a task, when the task has stored all its stamped words: early successors may poll for them now.
template <class P>
FLYWHEEL_TASK void signal_sent(std::uint64_t* word) {
  // Relaxed: a hint, pairs with wait_sent(). It may become visible before the words; each word's stamp tells whether it
  // is there.
  if (word) P::device(*word).add(1, Order::relaxed);
}

/// Waits until all of an early task's predecessors on other workers have sent, or are done. `failed`: one of them is
/// known to have failed; further failures show in wait_before(). `idle()` is called before each poll. Two polls under way
/// at once were slower, and so was going on before all have sent: see tuning.md.
template <class P, class Idle>
FLYWHEEL_TASK Before wait_sent(const CompiledRun& run, const Instruction& instruction, std::uint32_t pass, Idle&& idle) {
  bool failed = false;
  const auto look = [&](std::uint64_t* counter, std::uint64_t goal, std::uint64_t& saw) {
    idle();
    // Both relaxed: hints, pair with signal_sent() and signal_done(). The stamped words need no order; wait_before()
    // acquires.
    const std::uint64_t sent = P::device(counter[kSentWord]).load(Order::relaxed);
    saw = P::device(*counter).load(Order::relaxed);
    failed |= (saw & ~kArrivals) != 0;
    return failed || sent >= goal || (saw & kArrivals) >= goal;  // after one failure the rest does not matter
  };
  if (!wait_for_counters<P>(run, instruction, pass, look)) return Before::aborted;
  return failed ? Before::failed : Before::done;
}

/// Waits until all of a task's predecessors on other workers are done. A failure among them, however far back, shows in
/// one of the counters; a failure on the same worker the caller has to remember.
/// `idle()` is called before each poll and says whether the worker has other work. If so, the poll is relaxed and the
/// acquire comes when the count is there: on a GPU each acquire empties the L1 cache that the SM's other warps use.
template <class P, class Idle>
FLYWHEEL_TASK Before wait_before(const CompiledRun& run, const Instruction& instruction, std::uint32_t pass, Idle&& idle) {
  bool failed = false;
  const auto look = [&](std::uint64_t* counter, std::uint64_t goal, std::uint64_t& saw) {
    // Acquire: pairs with the release in signal_done(). A relaxed poll before it only saves acquires.
    const auto there = [&](Order order) {
      saw = P::device(*counter).load(order);
      return (saw & kArrivals) >= goal;
    };
    const bool done = (!idle() || there(Order::relaxed)) && there(Order::acquire);
    failed |= (saw & ~kArrivals) != 0;
    return done;
  };
  if (!wait_for_counters<P>(run, instruction, pass, look)) return Before::aborted;
  return failed ? Before::failed : Before::done;
}

/// The rare part of signal_done(): records a failure, a vote to stop, and cancels the gang of a failed task.
template <class P>
FLYWHEEL_COLD void record_outcome(const CompiledRun& run, const Instruction& instruction, const Outcome& outcome, bool failed) {
  if (outcome.code) record_fault<P>(*run.state, outcome.code, instruction.record.header.local);
  // Relaxed: pairs with the loads of the sinks in signal_done(); this task's own release there goes before their acquire.
  if (outcome.stop) P::device(run.state->line.stop).set(kStopCalled, Order::relaxed);
  // Tasks of the same gang may wait in vain for this one while they run: block.cancelled() tells them. Release: pairs with
  // the acquire there, so the cause is recorded before what a task that it stops records.
  if (failed && instruction.flags & kInGang) P::device(run.state->line.cancelled).store(1, Order::release);
}

/// One thread, when a task and all that it wrote is done: signals the tasks that wait for it. A sink arrives at the
/// gate instead and votes on whether the run ends with this pass. `failed`: the task was skipped, or one before it
/// failed; outcome.code: why it failed itself, or 0.
template <class P>
FLYWHEEL_TASK void signal_done(const CompiledRun& run, const Instruction& instruction, std::uint32_t pass,
                               const Outcome& outcome, bool failed) {
  failed |= outcome.code != 0;
  if (failed || outcome.stop) record_outcome<P>(run, instruction, outcome, failed);
  if (instruction.flags & kSink) {
    RunLine& line = run.state->line;
    // Relaxed: `stop` and `fault` were acquired with the waits of this sink. `cancelled` pairs with the store in
    // record_outcome() and with MessageHandler::cancel(), and kSuspendAsked in `stop` with ask_to_suspend(); they are seen now
    // or in a later pass. Joined with |: the three loads go out together.
    const bool ends = failed | ((P::device(line.stop).load(Order::relaxed) | P::device(line.fault).load(Order::relaxed) |
                                 P::device(line.cancelled).load(Order::relaxed)) != 0);
    // One sink votes for all, since there may be more sinks than a field of votes can count. Relaxed: only the
    // atomicity counts; the vote itself goes with the arrival.
    const bool votes = ends && !(P::device(line.stop).fetch_or(kStopVoted, Order::relaxed) & kStopVoted);
    // Release fence, for arrive(): pairs with the acquire in GridBarrier::wait(). What this pass wrote goes to the next
    // one.
    P::release_fence();
    const GridBarrier<P> gate{&run.dev->control->barrier.value, run.sinks};
    gate.arrive(std::uint64_t{pass} + 1, votes);
  } else if (instruction.signal != kNoCounter) {
    // Release: pairs with the acquire in wait_before(). All arrivals are read-modify-writes, so a waiter that sees the
    // last of them synchronises with all.
    P::device(*counter_of(run, instruction.signal)).add(failed ? 1 + kFailedSignal : 1, Order::release);
  }
  show_progress<P>(*run.dev, run.worker);
}

/// Waits at the gate, the grid barrier between passes, until `passes` passes are over. A pass begins when all sinks of
/// the one before are done. GridBarrier::wait() acquires what they wrote.
template <class P, class Idle>
FLYWHEEL_TASK BarrierResult wait_at_gate(const CompiledRun& run, std::uint32_t passes, Idle&& idle) {
  const GridBarrier<P> gate{&run.dev->control->barrier.value, run.sinks};
  return gate.wait(run.gate_base, passes, Views<P>{*run.dev}.wait_for_phase(run.worker), idle);
}

/// One thread of each worker, when nothing of the worker uses the run any more.
template <class P>
FLYWHEEL_TASK void leave_compiled(const CompiledRun& run) {
  // Release: pairs with the leader's acquire in end_compiled(), which then overwrites what join_compiled() has read.
  P::device(run.schedule->left).add(1, Order::release);
}

/// The leader, after the last pass of this part and its own leave_compiled(): waits for all workers to leave, prepares the
/// schedule for its next run or part, and tells the host unless the run is suspended. `passes`: of the run so far.
template <class P>
FLYWHEEL_COLD void end_compiled(const CompiledRun& run, std::uint32_t passes) {
  const std::uint64_t all = (run.runs + 1) * run.dev->workers;
  const PhaseWait limit = Views<P>{*run.dev}.wait_for_phase(run.worker);
  const bool alone = spin_until<P>(limit, WaitReason::workers_to_leave, &run.schedule->left, all, [&](std::uint64_t& saw) {
    saw = P::device(run.schedule->left).load(Order::acquire);  // acquire: pairs with leave_compiled()
    return saw >= all;
  });
  if (!alone) return;
  RunLine& line = run.state->line;
  const bool suspended = passes < run.repeat && is_suspension<P>(line, true);
  // All relaxed: the other workers have left, and what they stored was acquired above. The release in complete_run()
  // publishes the stores to the host, and through it to the next run's wait_before() and join_compiled().
  if (P::device(line.fault).load(Order::relaxed))
    for (std::uint32_t c = 0; c < run.schedule->counter_count; ++c) {
      std::uint64_t* counter = counter_of(run, c);
      // Failures of this run do not count for the next, and the sent words make up for the tasks that were skipped.
      const std::uint64_t arrivals = P::device(*counter).fetch_and(kArrivals, Order::relaxed) & kArrivals;
      P::device(counter[kSentWord]).store(arrivals, Order::relaxed);
    }
  run.schedule->passes = run.passes + passes;
  P::device(run.dev->control->compiled_passes.value).store(run.passes_of_all + passes, Order::relaxed);
  run.schedule->runs = run.runs + 1;
  if (suspended) return suspend_run<P>(*run.dev, line, {passes, 0});
  leave_collective<P>(*run.dev);
  P::device(line.iteration).store(passes - 1, Order::relaxed);
  const Followers followers = complete_run<P>(*run.dev, line.constants, false);  // releases all of the above
  if (followers.first()) let_followers_in<P>(*run.dev, run.worker, followers, 0);
}

/// How a worker's part of a run ended.
struct StreamEnd {
  std::uint32_t passes;  // that the run has behind it
  bool aborted;
};

/// One worker's part of a run. step(i, pass) does instruction i of the stream and returns false to leave at once.
/// Between passes the worker waits at the gate; also before the first pass of a resumed run, where the gate is open. After the
/// last pass only the leader does, which has a sink and tells the host.
template <class P, class Idle, class Step>
FLYWHEEL_TASK StreamEnd follow_stream(const CompiledRun& run, TraceWriter<P>& writer, Idle&& idle, Step&& step) {
  if (!run.stream.count) return {0, false};
  for (std::uint32_t pass = run.first_pass;; ++pass) {
    const bool last = pass == run.repeat;
    if (pass && (run.is_leader || !last)) {
      const std::uint64_t begin = writer.now();
      const BarrierResult result = wait_at_gate<P>(run, pass, idle);
      writer.write(TraceKind::gate, begin, 0, pass);
      if (result != BarrierResult::go_on) return {pass, result == BarrierResult::aborted};
    }
    if (last) return {pass, false};
    for (std::uint32_t i = 0; i < run.stream.count; ++i)
      if (!step(i, pass)) return {pass, true};
  }
}

}  // namespace flywheel::detail
