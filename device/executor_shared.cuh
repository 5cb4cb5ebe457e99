// The shared memory through which the control thread of a GPU worker commands the compute warps. look_ahead.cuh,
// direct_starter.cuh, direct_worker.cuh and phased_tasks.cuh include it.
#pragma once

#include "../runtime/dynamic/awaited.hpp"
#include "../runtime/poller/inbox_poll.hpp"
#include "compiled/compiled.cuh"

namespace flywheel::detail {

/// What the compute warps do with a task slot. A traced task goes the way of the tasks of phased runs, behind the same tests:
/// so other tasks have none more.
enum class Command : std::uint32_t { task, phased, traced, compiled, leave };

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

/// What the control thread asks of the load warp, see awaited.cuh. Plain members: by the control thread before `load_begin`, by
/// the load warp before `returned`.
struct AwaitedCall {
  std::uint32_t next, parity;  // as in GpuExecutor; both ways
  std::uint32_t calls;         // before this one; by the control thread
  bool asks;                   // otherwise a compiled or phased run begins; by the control thread
  bool phased;                 // a phased one, see look_ahead.cuh; likewise
};

/// Shared memory of a worker outside compiled runs. Plain members are ordered by `full` and `done`, unless noted.
struct ExecutorShared {
  DeviceState dev;  // a copy for the bodies
  TaskSlot task_slots[2];
  TaskContext contexts[2];
  SlotTag tags[2];
  Command commands[2];
  std::uint32_t next_slot;   // that the compute warps take next. By the control thread, before it enrolls at the direct slot
  PhasesEnd phases_end;      // of the last phased run; by the compute warps, before `done`
  std::uint64_t load_begin;  // control -> load warp: a compiled run or AwaitedCall begins, or the kernel ends
  std::uint64_t returned;    // load warp -> control: AwaitedCall is over
  std::uint64_t full[2];
  std::uint64_t done[2];
  BlockShared block;
  LocalWork work;
  PrefetchedTask ahead;  // of the control thread alone, which has no registers to spare for it
  DirectSlot direct_slot;
  AwaitedCall awaited;
  PollerBuffer poller;  // used in block 0 alone; a member in every block, so that all programs have the same layout
};

/// The block's one copy. It is found by name, not by reference, so that the compiler knows that it is shared memory.
__device__ __forceinline__ ExecutorShared& executor_shared() {
  __shared__ ExecutorShared shared;
  return shared;
}

/// Commands the compute warps to run the task in a slot, in pass `iteration` of its run. One thread.
template <Command kHow = Command::task>
__device__ __forceinline__ void start_task(std::uint32_t slot, RunState* run, Item item, std::uint32_t iteration) {
  TaskContext& context = executor_shared().contexts[slot];  // its other members stay as they are
  context.run = run;
  context.item = item;
  context.outcome = first_outcome(kHow == Command::traced, iteration);
  executor_shared().commands[slot] = kHow;
  // Release, block scope: pairs with the test of `full` in compute_loop(); covers the slot and its context.
  ptx::mbarrier_arrive(executor_shared().full[slot]);
}

/// The same if the run is traced and was not cancelled, else false.
[[gnu::noinline]] __device__ inline bool start_traced_task(std::uint32_t slot, RunState* run, Item item,
                                                           std::uint32_t iteration) {
  if (!is_traced<ThreadPlatform>(run->line)) return false;
  start_task<Command::traced>(slot, run, item, iteration);
  return true;
}

inline constexpr std::uint32_t kRecordVectors = sizeof(TaskRecord) / sizeof(uint4);

template <std::uint32_t kCount>
__device__ __forceinline__ void read_words(uint4 (&words)[kCount], const void* from) {
#pragma unroll
  for (std::uint32_t i = 0; i < kCount; ++i) words[i] = __ldcg(static_cast<const uint4*>(from) + i);
}
template <std::uint32_t kCount>
__device__ __forceinline__ void put(void* to, const uint4 (&words)[kCount]) {
#pragma unroll
  for (std::uint32_t i = 0; i < kCount; ++i) static_cast<uint4*>(to)[i] = words[i];
}

/// Copies a task's record and its run's constants into a slot. All loads are issued before the first is waited for. They bypass
/// L1, because other SMs change run lines. Returns whether the run was cancelled by then, or is traced: one test for both.
__device__ __forceinline__ bool fetch_task(std::uint32_t slot, const TaskRecord& record, RunState& run,
                                           std::uint32_t& iteration) {
  constexpr std::uint32_t kConstants = sizeof(RunConstants) / sizeof(uint4);
  static_assert(sizeof(RunConstants) % sizeof(uint4) == 0);
  uint4 words[kRecordVectors], constants[kConstants];
  read_words<kRecordVectors>(words, &record);
  read_words<kConstants>(constants, &run.line.constants);
  // Relaxed, as in copy_line(): pair with MessageHandler::cancel(), signal_done() and begin_iteration(). They are hints.
  const std::uint32_t cancelled = ThreadPlatform::device(run.line.cancelled).load(Order::relaxed);
  iteration = ThreadPlatform::device(run.line.iteration).load(Order::relaxed);
  TaskSlot& task_slot = executor_shared().task_slots[slot];
  put<kRecordVectors>(&task_slot.record, words);
  put<kConstants>(&task_slot.run.constants, constants);
  executor_shared().tags[slot].record = SlotTag::kNoRecord;
  static_assert(offsetof(RunConstants, flags) % sizeof(uint4) == 0);  // component x
  return (cancelled | (constants[offsetof(RunConstants, flags) / sizeof(uint4)].x & kTraced)) != 0;
}

inline constexpr std::uint32_t kShortBody = 64;  // polls of a slot's `done`, some 20 ns each while not suspended

/// The task slots as serve_chain() uses them; see GpuExecutor, whose state this is.
struct ChainSlots {
  std::uint32_t next, parity, iteration;

