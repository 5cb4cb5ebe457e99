// The kernel: the one GPU entry point of the library. One block an SM; one control warp, one door warp (at work in
// block 0 only) and the compute warps in each.
#pragma once

#include "device/crew.cuh"
#include "runtime/door.hpp"
#include "runtime/worker.hpp"

namespace flywheel {

namespace detail {
__device__ __forceinline__ void prepare(const World& world) {
  CrewShared& shared = crew_shared();
  if (threadIdx.x == 0) {
    for (std::uint32_t s = 0; s < 2; ++s) {
      ptx::mbarrier_init(shared.full[s], 1);
      ptx::mbarrier_init(shared.done[s], 1);
    }
    shared.porch.item = kEmptyMailbox;
    shared.porch.waiting = 0;
    shared.world = world;
  }
  __syncthreads();
}

__device__ __forceinline__ void control_loop(const World& world) {
  GpuCrew crew(world, blockIdx.x);
  Worker<ThreadPlatform, GpuCrew> worker(world, blockIdx.x, crew, blockIdx.x == 0 ? &crew_shared().porch : nullptr);
  worker();
  crew.dismiss();
}
}  // namespace detail

template <class List>
__global__ void __launch_bounds__(kBlockThreads, 1) flywheel_kernel(const __grid_constant__ World world) {
  extern __shared__ __align__(128) unsigned char scratch[];
  detail::prepare(world);
  const std::uint32_t warp = threadIdx.x / 32;
  if (warp == kControlWarp) {
    if (threadIdx.x == 0) detail::control_loop(world);
  } else if (warp == kDoorWarp) {
    if (blockIdx.x == 0) Door<WarpPlatform>(world, crew_shared().porch, crew_shared().message)();
  } else {
    compute_loop<List>(scratch);
  }
}

}  // namespace flywheel
