// The few PTX instructions the kernel needs by name. CCCL 3.0.1's cuda::barrier has two defects in its block-scope
// parity wait (a suspend hint that nobody sets, and no memory clobber), so mbarriers are used directly, semantics spelled
// out.
#pragma once

#include <cstdint>

#include "../runtime/base/stamped.hpp"

namespace flywheel::ptx {

/// What compute capability 9.0 brought; the branches that need it are not compiled for older targets.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kHopper = true;
#else
inline constexpr bool kHopper = false;
#endif

/// How often a warp looks for another before it reckons with a long wait.
inline constexpr std::uint32_t kQuickLooks = 1024;

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// threadIdx.x, read here and now.
__device__ __forceinline__ std::uint32_t thread_of_block() {
  std::uint32_t thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread)::"memory");
  return thread;
}

/// The same pointer into the shared memory at `base`, which the compiler knows for what it is.
template <class T>
__device__ __forceinline__ T* as_shared(T* p, unsigned char* base) {
  return reinterpret_cast<T*>(base + (shared_address(p) - shared_address(base)));
}

__device__ __forceinline__ void mbarrier_init(std::uint64_t& barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}

/// The word may be initialised again.
__device__ __forceinline__ void mbarrier_invalidate(std::uint64_t& barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

/// Release at block scope: pairs with the acquire in mbarrier_test().
__device__ __forceinline__ void mbarrier_arrive(std::uint64_t& barrier) {
  asm volatile("{ .reg .b64 token; mbarrier.arrive.shared::cta.b64 token, [%0]; }" ::"r"(shared_address(&barrier))
               : "memory");
}

/// True if the phase of that parity is complete (acquire, block scope). Answers at once: for those who wait for one of
/// several things.
__device__ __forceinline__ bool mbarrier_poll(std::uint64_t& barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done) : "r"(shared_address(&barrier)), "r"(parity) : "memory");
  return done != 0;
}

/// The same for those who wait for nothing else: may suspend the thread for a while where the hardware can.
__device__ __forceinline__ bool mbarrier_test(std::uint64_t& barrier, std::uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  std::uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done) : "r"(shared_address(&barrier)), "r"(parity) : "memory");
  return done != 0;
#else
  return mbarrier_poll(barrier, parity);
#endif
}

/// mbarrier_poll() that comes after what `seen` was learnt from, and only if it is so. While an mbarrier_test() is suspended
/// the warp goes on, and a mere mbarrier_poll() behind it may tell what was so before (seen on an H200).
__device__ __forceinline__ bool mbarrier_poll_if(bool seen, std::uint64_t& barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{ .reg .pred p, q; setp.ne.u32 p, %3, 0; setp.ne.u32 q, %3, %3; "
      "@p mbarrier.test_wait.parity.shared::cta.b64 q, [%1], %2; selp.u32 %0, 1, 0, q; }"
      : "=r"(done) : "r"(shared_address(&barrier)), "r"(parity), "r"(std::uint32_t{seen}) : "memory");
  return done != 0;
}

/// A barrier among `threads` threads of the block that name the same id (1..15; 0 is __syncthreads).
__device__ __forceinline__ void named_barrier(std::uint32_t id, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Two stamped words in one load. Relaxed at device scope, each word whole; pairs with put_stamped().
__device__ __forceinline__ StampedPair load_two(const Stamped* at) {
  StampedPair pair;
  asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(pair.first.word), "=l"(pair.second.word) : "l"(at) : "memory");
  return pair;
}

/// Two in one store; pairs with look_at() and load_two().
__device__ __forceinline__ void store_two(Stamped* at, const StampedPair& pair) {
  asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(at), "l"(pair.first.word), "l"(pair.second.word) : "memory");
}

/// 16 bytes, aligned, that are read once. They take no line of L1, which has few beside a block's shared memory: a load that finds none
/// free holds up whatever the SM's warps load and store after it.
__device__ __forceinline__ void load_once(std::uint32_t (&to)[4], const void* from) {
  asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(from) : "memory");
}

// ---- copies that the hardware makes while threads go on ----

/// 16 bytes, both sides aligned to 16; past L1. Generic proxy: no proxy fence is needed on either side.
__device__ __forceinline__ void copy16(void* to_shared, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to_shared)), "l"(from) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until all but the last `kLeft` groups of this thread's copies have landed.
template <int kLeft>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}
/// The barrier gets one of the arrivals it expects when all copy16() of this thread so far have landed.
__device__ __forceinline__ void arrive_when_copied(std::uint64_t& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/// Makes initialised mbarriers known to the async proxy, before the first bulk copy names them.
__device__ __forceinline__ void publish_mbarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// What this thread has acquired of other threads' ordinary stores to global memory, its bulk copies see too.
__device__ __forceinline__ void fence_global_for_bulk_copies() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
/// What other threads have read of shared memory, as far as this thread knows by an mbarrier, comes before the bulk copies
/// that it starts there from now on. The mbarrier alone orders ordinary accesses: loads that were issued before the arrival
/// may still be on their way when a copy writes. (PTX ISA, "async proxy". Without it 2 of 12 runs of 8 texts of
/// Llama-3.2-1B on an H200 had other bits in whole rows, and 8 of 8 where warps look for words while others read pages; with
/// it none of 90. DeepEP met the same: github.com/deepseek-ai/DeepEP/pull/642.)
__device__ __forceinline__ void fence_shared_for_bulk_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// A cache policy for what is read once: it should not push out what is read again.
__device__ __forceinline__ std::uint64_t read_once_policy() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy)::"memory");
  return policy;
}
/// The one arrival of a barrier's phase, before the bulk copy that completes it.
__device__ __forceinline__ void expect_bytes(std::uint64_t& barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}
/// `bytes` is a multiple of 16, both sides are aligned to 16. The barrier's phase ends when the bytes have come, which it
/// expects by now; its waiters then see them (complete_tx releases to the acquire in mbarrier_test()).
__device__ __forceinline__ void bulk_copy(void* to_shared, const void* from, std::uint32_t bytes, std::uint64_t& barrier,
                                          std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
          shared_address(to_shared)),
      "l"(from), "r"(bytes), "r"(shared_address(&barrier)), "l"(policy)
      : "memory");
}
#else
__device__ __forceinline__ void publish_mbarriers() {}
__device__ __forceinline__ void fence_global_for_bulk_copies() {}
__device__ __forceinline__ void fence_shared_for_bulk_copies() {}
__device__ __forceinline__ std::uint64_t read_once_policy() { return 0; }
__device__ __forceinline__ void expect_bytes(std::uint64_t&, std::uint32_t) {}
__device__ __forceinline__ void bulk_copy(void*, const void*, std::uint32_t, std::uint64_t&, std::uint64_t) {}
#endif

// ---- tensor cores ----

/// sums += a * b: a 16 x 16 by rows, b 16 x 8 by columns, bf16 in, float out; PTX ISA, mma.m16n8k16.
__device__ __forceinline__ void mma_bf16(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
      : "memory");
}

/// The same in half precision.
__device__ __forceinline__ void mma_half(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
      : "memory");
}

}  // namespace flywheel::ptx
