// The kernel: the one GPU entry point of the library. One block an SM; in each, a warpgroup that serves (control; door,
// at work in block 0 only; load; store) and the compute warps.
#pragma once

#include "device/crew.cuh"
#include "runtime/dynamic/door.hpp"
#include "runtime/dynamic/worker.hpp"

namespace flywheel {

namespace detail {
__device__ __forceinline__ void prepare(const World& world) {
  CrewShared& shared = crew_shared();
  if (threadIdx.x == 0) {  // the other threads look at none of this before the __syncthreads() below
    init_group();
    for (std::uint32_t s = 0; s < 2; ++s) {
      ptx::mbarrier_init(shared.full[s], 1);
      ptx::mbarrier_init(shared.done[s], arrivals_of(kComputeThreads));
    }
    shared.porch.item = kEmptyMailbox;
    shared.porch.waiting = 0;
    shared.world = world;
    RolesShared& roles = roles_shared();
    ptx::mbarrier_init(roles.begin, 1);
    ptx::mbarrier_init(roles.left, 2 * arrivals_of(32));
    roles.kernel_ends = 0;
    init_roles(roles, shared.world, true);
  }
  __syncthreads();
}

__device__ __forceinline__ void control_loop(const World& world) {
  GpuCrew crew(world, blockIdx.x);
  Worker<ThreadPlatform, GpuCrew> worker(world, blockIdx.x, crew, blockIdx.x == 0 ? &crew_shared().porch : nullptr);
  worker();
  crew.dismiss();
}

template <class List>
__device__ __forceinline__ void serve(const World& world) {
  const std::uint32_t warp = threadIdx.x / 32;
  if (warp == kControlWarp) {
    if (threadIdx.x == 0) control_loop(world);
  } else if (warp == kDoorWarp) {
    if (blockIdx.x == 0) Door<WarpPlatform>(world, crew_shared().porch, crew_shared().message)();
  } else {
    serve_compiled_runs<List>(crew_shared().world);
  }
}
}  // namespace detail

/// 168 registers a thread. No warpgroup gives any to another (setmaxnreg): the control loop needs 160 (what it spilled
/// would be read through L1, which every acquire empties), so there are but 8 to give, and ptxas 13.0 refuses some lists
/// of tasks with them (C7600), because functions are called from both sides.
template <class List>
__global__ void __launch_bounds__(kBlockThreads, 1) flywheel_kernel(const __grid_constant__ World world) {
  detail::prepare(world);
  if (threadIdx.x / 32 < kFirstComputeWarp) {
    detail::serve<List>(world);
  } else {
    compute_loop<List>();
  }
}

}  // namespace flywheel
