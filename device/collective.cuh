// The control thread's part of a collective run. executor.cuh includes it.
#pragma once

#include "look_ahead.cuh"

namespace flywheel::detail {

/// What control_compiled_run() and control_phased_run() need from their executor.
struct CollectiveCall {
  std::uint32_t worker;
  std::uint16_t run_slot;
  std::uint32_t task_slot;    // through which the compute warps get the command
  std::uint32_t done_parity;  // of that slot's `done` barrier
  std::uint32_t runs;         // compiled runs before this one
};

/// The control thread's part of a compiled run: the control role. It is out of line and takes its arguments by value, so that
/// the worker's loop around it keeps its state in registers.
[[gnu::noinline]] __device__ inline void control_compiled_run(CollectiveCall call) {
  using P = ThreadPlatform;
  ExecutorShared& shared = executor_shared();
  RolesShared& roles = roles_shared();
  roles.run = join_compiled<P>(shared.dev, call.run_slot, call.worker);
  const bool warps = roles.run.warps != 0;
  roles.bare = roles.run.bare && !shared.dev.check_ns && !warps;  // checked runs have their checks in the roles
  if (warps) init_warp_streams(roles, shared.dev);
  else if (roles.bare) init_bare(roles, false);
  else init_roles(roles, shared.dev, false);
  shared.commands[call.task_slot] = Command::compiled;
  // Release, block scope: pair with compute_loop(), serve_store_warp() and serve_load_warp(); cover what init_roles() or
  // init_bare() wrote, `run` and `bare`.
  ptx::mbarrier_arrive(shared.full[call.task_slot]);
  ptx::mbarrier_arrive(roles.begin);
  ptx::mbarrier_arrive(shared.load_begin);
  StreamEnd end{};
  if (!roles.bare && !warps) end = ControlRole(roles, shared.dev)();
  // Relaxed: pairs with LoadRole::is_over() and look(); the load role only leaves.
  P::block(roles.stop_loading).store(1, Order::relaxed);
  // Acquire, block scope: pairs with the last arrivals in serve_compiled_run() and compute_loop(). All that the roles did
  // comes before the release in leave_compiled(). No limit: the roles have their commands to leave, and bodies have the
  // watchdog's.
  const auto all_out = [&] {
    return ptx::mbarrier_test(roles.left, call.runs & 1) && ptx::mbarrier_test(shared.done[call.task_slot], call.done_parity);
  };
  BareRunWatch watch;
  WarpStreamsWatch watch_warps;
  for (std::uint32_t spins = 0; !all_out(); ++spins) {
    if (roles.bare) watch();
    if (warps) watch_warps();
    P::pause(spins);
  }
  if (warps) close_tracks(roles, shared.dev);
  if (roles.bare || warps) end = roles.bare_end;
  leave_compiled<P>(roles.run);
  if (roles.run.is_leader && !end.aborted) end_compiled<P>(roles.run, end.passes);
}

inline constexpr std::uint32_t kLookTicks = 40'000;  // of the SM's clock, some 20 us

/// The control thread's part of a phased run: commands it and waits for its end. Out of line, as control_compiled_run() is.
/// Reports a task each time that it has run for a further kSlowTaskNs. Worker 0 looks each kLookTicks what is asked of the run,
/// so that the thread at the grid barrier need not, whose arrival all workers wait for.
[[gnu::noinline]] __device__ inline void control_phased_run(CollectiveCall call) {
  using P = ThreadPlatform;
  ExecutorShared& shared = executor_shared();
  RunState* const run = shared.dev.runs + call.run_slot;
  TaskContext& context = shared.contexts[call.task_slot];
  context.run = run;
  context.item = {0, call.run_slot, false};
  context.outcome = first_outcome(run->line.constants.flags & kTraced, 0);
  shared.block.phase_step = shared.block.phase_asked = 0;
  shared.block.passes = {};
  init_phases_ahead(shared.block.ahead, false);
  shared.block.ahead.begin = PhasesBegin::of(run->line);
  shared.awaited.phased = true;
  shared.commands[call.task_slot] = Command::phased;
  // Release, block scope: pair with the test of `full` in compute_loop() and with serve_load_warp(); cover the context and what
  // is set above.
  ptx::mbarrier_arrive(shared.full[call.task_slot]);
  ptx::mbarrier_arrive(shared.load_begin);
  const auto ticks = [] { return static_cast<std::uint32_t>(P::ticks()); };
  std::uint64_t start = 0, reported = 0;
  std::uint32_t step = 0, next_look = ticks();
  // Acquire, block scope: pairs with the arrivals on `done` in compute_loop(); covers `phases_end`.
  for (std::uint32_t spins = 1; !ptx::mbarrier_test(shared.done[call.task_slot], call.done_parity); ++spins) {
    if (call.worker == 0 && static_cast<std::int32_t>(ticks() - next_look) >= 0) {
      next_look = ticks() + kLookTicks;
      // Relaxed: pairs with the load in GpuBlock::boundary(). Only the value counts.
      P::block(shared.block.phase_asked).store(asked_of<P>(run->line), Order::relaxed);
    }
    if (spins % 1024) continue;
    const std::uint64_t now = P::now_ns();
    // Relaxed: pairs with GpuBlock::show_step(); only a change matters. The clock runs while a task of the run does.
    const std::uint32_t seen = P::block(shared.block.phase_step).load(Order::relaxed);
    if (seen != step || seen % 2 == 0) start = reported = now;
    step = seen;
    if (now - reported < kSlowTaskNs) continue;
    // Relaxed: pairs with GpuBlock::load(), which may be writing the next record.
    const std::uint32_t task = P::block(shared.block.phase_record.header.local).load(Order::relaxed);
    beat<P>(shared.dev.heartbeats[call.worker], WorkerState::slow, Item{task, call.run_slot, false}.pack(), now - start);
    reported = now;
  }
  // All workers have come to the last boundary, so none is in a pass. end_phased() releases it.
  if (call.worker == 0 && shared.block.passes.intervals)
    for (const std::uint32_t interval : {0u, 1u}) zero_shared_passes<P>(shared.dev, interval);
  context.header = &shared.task_slots[call.task_slot].record.header;  // phases have set it to other records
  // Relaxed: pairs with await_entry(); the load warp only leaves.
  P::block(shared.block.ahead.over).store(1, Order::relaxed);
  // Acquire, block scope: pairs with look_ahead_of_phases(). No limit: it leaves.
  while (!ptx::mbarrier_test(shared.returned, shared.awaited.calls & 1)) {}
  ++shared.awaited.calls;
  shared.awaited.phased = false;
}

}  // namespace flywheel::detail
