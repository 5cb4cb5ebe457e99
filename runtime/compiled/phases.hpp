// Phased runs: all workers take part in each phase and cross a boundary, the grid barrier, between phases. The executors call
// run_phases(); in the run that packs operands, pack_operands(). device/collectives.cuh and cpu/block.hpp include it.
#pragma once

#include "../dynamic/suspend.hpp"
#include "../dynamic/traced.hpp"
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
  std::uint32_t local;     // graph-local index of the task that runs or ran last, for reports; kNoLocal: none has so far
  bool stop_now;           // vote at the next boundary: a task here failed
  bool stop_after_pass;    // vote at the end of the pass: a task here called stop()
  FirstPoll first_poll;

  template <class P>
  FLYWHEEL_TASK static PhaseClock of(const TaskContext& context) {
    ControlWords& control = *context.dev->control;
    RunLine& line = context.run->line;
    // Relaxed: pairs with note_outcome(). A run that was suspended within a pass still stops after it.
    const bool stops = P::device(line.stop).load(Order::relaxed) & kStopCalled;
    return {context.dev->workers,
            {&control.barrier.value, line.barrier_base, 0},
            {&control.meetings.value, line.meeting_base, 0},
            kNoLocal,
            false,
            stops,
            {FirstPoll::kBegin, 0}};
  }
};

/// What the context of a worker's part of a phased run, or of a traced task, begins with.
FLYWHEEL_TASK constexpr Outcome first_outcome(bool traced, std::uint32_t iteration) {
  return {0, 0, traced ? std::uint32_t{kTracedBody} : 0, iteration};
}

/// One thread, after a task body: notes what the body asked for, in a traced run also that the next body begins. In dynamic
/// runs the finisher does so.
template <class P>
FLYWHEEL_TASK void note_outcome(TaskContext& context, PhaseClock& clock) {
  const Outcome outcome = context.outcome;
  if (!outcome.code && !outcome.stop) return;
  if (outcome.stop & kTracedBody) step_traced<P>(*context.dev, context.worker, clock.local, outcome.iteration);
  if (outcome.code) record_fault<P>(*context.run, outcome.code, clock.local);
  // Relaxed: pairs with is_suspension() and PhaseClock::of(); this worker's next arrival releases it.
  if (outcome.stop & kStopCalled) P::device(context.run->line.stop).set(kStopCalled, Order::relaxed);
  clock.stop_now |= outcome.code != 0;
  clock.stop_after_pass |= (outcome.stop & kStopCalled) != 0;
  context.outcome.code = 0;
  context.outcome.stop = outcome.stop & kTracedBody;
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

/// Whether each worker waits either at this meeting or at the end of the phase. While not all have come to the meeting no
/// worker leaves it, but for this reason; so whoever was at the end before has left it out. Out of line: rarely run code
/// between a worker's arrival and its going on costs each boundary time (0.025 us in all, see device/tuning.md).
template <class P>
FLYWHEEL_COLD bool gives_up_meeting(std::uint32_t workers, BoundaryCount ends, BoundaryCount meetings) {
  // The end first, for that reason. Both acquire: so the fault of a worker that is there comes before ours.
  const std::uint32_t ended = GridBarrier<P>{ends.word, workers}.arrived(ends.base, ends.count + 1);
  const std::uint32_t met = GridBarrier<P>{meetings.word, workers}.arrived(meetings.base, meetings.count);
  return met < workers && met + ended >= workers;
}

/// The wait in grid_sync(). It is given up if the others will not come.
template <class P>
class MeetingWait {
 public:
  FLYWHEEL_TASK MeetingWait(const PhaseWait& most, const PhaseClock& of) : limit(most), clock(of) {}
  const PhaseWait limit;
  const PhaseClock& clock;

  FLYWHEEL_TASK bool gives_up() const { return gives_up_meeting<P>(clock.workers, clock.ends, clock.meetings); }
};

/// What a worker's own reasons to stop have become.
struct Votes {
  bool stop_now, stop_after_pass;
};
/// Where a task of this worker has failed or asked to stop. Out of line, as above.
template <class P>
FLYWHEEL_COLD Votes note_votes(TaskContext& context, std::uint32_t local, Votes votes) {
  PhaseClock clock{0, {}, {}, local, votes.stop_now, votes.stop_after_pass, {}};
  note_outcome<P>(context, clock);
  P::release_fence();  // again: covers the fault, for worker 0, which reports it
  return {clock.stop_now, clock.stop_after_pass};
}
template <class P>
FLYWHEEL_COLD void note_missed_meeting(TaskContext& context, std::uint32_t local) {
  record_fault<P>(*context.run, static_cast<std::uint32_t>(Status::grid_sync_missed), local);
}

/// How a boundary of a traced run was crossed.
struct TracedCrossing {
  PhaseClock clock;
  bool go_on;
};
template <class P, bool kMayTrace = true>
FLYWHEEL_TASK bool cross_boundary(TaskContext& context, PhaseClock& clock, Boundary boundary, std::uint32_t asked);

/// cross_boundary() in a traced run: writes what has ended before the arrival. Behind a grid_sync() the run goes on,
/// since this worker has yet to come to the end of the phase: so there the meeting is written at once. By value: the clock of a
/// run that is not traced stays in registers.
template <class P>
FLYWHEEL_COLD TracedCrossing cross_traced(TaskContext& context, PhaseClock clock, Boundary boundary, std::uint32_t asked) {
  const bool inside = boundary == Boundary::grid_sync;
  const std::uint64_t now = P::ticks();
  const std::uint32_t pass = context.outcome.iteration;
  if (!inside) come_traced<P>(*context.dev, context.worker, clock.local, pass);
  context.outcome.stop &= kStopCalled;
  const bool go_on = cross_boundary<P, false>(context, clock, boundary, asked);
  context.outcome.stop |= kTracedBody;
  if (inside && go_on) write_span<P>(*context.dev, context.worker, TraceKind::meeting, now, P::ticks(), clock.local, pass);
  if (!inside) clock.local = kNoLocal;
  return {clock, go_on};
}

/// One thread of each worker crosses the next boundary: arrives, votes to stop if it has a reason, and waits. False if
/// the run ends or is suspended here. `asked`: AskBits, of worker 0; 0 of the others. `kMayTrace`: false in cross_traced().
template <class P, bool kMayTrace>
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
    if (kMayTrace && outcome.stop & kTracedBody) {
      --here.count;
      const TracedCrossing crossing = cross_traced<P>(context, clock, boundary, asked);
      clock = crossing.clock;
      return crossing.go_on;
    }
    if (outcome.code || outcome.stop) {
      const Votes own = note_votes<P>(context, clock.local, {clock.stop_now, clock.stop_after_pass});
      clock.stop_now = own.stop_now;
      clock.stop_after_pass = own.stop_after_pass;
    }
    const bool votes = clock.stop_now || (asked & kAskedToStop) || (boundary == Boundary::pass && clock.stop_after_pass) ||
                       (boundary != Boundary::grid_sync && (asked & kAskedToSuspend));
    barrier.arrive(here.count, votes);
  }
  const PhaseWait limit = Views<P>{*context.dev}.wait_for_phase(context.worker);
  if (boundary != Boundary::grid_sync)
    return barrier.wait(here.base, here.count, limit, clock.first_poll) == BarrierResult::go_on;
  const MeetingWait<P> meeting{limit, clock};
  const BarrierResult result = barrier.wait(here.base, here.count, meeting, clock.first_poll);
  if (result == BarrierResult::go_on) [[likely]]
    return true;
  if (result == BarrierResult::aborted && meeting.gives_up()) {
    note_missed_meeting<P>(context, clock.local);
    clock.stop_now = true;  // the vote at the end of the phase, for which the others wait
  }
  return false;
}

