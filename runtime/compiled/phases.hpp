// Phased runs: all workers take part in each phase and cross a boundary, the grid barrier, between phases. GpuBlock
// (device/block.cuh) and CpuBlock (cpu/block.hpp) include this header; the executors call run_phases().
#pragma once

#include "../dynamic/completion.hpp"
#include "../records/task_slot.hpp"
#include "operands.hpp"

namespace flywheel::detail {

/// A worker's state in a phased run: the boundaries that it has come to, and its next vote. The thread that goes to the
/// grid barrier keeps it in registers.
struct PhaseClock {
  std::uint64_t* word;       // the grid barrier's
  std::uint32_t workers;     // that arrive there
  std::uint64_t base;        // the word when the run began
  std::uint64_t boundaries;  // boundaries so far
  std::uint32_t local;       // graph-local index of the task that runs or ran last, for reports
  bool checks;               // worker 0, which checks for cancellation
  bool stop_now;             // vote at the next boundary: a task here failed, or worker 0 saw a cancellation
  bool stop_after_pass;      // vote at the end of the pass: a task here called stop()
  std::uint32_t steps;       // odd while a task of this worker runs; another number for each task

  template <class P>
  FLYWHEEL_TASK static PhaseClock of(const TaskContext& context) {
    const GridBarrier<P> barrier = Views<P>{*context.dev}.barrier();
    return {barrier.word, barrier.workers, context.run->line.barrier_base, 0, 0, context.worker == 0, false, false, 0};
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
  clock.stop_now |= outcome.code != 0;
  clock.stop_after_pass |= outcome.stop != 0;
  context.outcome.code = context.outcome.stop = 0;
}

/// One thread of each worker crosses the next boundary: arrives, votes to stop if it has a reason, and waits. False if
/// the run ends here. Workers would see a cancellation at different times, so only worker 0 votes for it. It reads the
/// word once in kChecksOneIn boundaries, since a read is a trip to L2.
template <class P>
FLYWHEEL_TASK bool cross_boundary(TaskContext& context, PhaseClock& clock, bool end_of_pass) {
  constexpr std::uint64_t kChecksOneIn = 8;
  const Outcome outcome = context.outcome;  // plain: written before a barrier of the block
  // Release fence, for arrive(): what this worker wrote, for the acquire in GridBarrier::wait() of the others. It does
  // not have to wait for the load above.
  P::release_fence();
  if (outcome.code || outcome.stop) {
    note_outcome<P>(context, clock);
    P::release_fence();  // again: covers the fault, for worker 0, which reports it
  }
  const GridBarrier<P> barrier{clock.word, clock.workers};
  barrier.arrive(++clock.boundaries, clock.stop_now || (end_of_pass && clock.stop_after_pass));
  // Relaxed: pairs with MessageHandler::cancel(). Only the value counts; it is seen now or some boundaries later.
  if (clock.checks && clock.boundaries % kChecksOneIn == 1)
    clock.stop_now |= P::device(context.run->line.cancelled).load(Order::relaxed) != 0;
  const PhaseWait limit = Views<P>{*context.dev}.wait_for_phase(context.worker);
  return barrier.wait(clock.base, clock.boundaries, limit) == BarrierResult::go_on;
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

/// All threads of the block: the whole phased run. It ends early, for all workers at the same boundary, if it was
/// cancelled, a task failed or asked to stop, or the runtime was aborted. What is read after a boundary is a local
/// copy: after the last one the run may be over and its slot in use again.
template <class List, class Block>
FLYWHEEL_TASK PhasesEnd run_phases(const DeviceState& dev, const RunConstants& run, Block& block) {
  const ExecRecord exec = dev.execs[run.exec];
  const TaskRecord* records = dev.records + run.first_record;
  const std::uint32_t repeat = run.repeat;
  block.begin_phases();
  if (run.flags & kPack) {
    pack_stream<List>(exec.schedule->streams[block.worker()], block);
    const bool through = block.boundary(true);
    if (through) end_phases(block);
    return {0, !through};
  }
  for (std::uint32_t pass = 0; pass < repeat; ++pass) {
    block.begin_pass(pass);
    for (std::uint32_t p = 0; p < exec.phase_count; ++p) {
      run_phase<List>(records, exec.phases[p], block);
      if (!block.boundary(p + 1 == exec.phase_count)) return {pass, true};
    }
  }
  end_phases(block);
  return {repeat - 1, false};
}

}  // namespace flywheel::detail
