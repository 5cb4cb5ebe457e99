// The control thread at the direct slot: ends the tasks that DirectStarter has started, as long as nothing happens to them but
// that each ends its run. executor.cuh includes it.
//
// This is what a submission to an idle GPU waits for, so it is a loop of its own, out of line: in the worker's loop registers
// are spilled, and to read one back takes a trip to L2, since the poller empties L1 when it acquires a message.
#pragma once

#include "executor_shared.cuh"

namespace flywheel::detail {

/// True if the task in the slot began and ended its run, with no fault: there is nothing else to do at its end.
__device__ __forceinline__ bool ends_run_simply(const TaskSlot& task, const Outcome& outcome) {
  const TaskHeader& header = task.record.header;
  const RunConstants& run = task.run.constants;
  return !(outcome.code | outcome.control | outcome.stop) && header.edge_count == 0 && run.sinks == 1 && run.repeat == 1 &&
         !header.shares_place();
}

/// Polls the direct slot `polls` times, and ends started tasks meanwhile. `next`, `parity`: GpuExecutor's. Returns what has
/// come for the worker's own loop: an item that is not ended, or a follower of a run that is.
[[gnu::noinline]] __device__ inline DirectTurn serve_direct_slot(std::uint32_t polls, std::uint32_t next,
                                                                 std::uint32_t parity) {
  using P = ThreadPlatform;
  ExecutorShared& shared = executor_shared();
  DirectSlot& direct_slot = shared.direct_slot;
  DirectTurn turn{kEmptyMailbox, 0, false, next, parity};
  FLYWHEEL_ROLLED
  for (std::uint32_t i = 0; i < polls; ++i) {
    // Acquire: as in IdleSlot::peek().
    const std::uint64_t item = P::block(direct_slot.item).load(Order::acquire);
    if (item == kEmptyMailbox) continue;
    turn.item = item;
    if (!direct_slot.started) return turn;
    const TaskSlot& task = shared.task_slots[turn.next];
    const std::uint64_t word = completion_word(task.run.constants.generation, 0);
    bool done = false;
    // Acquire, block scope: as in GpuExecutor::is_done().
    FLYWHEEL_ROLLED
    for (std::uint32_t tries = 0; tries < kShortBody && !done; ++tries)
      done = ptx::mbarrier_test(shared.done[turn.next], turn.parity >> turn.next & 1);
    if (!done || !ends_run_simply(task, shared.contexts[turn.next].outcome)) return turn;
    // Relaxed: as in IdleSlot::note_end() and empty().
    const Followers followers =
        end_run<P>(shared.dev, Item::unpack(item).run, word, [&] { P::block(direct_slot.ended).store(1, Order::relaxed); });
    P::block(direct_slot.item).store(kEmptyMailbox, Order::relaxed);
    turn.parity ^= 1u << turn.next;
    shared.next_slot = turn.next ^= 1;
    turn.item = kEmptyMailbox;
    ++turn.ended;
    if (followers.first()) turn.item = go_on_with<P>(shared.dev, blockIdx.x, followers, kEmptyMailbox);
    turn.kept = turn.item != kEmptyMailbox;
    if (turn.kept) return turn;
    // Release: as in IdleSlot::enroll().
    P::block(direct_slot.waiting).store(1, Order::release);
    if (i > polls / 2) return turn;  // now: the next task has to come from the host
  }
  return turn;
}

}  // namespace flywheel::detail