/// After the last boundary, if nothing has ended the run early: for blocks that have end_phases().
template <class Block>
FLYWHEEL_TASK void end_phases(Block& block) {
  if constexpr (requires { block.end_phases(); }) block.end_phases();
}

/// A worker's way through a phased run, from its begin or from where it was suspended: its tasks, one after the other, and the
/// boundaries between phases. All threads of the block make the same calls. Task i of a phase is worker i % workers's; that
/// of a grid phase is everyone's.
///
/// The run ends early, for all workers at the same boundary, if it was cancelled, a task failed or asked to stop, it is to be
/// suspended, or the runtime was aborted. What is read after a boundary is a local copy: after the last one the run may be over
/// and its slot in use again.
class PhasedTasks {
 public:
  template <class Block>
  FLYWHEEL_TASK void begin(const DeviceState& dev, const RunLine& line, Block& block) {
    const RunConstants& run = line.constants;
    const ExecRecord& exec = dev.execs[run.exec];
    records_ = dev.records + run.first_record;
    phases_ = exec.phases;
    phase_count_ = exec.phase_count;
    repeat_ = run.repeat;
    pass_ = line.resume.pass;
    phase_ = line.resume.phase;
    block.begin_phases();
    if (pass_ >= repeat_) return;  // it was suspended at its last boundary
    block.begin_pass(pass_);
    look_ahead(block, phase_);
    begin_phase(block);
  }

  /// The one task of block.alone(), and no boundary.
  template <class Block>
  FLYWHEEL_TASK void begin_alone(Block& block) {
    if constexpr (Block::kOnGpu) {
      records_ = &block.alone();
      block.read_record(*records_);
      count_ = step_ = 1;
      is_first_ = true;
    }
  }

  /// The next task's record, as block.load() gives it. Null at the run's end.
  template <class Block>
  FLYWHEEL_TASK const TaskRecord* next(Block& block) {
    while (task_ >= count_)
      if (!cross(block)) return nullptr;
    if (!is_first_) block.get_on();
    const TaskRecord& record = block.load(records_[first_ + task_], is_first_);
    is_first_ = false;
    task_ += step_;
    return &record;
  }
  FLYWHEEL_TASK PhasesEnd end() const { return end_; }

