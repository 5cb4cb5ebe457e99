// The shared memory through which the control thread of a GPU worker commands the compute warps. collective.cuh includes it,
// and through that the executor.
#pragma once

#include "../runtime/dynamic/finish.hpp"
#include "compiled/compiled.cuh"

namespace flywheel::detail {

/// What the compute warps do with a task slot.
enum class Command : std::uint32_t { task, phased, compiled, leave };

/// The record that fetch_direct() or DirectStarter left in a task slot; kNoRecord if another has been put there since. A graph
/// that is submitted again finds its record still in the slot: records of a loaded graph do not change, and no two loaded
/// graphs have the same serial.
struct SlotTag {
  std::uint32_t record;
  std::uint32_t serial;

  static constexpr std::uint32_t kNoRecord = ~0u;
};

/// What the control thread brings back from a turn at the direct slot.
struct DirectTurn {
  std::uint64_t item;   // that has come for the worker's loop, or kEmptyMailbox
  std::uint32_t ended;  // tasks that were ended
  bool kept;            // the item is a follower's root; then the worker is not enrolled any more
  std::uint32_t next;   // task slot that comes next
  std::uint32_t parity;
};

/// Shared memory of a worker outside compiled runs. Plain members are ordered by `full` and `done`, unless noted.
struct ExecutorShared {
  DeviceState dev;  // a copy for the bodies
  TaskSlot task_slots[2];
  TaskContext contexts[2];
  SlotTag tags[2];
  Command commands[2];
  std::uint32_t next_slot;  // that the compute warps take next. By the control thread, before it enrolls at the direct slot
  PhasesEnd phases_end;     // of the last phased run; by the compute warps, before `done`
  std::uint64_t full[2];
  std::uint64_t done[2];
  BlockShared block;
  LocalWork work;
  PrefetchedTask ahead;  // of the control thread alone, which has no registers to spare for it
  DirectSlot direct_slot;
};

/// The block's one copy. It is found by name, not by reference, so that the compiler knows that it is shared memory.
__device__ __forceinline__ ExecutorShared& executor_shared() {
  __shared__ ExecutorShared shared;
  return shared;
}

/// Commands the compute warps to run the task in a slot, in pass `iteration` of its run. One thread.
__device__ __forceinline__ void start_task(std::uint32_t slot, RunState* run, Item item, std::uint32_t iteration) {
  TaskContext& context = executor_shared().contexts[slot];  // its other members stay as they are
  context.run = run;
  context.item = item;
  context.outcome = {0, 0, 0, iteration};
  executor_shared().commands[slot] = Command::task;
  // Release, block scope: pairs with the test of `full` in compute_loop(); covers the slot and its context.
  ptx::mbarrier_arrive(executor_shared().full[slot]);
}

}  // namespace flywheel::detail
