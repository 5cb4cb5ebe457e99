// Phased runs: all workers take part in each phase and cross a boundary, the grid barrier, between phases. GpuBlock
// (device/block.cuh) and CpuBlock (cpu/block.hpp) include this header; the executors call run_phases().
#pragma once

#include "../dynamic/suspend.hpp"
#include "../records/task_slot.hpp"
#include "operands.hpp"

namespace flywheel::detail {

/// What a boundary is: a grid_sync() in a body, the end of a phase, or the end of the last phase of a pass.
enum class Boundary : std::uint32_t { grid_sync, phase, pass };

/// The boundaries of one kind that a worker has come to.
struct BoundaryCount {
  std::uint64_t* word;  // of a grid barrier
  std::uint64_t base;   // the word when the run, or this part of it, began
  std::uint64_t count;  // boundaries since then
};

/// A worker's state in a phased run: the boundaries that it has come to, and its next vote. The thread that goes to the
/// grid barrier keeps it in registers.
///
/// Calls of grid_sync() have a word of their own. So a worker that comes to the end of a phase while others wait in
/// grid_sync(), because its body has called it less often, is not taken for one of them: see MeetingWait.
struct PhaseClock {
  std::uint32_t workers;   // that arrive at each boundary
  BoundaryCount ends;      // of phases and passes
  BoundaryCount meetings;  // calls of grid_sync()
  std::uint32_t local;     // graph-local index of the task that runs or ran last, for reports
  bool stop_now;           // vote at the next boundary: a task here failed
  bool stop_after_pass;    // vote at the end of the pass: a task here called stop()
  std::uint32_t steps;     // odd while a task of this worker runs; another number for each task

  template <class P>
  FLYWHEEL_TASK static PhaseClock of(const TaskContext& context) {
    ControlWords& control = *context.dev->control;
    RunLine& line = context.run->line;
    // Relaxed: pairs with note_outcome(). A run that was suspended within a pass still stops after it.
    const bool stops = P::device(line.stop).load(Order::relaxed) & kStopCalled;
    return {context.dev->workers,
            {&control.barrier.value, line.barrier_base, 0},
            {&control.meetings.value, line.meeting_base, 0},
            0,
            false,
            stops,
            0};
  }
  FLYWHEEL_TASK std::uint32_t begin_step() { return steps = (steps + 2) | 1; }
  FLYWHEEL_TASK std::uint32_t end_step() { return steps = (steps + 1) & ~1u; }
};

/// One thread, after a task body: notes what the body asked for. In dynamic runs the finisher does so.
template <class P>
FLYWHEEL_TASK void note_outcome(TaskContext& context, PhaseClock& clock) {
  const Outcome outcome = context.outcome;
  if (!outcome.code && !outcome.stop) return;
  if (outcome.code) record_fault<P>(*context.run, outcome.code, clock.local);
  // Relaxed: pairs with is_suspension() and PhaseClock::of(); this worker's next arrival releases it.
  if (outcome.stop) P::device(context.run->line.stop).set(kStopCalled, Order::relaxed);
  clock.stop_now |= outcome.code != 0;
  clock.stop_after_pass |= outcome.stop != 0;
  context.outcome.code = context.outcome.stop = 0;
}

/// What is asked of a phased run from outside.
enum AskBits : std::uint32_t {
  kAskedToStop = 1,     // at the next boundary: it was cancelled
  kAskedToSuspend = 2,  // at the next boundary that is no grid_sync()
};
/// Worker 0 reads it from the run's line: workers would see it at different times, so only this one votes for it. On a GPU
/// that is a trip to L2, which the control thread makes from time to time, see control_phased_run().
template <class P>
FLYWHEEL_TASK std::uint32_t asked_of(RunLine& line) {
  // Relaxed, both: pair with MessageHandler::cancel() and ask_to_suspend(). Only the values count; they are seen now or some
  // boundaries later.
  const std::uint32_t cancelled = P::device(line.cancelled).load(Order::relaxed);
  const std::uint32_t stop = P::device(line.stop).load(Order::relaxed);
  return (cancelled ? kAskedToStop : 0u) | (stop & kSuspendAsked ? kAskedToSuspend : 0u);
}

/// The wait in grid_sync(). It is given up if the others will not come.
template <class P>
class MeetingWait {
 public:
  FLYWHEEL_TASK MeetingWait(const PhaseWait& most, const PhaseClock& of) : limit(most), clock(of) {}
  const PhaseWait limit;
  const PhaseClock& clock;

  /// Whether each worker waits either at this meeting or at the end of the phase. While not all have come to the meeting no
  /// worker leaves it, but for this reason; so whoever was at the end before has left it out.
  FLYWHEEL_TASK bool gives_up() const {
    // The end first, for that reason. Both acquire: so the fault of a worker that is there comes before ours.
    const std::uint32_t ended = barrier_of(clock.ends).arrived(clock.ends.base, clock.ends.count + 1);
    const std::uint32_t met = barrier_of(clock.meetings).arrived(clock.meetings.base, clock.meetings.count);
    return met < clock.workers && met + ended >= clock.workers;
  }