 private:
  /// Goes on to the next phase, or to the end. False if the run ends here.
  template <class Block>
  FLYWHEEL_TASK bool cross(Block& block) {
    if (pass_ >= repeat_) {
      end_phases(block);
      end_ = {repeat_ - 1, false, true, 0};
      return false;
    }
    const bool last = phase_ + 1 == phase_count_, ends = last && pass_ + 1 == repeat_;
    if (!ends) look_ahead(block, last ? 0 : phase_ + 1);
    if (!block.boundary(last ? Boundary::pass : Boundary::phase)) {
      end_ = {pass_, true, last, phase_ + 1};
      return false;
    }
    task_ = count_ = 0;
    phase_ = last ? 0 : phase_ + 1;
    pass_ += last;
    if (ends) return true;
    if (last) block.begin_pass(pass_);
    begin_phase(block);
    return true;
  }
  /// Reads what a phase begins with, ahead of the boundary before it: loaded graphs do not change.
  template <class Block>
  FLYWHEEL_TASK void look_ahead(Block& block, std::uint32_t phase) {
    ahead_ = phases_[phase];
    const std::uint32_t task = ahead_.grid ? 0 : block.worker();
    if constexpr (Block::kOnGpu)
      if (task < ahead_.count) block.read_record(records_[ahead_.first + task]);
  }
  template <class Block>
  FLYWHEEL_TASK void begin_phase(const Block& block) {
    first_ = ahead_.first;
    count_ = ahead_.count;
    step_ = ahead_.grid ? count_ : block.workers();
    task_ = ahead_.grid ? 0 : block.worker();
    is_first_ = true;
  }

  const TaskRecord* records_ = nullptr;
  const Phase* phases_ = nullptr;
  std::uint32_t phase_count_ = 0, repeat_ = 0, pass_ = 0, phase_ = 0;
  std::uint32_t first_ = 0, count_ = 0;  // the phase's records
  std::uint32_t task_ = 0, step_ = 0;    // of this worker: its next one, and from one to the next
  bool is_first_ = false;                // of this worker's tasks in the phase
  Phase ahead_{};                        // the next phase
  PhasesEnd end_{};
};

/// Where the phases of a phased run begin, for who looks ahead of the workers. A copy: when all phases have been looked at, or
/// if there are none, the run may be over and its slot in use again.
struct PhasesBegin {
  std::uint32_t exec, first_record;
  std::uint32_t pass, repeat, phase;

  FLYWHEEL_TASK static PhasesBegin of(const RunLine& line) {
    const RunConstants& run = line.constants;
    return {run.exec, run.first_record, line.resume.pass, run.flags & kPack ? 0 : run.repeat, line.resume.phase};
  }
  FLYWHEEL_TASK bool is_over() const { return pass >= repeat; }
};

/// These phases, in order.
class PhaseCursor {
 public:
  FLYWHEEL_TASK PhaseCursor(const DeviceState& dev, const PhasesBegin& begin) : exec_(dev.execs[begin.exec]), at_(begin) {}

  FLYWHEEL_TASK bool is_over() const { return at_.is_over(); }
  FLYWHEEL_TASK Phase phase() const { return exec_.phases[at_.phase]; }
  FLYWHEEL_TASK std::uint32_t pass() const { return at_.pass; }
  FLYWHEEL_TASK std::uint32_t number() const { return at_.phase; }
  /// Of its pass, and of the run.
  FLYWHEEL_TASK bool is_last() const { return at_.phase + 1 == exec_.phase_count; }
  FLYWHEEL_TASK bool is_last_of_all() const { return is_last() && at_.pass + 1 == at_.repeat; }
  FLYWHEEL_TASK void next() {
    if (++at_.phase < exec_.phase_count) return;
    at_.phase = 0;
    ++at_.pass;
  }

 private:
  const ExecRecord exec_;
  PhasesBegin at_;
};

/// All threads of the block: writes the constant operands of a compiled graph that is being loaded.
template <class List, class Block>
FLYWHEEL_TASK PhasesEnd pack_operands(const DeviceState& dev, const RunLine& line, Block& block) {
  block.begin_phases();
  pack_stream<List>(dev.execs[line.constants.exec].schedule->streams[block.worker()], block);
  const bool through = block.boundary(Boundary::pass);
  if (through) end_phases(block);
  return {0, !through, true, 0};
}

/// All threads of the block: the phased run. Or, on a GPU, a traced task of a dynamic run: it takes this way, which is beside
/// that of all other tasks, and the kernel has no bodies more for it.
template <class List, class Block>
FLYWHEEL_TASK PhasesEnd run_phases(const DeviceState& dev, const RunLine& line, Block& block) {
  const std::uint32_t kind = line.constants.flags & (kPack | kPhased);
  if (kind == (kPack | kPhased)) return pack_operands<List>(dev, line, block);
  PhasedTasks tasks;
  if (kind == kPhased) tasks.begin(dev, line, block);
  else tasks.begin_alone(block);
  while (const TaskRecord* const record = tasks.next(block)) List::run(*record, block);
  return tasks.end();
}

}  // namespace flywheel::detail
