// Awaited successors on a GPU: the load warp, which has nothing to do outside compiled runs, runs AwaitedLoop
// (runtime/dynamic/awaited.hpp) while the control thread waits for it. executor.cuh includes it.
#pragma once

#include "collective.cuh"

namespace flywheel::detail {

/// The task slots for all lanes of the load warp; see ChainSlots.
struct WarpSlots {
  std::uint32_t next, parity, iteration;

  __device__ std::uint32_t running() const { return next ^ 1; }
  __device__ const TaskSlot& task() const { return executor_shared().task_slots[running()]; }
  __device__ Outcome outcome() const { return executor_shared().contexts[running()].outcome; }

  /// Of the run of the task that runs: a word of the record and of the run's constants a lane. False if the run was cancelled.
  __device__ bool fetch(const DeviceState& dev, Item item) const {
    constexpr std::uint32_t kConstants = sizeof(RunConstants) / sizeof(std::uint32_t);
    static_assert(sizeof(TaskRecord) == 32 * sizeof(std::uint32_t) && kConstants <= 32);
    const std::uint32_t lane = threadIdx.x % 32;
    TaskSlot& to = executor_shared().task_slots[next];
    auto* const from = reinterpret_cast<std::uint32_t*>(dev.records + item.record);
    // Relaxed, both: pairs with nothing that still happens, a record does not change while a run of its graph is in flight; and
    // with MessageHandler::cancel() and signal_done(), as in copy_line(): a hint.
    const std::uint32_t word = ThreadPlatform::device(from[lane]).load(Order::relaxed);
    const std::uint32_t cancelled = ThreadPlatform::device(dev.runs[item.run].line.cancelled).load(Order::relaxed);
    if (lane < kConstants)
      reinterpret_cast<std::uint32_t*>(&to.run.constants)[lane] =
          reinterpret_cast<const std::uint32_t*>(&task().run.constants)[lane];
    if (lane == 0) executor_shared().tags[next].record = SlotTag::kNoRecord;
    reinterpret_cast<std::uint32_t*>(&to.record)[lane] = word;
    return !cancelled;
  }
  __device__ void start(const DeviceState& dev, Item item) {
    __syncwarp();  // start_task() releases what all lanes have fetched and acquired
    if (threadIdx.x % 32 == 0) start_task(next, dev.runs + item.run, item, iteration);
    next ^= 1;
  }
  /// Whether the body that was started last has ended, by now or within some 20 us. Acquire, block scope: as in
  /// GpuExecutor::is_done().
  __device__ bool has_ended() const {
    const auto ticks = [] { return static_cast<std::uint32_t>(ThreadPlatform::ticks()); };
    const std::uint32_t began = ticks();
    bool done = false;
    while (!done && __any_sync(~0u, ticks() - began < kLookTicks))
      done = __all_sync(~0u, ptx::mbarrier_test(executor_shared().done[running()], parity >> running() & 1));
    return done;
  }
  /// Nobody waits for that body any more.
  __device__ void take_end() { parity ^= 1u << running(); }
};

/// The load warp's part.
[[gnu::noinline]] __device__ inline void await_in_load_warp() {
  ExecutorShared& shared = executor_shared();
  WarpSlots slots{shared.awaited.next, shared.awaited.parity, shared.contexts[shared.awaited.next ^ 1].outcome.iteration};
  AwaitedLoop<WarpPlatform, WarpSlots> loop(shared.dev, blockIdx.x, shared.work.epoch, shared.ahead, slots);
  const AwaitedTurn turn = loop();
  __syncwarp();  // all lanes have read the call
  if (threadIdx.x % 32 != 0) return;
  shared.awaited.next = slots.next;
  shared.awaited.parity = slots.parity;
  note_turn(shared.work, turn);
  // Release, block scope: pairs with SuccessorAwaiter; covers the turn, `ahead`, and what the lanes acquired.
  ptx::mbarrier_arrive(shared.returned);
}

/// The control thread's part: see finish_with_successors(). Without members: what the worker's loop would pass costs each task
/// that ends (0.05 us of empty tasks, see tuning.md).
struct SuccessorAwaiter {
  __device__ bool operator()(const PrefetchedTask& task) const;
};
__device__ inline bool SuccessorAwaiter::operator()(const PrefetchedTask& task) const {
  ExecutorShared& shared = executor_shared();
  shared.awaited.next = task.slot ^ 1;  // `parity`: GpuExecutor::wait() has written it
  shared.awaited.asks = true;
  // Release, block scope: pairs with serve_load_warp(); covers the call, and what the control thread acquired.
  ptx::mbarrier_arrive(shared.load_begin);
  // Acquire, block scope: pairs with await_in_load_warp(). No limit: the load warp gives up after a time.
  while (!ptx::mbarrier_test(shared.returned, shared.awaited.calls & 1)) {}
  ++shared.awaited.calls;
  shared.awaited.asks = false;
  return shared.work.awaited.ended != 0;
}

}  // namespace flywheel::detail
