// Phased runs: all workers take part in each phase and meet at the grid barrier between phases.
#pragma once

#include "runtime/completion.hpp"
#include "runtime/task_list.hpp"

namespace flywheel {

/// Where a worker stands among the meetings of the phased run it takes part in, and what it will vote.
struct PhaseClock {
  std::uint64_t base;   // the barrier word when the run began
  std::uint64_t meets;  // so far
  bool failed;          // a task of this worker failed: everybody stops at the next boundary
  bool stop_asked;      // a task of this worker called stop(): everybody stops at the end of the pass
  bool cancelled;       // worker 0 has seen that the run was cancelled
};

/// One thread, after a task body: takes note of what it asked for. Phased runs have no finisher to do so.
template <class P>
FLYWHEEL_TASK void note_outcome(TaskContext& context, PhaseClock& clock) {
  const std::uint32_t code = P::block(context.code).load(Order::relaxed);
  const std::uint32_t stop = P::block(context.stop).load(Order::relaxed);
  if (!code && !stop) return;
  if (code) record_fault<P>(*context.run, code, context.header.local);
  clock.failed |= code != 0;
  clock.stop_asked |= stop != 0;
  P::block(context.code).store(0, Order::relaxed);
  P::block(context.stop).store(0, Order::relaxed);
}

/// One thread of each worker joins the next meeting. Whoever has a reason to stop votes; cancellation, which workers
/// would see at different times, is worker 0's to vote. It looks while it waits, so that nobody waits for the look.
template <class P>
FLYWHEEL_TASK bool meet(TaskContext& context, PhaseClock& clock, bool end_of_pass) {
  note_outcome<P>(context, clock);
  const World& world = *context.world;
  const Wires<P> wires{world};
  const GridBarrier<P> barrier = wires.barrier();
  const bool vote = clock.failed || clock.cancelled || (end_of_pass && clock.stop_asked);
  barrier.arrive(++clock.meets, vote);
  if (context.worker == 0) clock.cancelled = P::device(context.run->line.cancelled).load(Order::relaxed) != 0;
  return barrier.wait(clock.base, clock.meets, wires.wait_for_phase(context.worker)) == Meeting::go_on;
}

/// All threads of the block: this worker's share of one phase.
template <class List, class Block>
FLYWHEEL_TASK void run_phase(const TaskRecord* records, const Phase& phase, Block& block) {
  const std::uint32_t step = phase.grid ? phase.count : block.workers();
  for (std::uint32_t t = phase.grid ? 0 : block.worker(); t < phase.count; t += step)
    List::run(block.load(records[phase.first + t]), block);
}

/// All threads of the block run the whole phased run. It ends early, for all workers at the same boundary, when it
/// was cancelled, a task failed, or a task asked to stop. Returns the pass in which it ended. Everything read after a
/// boundary is a local copy: at the last one the run may be over, and its slot in use again, before we look.
template <class List, class Block>
FLYWHEEL_TASK std::uint32_t run_phases(const World& world, const RunConstants& run, Block& block) {
  const ExecRecord exec = world.execs[run.exec];
  const TaskRecord* records = world.records + run.first_record;
  const std::uint32_t repeat = run.repeat;
  for (std::uint32_t pass = 0; pass < repeat; ++pass) {
    block.begin_pass(pass);
    for (std::uint32_t p = 0; p < exec.phase_count; ++p) {
      run_phase<List>(records, exec.phases[p], block);
      if (!block.boundary(p + 1 == exec.phase_count)) return pass;
    }
  }
  return repeat - 1;
}

}  // namespace flywheel
