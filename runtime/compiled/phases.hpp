// Phased runs: all workers take part in each phase and meet at the grid barrier between phases.
#pragma once

#include "operands.hpp"
#include "../dynamic/completion.hpp"
#include "../records/task_slot.hpp"

namespace flywheel {

/// Where a worker stands among the meetings of the phased run it takes part in, and what it will vote. Kept in
/// registers by the thread that goes to the meetings.
struct PhaseClock {
  std::uint64_t* word;   // of the grid barrier
  std::uint32_t workers; // who meet there
  std::uint64_t base;    // what the word was when the run began
  std::uint64_t meets;   // so far
  std::uint32_t local;   // the task that runs or ran last, for reports
  bool looks;            // worker 0, who looks for cancellations
  bool stop_now;         // a task of this worker failed, or worker 0 saw a cancellation: stop at the next boundary
  bool stop_after_pass;  // a task of this worker called stop(): everybody stops at the end of the pass
  std::uint32_t steps;   // odd while a task of this worker runs, each time another number

  template <class P>
  FLYWHEEL_TASK static PhaseClock of(const TaskContext& context) {
    const GridBarrier<P> barrier = Views<P>{*context.dev}.barrier();
    return {barrier.word, barrier.workers, context.run->line.barrier_base, 0, 0, context.worker == 0, false, false, 0};
  }
  FLYWHEEL_TASK std::uint32_t begin_step() { return steps = (steps + 2) | 1; }
  FLYWHEEL_TASK std::uint32_t end_step() { return steps = (steps + 1) & ~1u; }
};

/// One thread, after a task body: takes note of what it asked for. Phased runs have no finisher to do so.
template <class P>
FLYWHEEL_TASK void note_outcome(TaskContext& context, PhaseClock& clock) {
  const Outcome outcome = context.outcome;
  if (!outcome.code && !outcome.stop) return;
  if (outcome.code) record_fault<P>(*context.run, outcome.code, clock.local);
  clock.stop_now |= outcome.code != 0;
  clock.stop_after_pass |= outcome.stop != 0;
  context.outcome.code = context.outcome.stop = 0;
}

/// One thread of each worker joins the next meeting. Whoever has a reason to stop votes; cancellation, which workers
/// would see at different times, is worker 0's to vote: it looks once in kLooks meetings, for a look is a trip to L2.
template <class P>
FLYWHEEL_TASK bool meet(TaskContext& context, PhaseClock& clock, bool end_of_pass) {
  constexpr std::uint64_t kLooks = 8;
  const Outcome outcome = context.outcome;  // plain: the bodies that write it are behind a barrier of the block
  P::release_fence();                 // which the look at it does not have to wait for
  if (outcome.code || outcome.stop) {
    note_outcome<P>(context, clock);
    P::release_fence();  // of the fault, for worker 0 who reports it
  }
  const GridBarrier<P> barrier{clock.word, clock.workers};
  barrier.arrive(++clock.meets, clock.stop_now || (end_of_pass && clock.stop_after_pass));
  if (clock.looks && clock.meets % kLooks == 1)  // relaxed: seen now or some boundaries later
    clock.stop_now |= P::device(context.run->line.cancelled).load(Order::relaxed) != 0;
  const PhaseWait limit = Views<P>{*context.dev}.wait_for_phase(context.worker);
  return barrier.wait(clock.base, clock.meets, limit) == Meeting::go_on;
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

/// After the last boundary, if nothing has ended the run before.
template <class Block>
FLYWHEEL_TASK void end_phases(Block& block) {
  if constexpr (requires { block.end_phases(); }) block.end_phases();
}

/// All threads of the block run the whole phased run. It ends early, for all workers at the same boundary, when it
/// was cancelled, a task failed, a task asked to stop, or the runtime was aborted. Everything read after a
/// boundary is a local copy: at the last one the run may be over, and its slot in use again, before we look.
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

}  // namespace flywheel
