// The kernel: the library's one entry point on the GPU. <flywheel/task.cuh> includes it.
//
// The grid has one block for each worker, one block on each SM. Warps 0 to 3 of a block serve: control, inbox poller
// (active in block 0 only), load and store. Warps 4 to 11 run the bodies of tasks; the
// store warp runs the store parts of compiled runs.
#pragma once

#include "../runtime/dynamic/worker.hpp"
#include "../runtime/poller/inbox_poller.hpp"
#include "direct_starter.cuh"
#include "executor.cuh"

namespace flywheel::detail {

/// All threads. Initialises the block's shared memory.
__device__ __forceinline__ void prepare(const DeviceState& dev) {
  ExecutorShared& shared = executor_shared();
  if (threadIdx.x == 0) {  // __syncthreads() below publishes all of it to the other threads
    init_group();
    for (std::uint32_t s = 0; s < 2; ++s) {
      ptx::mbarrier_init(shared.full[s], 1);
      ptx::mbarrier_init(shared.done[s], arrivals_of(kComputeThreads));
    }
    shared.direct_slot.item = kEmptyMailbox;
    shared.direct_slot.waiting = shared.direct_slot.ended = shared.direct_slot.started = 0;
    ptx::mbarrier_init(shared.load_begin, 1);
    ptx::mbarrier_init(shared.returned, 1);
    shared.awaited = {};
    init_phases_ahead(shared.block.ahead, true);
    shared.block.way.prefetched = false;
    shared.dev = dev;
    RolesShared& roles = roles_shared();
    ptx::mbarrier_init(roles.begin, 1);
    ptx::mbarrier_init(roles.left, 2 * arrivals_of(32));
    roles.kernel_ends = 0;
    roles.beside = nullptr;
    init_roles(roles, shared.dev, true);
    init_bare(roles, true);
  }
  // Release and acquire, block scope: pairs with itself; all warps find the barriers and `dev` as they are above.
  __syncthreads();
}

/// The control thread: runs the worker's loop until the kernel stops, then dismisses the other warps of the block. Only the
/// worker beside the poller has a direct slot; so the others get a loop that knows of none, whose values stay in registers.
template <bool kHasDirectSlot>
__device__ __forceinline__ void control_loop(const DeviceState& dev) {
  GpuExecutor<kHasDirectSlot> executor(dev, blockIdx.x);
  DirectSlot* const direct_slot = kHasDirectSlot ? &executor_shared().direct_slot : nullptr;
  Worker<ThreadPlatform, GpuExecutor<kHasDirectSlot>> worker(dev, blockIdx.x, executor, direct_slot);
  worker();
  executor.dismiss();
}

/// The loop of the store warp, until the kernel ends: it takes part in compiled runs, and where a body calls it in others.
template <class List>
[[gnu::noinline]] __device__ void serve_store_warp(const DeviceState& dev) {
  for (std::uint32_t runs = 0;; ++runs) {
    // No time limit: a runtime without a compiled run is not at fault. Acquire, block scope: pairs with the arrivals in
    // control_compiled_run(), GpuExecutor::dismiss() and Stages::call_store_warp(); covers what init_roles() wrote, `run`,
    // `kernel_ends` and `beside`.
    for (std::uint32_t spins = 0; !ptx::mbarrier_test(roles_shared().begin, runs & 1); ++spins) ThreadPlatform::pause(spins);
    if (roles_shared().kernel_ends) return;
    const bool called = roles_shared().beside != nullptr;
    __syncwarp();  // all lanes have read it before one takes the call
    if (called) List::serve_beside(WarpLanes{});
    else serve_compiled_run<List>(dev);
  }
}

/// The loop of the load warp, likewise; between compiled runs it awaits successors, and in phased ones it looks ahead.
template <class List>
[[gnu::noinline]] __device__ void serve_load_warp(const DeviceState& dev) {
  for (std::uint32_t calls = 0;; ++calls) {
    // No time limit, acquire at block scope: as in serve_store_warp(); pairs with SuccessorAwaiter, too.
    for (std::uint32_t spins = 0; !ptx::mbarrier_test(executor_shared().load_begin, calls & 1); ++spins)
      ThreadPlatform::pause(spins);
    if (roles_shared().kernel_ends) return;
    if (executor_shared().awaited.asks) await_in_load_warp();
    else if (executor_shared().awaited.phased) look_ahead_of_phases<List>(dev);
    else serve_compiled_run<List>(dev);
  }
}

/// The four warps that serve.
template <class List>
__device__ __forceinline__ void serve(const DeviceState& dev) {
  const std::uint32_t warp = threadIdx.x / 32;
  if (warp == kControlWarp) {
    if (threadIdx.x == 0 && blockIdx.x == 0) control_loop<true>(dev);
    else if (threadIdx.x == 0) control_loop<false>(dev);
  } else if (warp == kPollerWarp) {
    ExecutorShared& shared = executor_shared();
    if (blockIdx.x == 0) InboxPoller<WarpPlatform, DirectStarter>(dev, shared.direct_slot, shared.poller)();
  } else if (warp == kLoadWarp) {
    serve_load_warp<List>(executor_shared().dev);
  } else {
    serve_store_warp<List>(executor_shared().dev);
  }
}

/// All task bodies of the program run in this one kernel; `List` is the program's TaskList.
///
/// It has 168 registers a thread, and no warpgroup gives registers to another (setmaxnreg). The control loop needs 160: what
/// it spilled would be read through L1, which every acquire empties. So only 8 could be given, and with setmaxnreg ptxas
/// 13.0 refuses some lists of tasks (C7600), because functions are called from both sides.
template <class List>
__global__ void __launch_bounds__(kBlockThreads, 1) flywheel_kernel(const __grid_constant__ DeviceState dev) {
  detail::prepare(dev);
  if (threadIdx.x / 32 < kFirstComputeWarp) {
    detail::serve<List>(dev);
  } else {
    compute_loop<List>();
  }
}

}  // namespace flywheel::detail
