// The shared memory through which the control thread of a GPU worker commands the compute warps. collective.cuh includes it,
// and through that the executor.
#pragma once

#include "../runtime/dynamic/finish.hpp"
#include "compiled/compiled.cuh"

namespace flywheel::detail {

/// What the compute warps do with a task slot.
enum class Command : std::uint32_t { task, phased, compiled, leave };

/// The record that fetch_direct() left in a task slot; kNoRecord if fetch() has used the slot since.
struct SlotTag {
  std::uint32_t record;
  std::uint32_t serial;
};

/// Shared memory of a worker outside compiled runs. Plain members are ordered by `full` and `done`, unless noted.
struct ExecutorShared {
  DeviceState dev;  // a copy for the bodies
  TaskSlot task_slots[2];
  TaskContext contexts[2];
  SlotTag tags[2];
  Command commands[2];
  PhasesEnd phases_end;  // of the last phased run; by the compute warps, before `done`
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

}  // namespace flywheel::detail
