// The few PTX instructions the kernel needs by name. CCCL 3.0.1's cuda::barrier has two defects in its block-scope
// parity wait (see DESIGN.md §6), so mbarriers are used directly, semantics spelled out.
#pragma once

#include <cstdint>

namespace flywheel::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void mbarrier_init(std::uint64_t& barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}

/// Release at block scope: pairs with the acquire in mbarrier_test().
__device__ __forceinline__ void mbarrier_arrive(std::uint64_t& barrier) {
  asm volatile("{ .reg .b64 token; mbarrier.arrive.shared::cta.b64 token, [%0]; }" ::"r"(shared_address(&barrier))
               : "memory");
}

/// True once the phase of that parity is complete (acquire, block scope). May suspend the thread for a while where
/// the hardware can.
__device__ __forceinline__ bool mbarrier_test(std::uint64_t& barrier, std::uint32_t parity) {
  std::uint32_t done;
#if __CUDA_ARCH__ >= 900
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done) : "r"(shared_address(&barrier)), "r"(parity) : "memory");
#else
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done) : "r"(shared_address(&barrier)), "r"(parity) : "memory");
#endif
  return done != 0;
}

/// A barrier among `threads` threads of the block that name the same id (1..15; 0 is __syncthreads).
__device__ __forceinline__ void named_barrier(std::uint32_t id, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace flywheel::ptx
