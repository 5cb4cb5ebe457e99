// The kernel: the one GPU entry point of the library. One block an SM; in each, a warpgroup that serves (control; inbox poller,
// at work in block 0 only; load; store) and the compute warps.
#pragma once

#include "executor.cuh"
#include "../runtime/dynamic/inbox_poller.hpp"
#include "../runtime/dynamic/worker.hpp"

namespace flywheel {

namespace detail {
__device__ __forceinline__ void prepare(const DeviceState& dev) {
  ExecutorShared& shared = executor_shared();
  if (threadIdx.x == 0) {  // the other threads look at none of this before the __syncthreads() below
    init_group();
    for (std::uint32_t s = 0; s < 2; ++s) {
      ptx::mbarrier_init(shared.full[s], 1);
      ptx::mbarrier_init(shared.done[s], arrivals_of(kComputeThreads));
    }
    shared.direct_slot.item = kEmptyMailbox;
    shared.direct_slot.waiting = 0;
    shared.dev = dev;
    RolesShared& roles = roles_shared();
    ptx::mbarrier_init(roles.begin, 1);
    ptx::mbarrier_init(roles.left, 2 * arrivals_of(32));
    roles.kernel_ends = 0;
    init_roles(roles, shared.dev, true);
  }
  __syncthreads();
}

__device__ __forceinline__ void control_loop(const DeviceState& dev) {
  GpuExecutor executor(dev, blockIdx.x);
  Worker<ThreadPlatform, GpuExecutor> worker(dev, blockIdx.x, executor, blockIdx.x == 0 ? &executor_shared().direct_slot : nullptr);
  worker();
  executor.dismiss();
}

template <class List>
__device__ __forceinline__ void serve(const DeviceState& dev) {
  const std::uint32_t warp = threadIdx.x / 32;
  if (warp == kControlWarp) {
    if (threadIdx.x == 0) control_loop(dev);
  } else if (warp == kPollerWarp) {
    if (blockIdx.x == 0) InboxPoller<WarpPlatform>(dev, executor_shared().direct_slot, executor_shared().message)();
  } else {
    serve_compiled_runs<List>(executor_shared().dev);
  }
}
}  // namespace detail

/// 168 registers a thread. No warpgroup gives any to another (setmaxnreg): the control loop needs 160 (what it spilled
/// would be read through L1, which every acquire empties), so there are but 8 to give, and ptxas 13.0 refuses some lists
/// of tasks with them (C7600), because functions are called from both sides.
template <class List>
__global__ void __launch_bounds__(kBlockThreads, 1) flywheel_kernel(const __grid_constant__ DeviceState dev) {
  detail::prepare(dev);
  if (threadIdx.x / 32 < kFirstComputeWarp) {
    detail::serve<List>(dev);
  } else {
    compute_loop<List>();
  }
}

}  // namespace flywheel