  /// The slot of the task that was started last.
  __device__ std::uint32_t running() const { return next ^ 1; }
  __device__ const TaskSlot& task() const { return executor_shared().task_slots[running()]; }
  __device__ Outcome outcome() const { return executor_shared().contexts[running()].outcome; }

  /// False if the run was cancelled, or is traced.
  __device__ bool fetch(const DeviceState& dev, Item item) {
    return !fetch_task(next, dev.records[item.record], dev.runs[item.run], iteration);
  }
  /// The first task of a follower whose constants were read already. A record may still be in the slot, see SlotTag.
  __device__ void fetch_expected(const DeviceState& dev, Item item, const RunConstants& run) {
    TaskSlot& task_slot = executor_shared().task_slots[next];
    SlotTag& tag = executor_shared().tags[next];
    const bool is_carried = run.flags & kInlineRoot;
    if (is_carried || tag.record != item.record || tag.serial != run.serial) {
      uint4 words[kRecordVectors];
      read_words<kRecordVectors>(words, &dev.records[item.record]);
      put<kRecordVectors>(&task_slot.record, words);
      tag = {is_carried ? SlotTag::kNoRecord : item.record, run.serial};
    }
    task_slot.run.constants = run;
    iteration = 0;
  }
  __device__ void start(const DeviceState& dev, Item item) {
    start_task(next, dev.runs + item.run, item, iteration);
    next ^= 1;
  }
  /// Whether the body that was started last has ended, by now or soon. Acquire, block scope: as in GpuExecutor::is_done().
  __device__ bool has_ended() const {
    bool done = false;
    FLYWHEEL_ROLLED
    for (std::uint32_t tries = 0; tries < kShortBody && !done; ++tries)
      done = ptx::mbarrier_test(executor_shared().done[running()], parity >> running() & 1);
    return done;
  }
  /// Nobody waits for that body any more.
  __device__ void take_end() { parity ^= 1u << running(); }
};

}  // namespace flywheel::detail
