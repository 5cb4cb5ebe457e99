// Memory on its way before anybody waits for it.
#pragma once

#include "apps/llama/fast/tile.cuh"

namespace flywheel::llama {

FLYWHEEL_TASK inline void prefetch_to_l2([[maybe_unused]] const void* at) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
#endif
}

/// 16 bytes to shared memory, without a register on the way; a copy at once where the code runs on a CPU.
FLYWHEEL_TASK inline void fetch_to_shared(TilePart* to, const TilePart* from) {
#ifdef __CUDA_ARCH__
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
#else
  *to = *from;
#endif
}
/// Until all that this thread fetched is there.
FLYWHEEL_TASK inline void await_fetched() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace flywheel::llama
