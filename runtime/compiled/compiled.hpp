// Running a compiled schedule: what every worker does with its stream of instructions, whoever runs the bodies.
#pragma once

#include "../dynamic/block.hpp"
#include "../dynamic/completion.hpp"
#include "../records/schedule.hpp"
#include "../records/trace.hpp"
#include "../records/device_state.hpp"

namespace flywheel {

/// What a worker knows of a compiled run. Read once as it joins: when it leaves, the run's slot may be in use again.
struct CompiledRun {
  const DeviceState* dev;
  RunState* state;
  Schedule* schedule;
  std::uint64_t* counters;
  WorkerStream stream;       // the worker's
  std::uint64_t passes;      // that the schedule has seen before this run
  std::uint64_t runs;
  std::uint64_t passes_of_all;  // that all compiled runs have gone through before this one
  std::uint64_t gate_base;   // the grid barrier's word as the run began
  std::uint32_t repeat;
  std::uint32_t sinks;
  std::uint32_t slot;
  std::uint32_t worker;
  std::uint32_t traced;
  bool is_leader;               // this worker tells the host
};

/// In RunLine::stop: a sink of this compiled run has voted to end it.
inline constexpr std::uint32_t kStopVoted = 2;

/// Whether the tasks before one are done.
enum class Before : std::uint32_t { done, failed, aborted };

/// One thread of a worker that saw the run on the announcement.
template <class P>
FLYWHEEL_TASK CompiledRun join_compiled(const DeviceState& dev, std::uint16_t slot, std::uint32_t worker) {
  RunState& state = dev.runs[slot];
  const RunConstants& constants = state.line.constants;
  Schedule& schedule = *dev.execs[constants.exec].schedule;
  // Relaxed: the run was let in after the last one's completion, which its leader's store came before.
  const std::uint64_t passes_of_all = P::device(dev.control->compiled_passes.value).load(Order::relaxed);
  return {&dev, &state, &schedule, schedule.counters, schedule.streams[worker], schedule.passes, schedule.runs,
          passes_of_all, state.line.barrier_base, constants.repeat, schedule.sinks, slot, worker, constants.flags & kTraced,
          schedule.leader == worker};
}

/// What words written in pass `pass` of the run are stamped with. Never that of another pass before 2^32 of them went by.
FLYWHEEL_TASK inline std::uint32_t stamp_of(const CompiledRun& run, std::uint32_t pass) {
  return static_cast<std::uint32_t>(run.passes_of_all + pass + 1);
}

namespace detail {
FLYWHEEL_TASK inline std::uint64_t* counter_of(const CompiledRun& run, std::uint32_t counter) {
  return run.counters + std::size_t{counter} * kCounterStride;
}

/// Looks at each counter that an instruction waits for until look(counter, goal, saw) is true. False if the runtime was
/// aborted.
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
}  // namespace detail

/// Where an instruction's task tells that it has sent; null if nobody waits for it.
FLYWHEEL_TASK inline std::uint64_t* sent_word(const CompiledRun& run, const Instruction& instruction) {
  return instruction.signal == kNoCounter ? nullptr : detail::counter_of(run, instruction.signal) + kSentWord;
}
/// One thread of a task, when it has put all its stamped words: successors that begin early may look for them.
template <class P>
FLYWHEEL_TASK void signal_sent(std::uint64_t* word) {
  // Relaxed: a hint. It may well be seen before the words, which their stamps tell.
  if (word) P::device(*word).add(1, Order::relaxed);
}

/// Waits until all of an early task's predecessors on other workers have sent, or are done. Of those that failed some are
/// known: the rest show in wait_before().
/// Tried with Llama-3.2-1B on an H200: two looks on their way at once, 0.702 ms a token in place of 0.691; going on when most
/// of them have sent, and looking again at words that have not come, 0.733 in place of 0.725.
template <class P, class Idle>
FLYWHEEL_TASK Before wait_sent(const CompiledRun& run, const Instruction& instruction, std::uint32_t pass, Idle&& idle) {
  bool failed = false;
  const auto look = [&](std::uint64_t* counter, std::uint64_t goal, std::uint64_t& saw) {
    idle();
    const std::uint64_t sent = P::device(counter[kSentWord]).load(Order::relaxed);  // pairs with signal_sent()
    saw = P::device(*counter).load(Order::relaxed);
    failed |= (saw & ~kArrivals) != 0;
    return failed || sent >= goal || (saw & kArrivals) >= goal;  // once one has failed, nothing more need be known
  };
  if (!detail::wait_for_counters<P>(run, instruction, pass, look)) return Before::aborted;
  return failed ? Before::failed : Before::done;
}

/// Waits until all of a task's predecessors on other workers are done. A failure among them, however far back, shows in
/// one of the counters; one on the same worker is the caller's to remember.
/// `idle()` is called between looks, and says whether the worker has something else to do. Then nobody is in a hurry, and
/// a look is no acquire: on a GPU each of those empties the L1 cache under the feet of the SM's other warps.
template <class P, class Idle>
FLYWHEEL_TASK Before wait_before(const CompiledRun& run, const Instruction& instruction, std::uint32_t pass, Idle&& idle) {
  bool failed = false;
  const auto look = [&](std::uint64_t* counter, std::uint64_t goal, std::uint64_t& saw) {
    const auto there = [&](Order order) {
      saw = P::device(*counter).load(order);
      return (saw & kArrivals) >= goal;
    };
    const bool done = (!idle() || there(Order::relaxed)) && there(Order::acquire);  // pairs with the release in settle()
    failed |= (saw & ~kArrivals) != 0;
    return done;
  };
  if (!detail::wait_for_counters<P>(run, instruction, pass, look)) return Before::aborted;
  return failed ? Before::failed : Before::done;
}

/// One thread, when a task and all it wrote is done (`failed`: it was skipped, or code says why it failed): tells those
/// who wait for it. A sink tells the gate, and whether the run is to end there.
template <class P>
FLYWHEEL_TASK void signal_done(const CompiledRun& run, const Instruction& instruction, std::uint32_t pass, const Outcome& outcome,
                          bool failed) {
  if (outcome.code) record_fault<P>(*run.state, outcome.code, instruction.record.header.local);
  if (outcome.stop) P::device(run.state->line.stop).set(1, Order::relaxed);  // a sink after this task will see it
  failed |= outcome.code != 0;
  // The others of its gang may wait for it in vain: block.cancelled() tells them. Release: the cause is recorded before.
  if (failed && instruction.flags & kInGang) P::device(run.state->line.cancelled).store(1, Order::release);
  if (instruction.flags & kSink) {
    RunLine& line = run.state->line;
    // Relaxed: stop and fault were acquired with the waits of this sink; a cancellation is seen now or a pass later.
    const bool ends = failed || P::device(line.stop).load(Order::relaxed) || P::device(line.fault).load(Order::relaxed) ||
                      P::device(line.cancelled).load(Order::relaxed);
    // One sink votes for all: there may be more of them than a field of votes can count.
    const bool votes = ends && !(P::device(line.stop).fetch_or(kStopVoted, Order::relaxed) & kStopVoted);
    P::release_fence();  // pairs with the acquire in GridBarrier::wait(): what this pass wrote, for the next
    const GridBarrier<P> gate{&run.dev->control->barrier.value, run.sinks};
    gate.arrive(std::uint64_t{pass} + 1, votes);
  } else if (instruction.signal != kNoCounter) {
    // Release: pairs with the acquire in wait_before(). Arrivals are read-modify-writes, so the waiter that sees the
    // last of them synchronises with all.
    P::device(*detail::counter_of(run, instruction.signal)).add(failed ? 1 + kFailedSignal : 1, Order::release);
  }
  show_progress<P>(*run.dev, run.worker);
}

/// Waits for the end of `passes` passes: a pass begins when all sinks of the one before are done.
template <class P, class Idle>
FLYWHEEL_TASK Meeting wait_at_gate(const CompiledRun& run, std::uint32_t passes, Idle&& idle) {
  const GridBarrier<P> gate{&run.dev->control->barrier.value, run.sinks};
  return gate.wait(run.gate_base, passes, Views<P>{*run.dev}.wait_for_phase(run.worker), idle);
}

/// One thread of each worker, when nothing of the worker touches the run any more.
template <class P>
FLYWHEEL_TASK void leave_compiled(const CompiledRun& run) {
  // Release: pairs with the leader's acquire in end_compiled(), who then writes what join_compiled() read.
  P::device(run.schedule->left).add(1, Order::release);
}

/// The leader, after the last pass and its own leave_compiled(): leaves the schedule ready for its next run and tells
/// the host.
template <class P>
FLYWHEEL_COLD void end_compiled(const CompiledRun& run, std::uint32_t passes) {
  const std::uint64_t all = (run.runs + 1) * run.dev->workers;
  const PhaseWait limit = Views<P>{*run.dev}.wait_for_phase(run.worker);
  const bool alone = spin_until<P>(limit, WaitReason::workers_to_leave, &run.schedule->left, all,
                                   [&](std::uint64_t& saw) {
    saw = P::device(run.schedule->left).load(Order::acquire);  // pairs with leave_compiled()
    return saw >= all;
  });
  if (!alone) return;
  RunLine& line = run.state->line;
  if (P::device(line.fault).load(Order::relaxed))
    for (std::uint32_t c = 0; c < run.schedule->counter_count; ++c) {
      std::uint64_t* counter = detail::counter_of(run, c);
      // Failures of this run are none of the next, and what a skipped task did not send is not missed for ever.
      const std::uint64_t arrivals = P::device(*counter).fetch_and(kArrivals, Order::relaxed) & kArrivals;
      P::device(counter[kSentWord]).store(arrivals, Order::relaxed);
    }
  run.schedule->passes = run.passes + passes;
  P::device(run.dev->control->compiled_passes.value).store(run.passes_of_all + passes, Order::relaxed);
  run.schedule->runs = run.runs + 1;
  P::device(line.iteration).store(passes - 1, Order::relaxed);
  complete_run<P>(*run.dev, line.constants, false);  // its release covers the lines above
}

/// Where a worker's part of a run ended.
struct StreamEnd {
  std::uint32_t passes;  // that it went through
  bool aborted;
};

/// One worker's share of a run: `step(instruction index, pass)` takes the next instruction and is false to leave at
/// once. Only the leader, who has a sink, waits for the end of the last pass.
template <class P, class Idle, class Step>
FLYWHEEL_TASK StreamEnd follow_stream(const CompiledRun& run, TraceWriter<P>& writer, Idle&& idle, Step&& step) {
  if (!run.stream.count) return {0, false};
  for (std::uint32_t pass = 0;; ++pass) {
    const bool last = pass == run.repeat;
    if (pass && (run.is_leader || !last)) {
      const std::uint64_t begin = writer.now();
      const Meeting meeting = wait_at_gate<P>(run, pass, idle);
      writer.write(TraceKind::gate, begin, 0, pass);
      if (meeting != Meeting::go_on) return {pass, meeting == Meeting::aborted};
    }
    if (last) return {pass, false};
    for (std::uint32_t i = 0; i < run.stream.count; ++i)
      if (!step(i, pass)) return {pass, true};
  }
}

}  // namespace flywheel