 private:
  FLYWHEEL_TASK GridBarrier<P> barrier_of(const BoundaryCount& count) const { return {count.word, clock.workers}; }
};

/// One thread of each worker crosses the next boundary: arrives, votes to stop if it has a reason, and waits. False if
/// the run ends or is suspended here. `asked`: AskBits, of worker 0; 0 of the others.
template <class P>
FLYWHEEL_TASK bool cross_boundary(TaskContext& context, PhaseClock& clock, Boundary boundary, std::uint32_t asked) {
  const Outcome outcome = context.outcome;  // plain: written before a barrier of the block
  // Release fence, for arrive(): pairs with the acquire in GridBarrier::wait() of the others; covers what this worker wrote.
  // It does not have to wait for the load above.
  P::release_fence();
  BoundaryCount& here = boundary == Boundary::grid_sync ? clock.meetings : clock.ends;
  const GridBarrier<P> barrier{here.word, clock.workers};
  ++here.count;
  // One test for all: each instruction between fence and arrival is one that all workers wait for.
  if (!(outcome.code | outcome.stop | asked | clock.stop_now | clock.stop_after_pass)) [[likely]] {
    barrier.arrive(here.count, false);
  } else {
    if (outcome.code || outcome.stop) {
      note_outcome<P>(context, clock);
      P::release_fence();  // again: covers the fault, for worker 0, which reports it
    }
    const bool votes = clock.stop_now || (asked & kAskedToStop) || (boundary == Boundary::pass && clock.stop_after_pass) ||
                       (boundary != Boundary::grid_sync && (asked & kAskedToSuspend));
    barrier.arrive(here.count, votes);
  }
  const PhaseWait limit = Views<P>{*context.dev}.wait_for_phase(context.worker);
  if (boundary != Boundary::grid_sync) return barrier.wait(here.base, here.count, limit) == BarrierResult::go_on;
  const MeetingWait<P> meeting{limit, clock};
  const BarrierResult result = barrier.wait(here.base, here.count, meeting);
  if (result == BarrierResult::aborted && meeting.gives_up()) {
    record_fault<P>(*context.run, static_cast<std::uint32_t>(Status::grid_sync_missed), clock.local);
    clock.stop_now = true;  // the vote at the end of the phase, for which the others wait
  }
  return result == BarrierResult::go_on;
}

/// All threads of the block: this worker's share of one phase.
template <class List, class Block>
FLYWHEEL_TASK void run_phase(const TaskRecord* records, const Phase& phase, Block& block) {
  const std::uint32_t step = phase.grid ? phase.count : block.workers();
  const std::uint32_t first = phase.grid ? 0 : block.worker();
  for (std::uint32_t t = first; t < phase.count; t += step) {
    if (t != first) block.get_on();
    List::run(block.load(records[phase.first + t]), block);
  }
}

/// After the last boundary, if nothing has ended the run early: for blocks that have end_phases().
template <class Block>
FLYWHEEL_TASK void end_phases(Block& block) {
  if constexpr (requires { block.end_phases(); }) block.end_phases();
}

/// All threads of the block: the phased run, from its begin or from where it was suspended. It ends early, for all workers at
/// the same boundary, if it was cancelled, a task failed or asked to stop, it is to be suspended, or the runtime was aborted.
/// What is read after a boundary is a local copy: after the last one the run may be over and its slot in use again.
template <class List, class Block>
FLYWHEEL_TASK PhasesEnd run_phases(const DeviceState& dev, const RunLine& line, Block& block) {
  const RunConstants& run = line.constants;
  const ExecRecord exec = dev.execs[run.exec];
  const TaskRecord* records = dev.records + run.first_record;
  const std::uint32_t repeat = run.repeat, first_pass = line.resume.pass;
  std::uint32_t first_phase = line.resume.phase;
  block.begin_phases();
  if (run.flags & kPack) {
    pack_stream<List>(exec.schedule->streams[block.worker()], block);
    const bool through = block.boundary(Boundary::pass);
    if (through) end_phases(block);
    return {0, !through, true, 0};
  }
  for (std::uint32_t pass = first_pass; pass < repeat; ++pass) {
    block.begin_pass(pass);
    for (std::uint32_t p = first_phase; p < exec.phase_count; ++p) {
      run_phase<List>(records, exec.phases[p], block);
      const bool last = p + 1 == exec.phase_count;
      if (!block.boundary(last ? Boundary::pass : Boundary::phase)) return {pass, true, last, p + 1};
    }
    first_phase = 0;
  }
  end_phases(block);
  return {repeat - 1, false, true, 0};
}

}  // namespace flywheel::detail
