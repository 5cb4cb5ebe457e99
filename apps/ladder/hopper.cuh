// What the rungs from 6 on need of compute capability 9.0: copies of boxes by tensor maps, clusters, registers that move from
// one warpgroup to another. On older targets the functions do nothing, and rungs() says that these rungs need more.
#pragma once

#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda/ptx>

#include <cstdint>

namespace ladder {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define LADDER_HOPPER(...) __VA_ARGS__
#else
#define LADDER_HOPPER(...)
#endif

/// Orders this thread's earlier accesses to shared memory, and those it has acquired, before later copies by the async proxy.
__device__ __forceinline__ void fence_for_copies() { LADDER_HOPPER(cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);) }

/// Starts the copy of a box of `map` from column x and row y. complete_tx on the barrier is a release, block scope: pairs with
/// the acquire of who waits for it.
__device__ __forceinline__ void copy_box(void* to, const CUtensorMap& map, int x, int y, std::uint64_t& barrier) {
  LADDER_HOPPER(cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, to, &map, {x, y}, &barrier);)
}
/// The same to both blocks of a pair: to the same place in each, and with complete_tx on the barrier in the same place of each.
__device__ __forceinline__ void copy_box_to_both(void* to, const CUtensorMap& map, int x, int y, std::uint64_t& barrier) {
  LADDER_HOPPER(cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, to, &map, {x, y}, &barrier,
                                                std::uint16_t{3});)
}
/// Starts the copy of a box from shared memory to `map`. A fence_for_copies() lies between the stores to the box and this.
__device__ __forceinline__ void store_box(const CUtensorMap& map, int x, int y, const void* from) {
  LADDER_HOPPER(cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, &map, {x, y}, from);
                cuda::ptx::cp_async_bulk_commit_group();)
}
/// Waits until this thread's store_box() have read their boxes.
__device__ __forceinline__ void wait_boxes_read() {
  LADDER_HOPPER(cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>{});)
}
/// Waits until they are in memory.
__device__ __forceinline__ void wait_boxes_stored() {
  LADDER_HOPPER(cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>{});)
}

/// Collective in a warpgroup: from here on its threads have so many registers, a multiple of 8 up to 256. What one gets another
/// has given.
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  LADDER_HOPPER(asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters) : "memory");)
}
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  LADDER_HOPPER(asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters) : "memory");)
}

// ---- pairs: clusters of two blocks ----

__device__ __forceinline__ unsigned rank_in_pair() {
  unsigned rank = 0;
  LADDER_HOPPER(rank = cooperative_groups::this_cluster().block_rank();)
  return rank;
}
/// All threads of both blocks meet. Release and acquire, cluster scope: pairs with itself.
__device__ __forceinline__ void sync_pair() { LADDER_HOPPER(cooperative_groups::this_cluster().sync();) }
/// The object in the same place of the other block's shared memory.
template <class T>
__device__ __forceinline__ T* of_peer(T* own) {
  LADDER_HOPPER(return cooperative_groups::this_cluster().map_shared_rank(own, rank_in_pair() ^ 1);)
  return own;
}
/// Arrives at a barrier of the other block. Release, cluster scope: pairs with wait_in_pair() there.
__device__ __forceinline__ void arrive_at_peer(std::uint64_t* barrier_of_peer) {
  LADDER_HOPPER(
      cuda::ptx::mbarrier_arrive(cuda::ptx::sem_release, cuda::ptx::scope_cluster, cuda::ptx::space_cluster, barrier_of_peer);)
}
/// Waits for a phase. Acquire, cluster scope: pairs with arrivals of both blocks and with complete_tx of copies of either.
/// Without a limit of its own: copies end by themselves, and so does who arrives.
__device__ __forceinline__ void wait_in_pair(std::uint64_t& barrier, std::uint32_t parity) {
  LADDER_HOPPER(
      while (!cuda::ptx::mbarrier_try_wait_parity(cuda::ptx::sem_acquire, cuda::ptx::scope_cluster, &barrier, parity)){})
}
/// Starts a copy from this block's shared memory to the other's, and completes its barrier there.
__device__ __forceinline__ void copy_to_peer(void* to_peer, const void* from, std::uint32_t bytes,
                                             std::uint64_t* barrier_of_peer) {
  LADDER_HOPPER(
      cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_shared, to_peer, from, bytes, barrier_of_peer);)
}

#undef LADDER_HOPPER

}  // namespace ladder
