// Wrappers for the PTX instructions that the kernel uses directly: mbarriers, named barriers, asynchronous copies,
// proxy fences and tensor cores. group.cuh and collectives.cuh include it, and through them every role.
//
// mbarriers are used through PTX, with their memory orders in each docstring, because cuda::barrier in CCCL 3.0.1 has
// two defects in its block-scope parity wait: a suspend hint that is never initialised, and a missing memory clobber.
#pragma once

#include <cstdint>

#include "../runtime/base/stamped.hpp"

namespace flywheel::detail::ptx {

/// True where the target has the features of compute capability 9.0. Branches that need them are discarded for older
/// targets.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kHopper = true;
#else
inline constexpr bool kHopper = false;
#endif

/// What a pass over arrays reads, in bytes of a block, if warps are to copy ahead for it: below that, and so mostly from L2,
/// loads of the threads' own are quicker.
inline constexpr std::uint32_t kLeastCopiedAhead = 1u << 20;
/// How often a warp polls another warp of its block before it changes to the slow path with a time limit.
inline constexpr std::uint32_t kQuickPolls = 1024;

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// threadIdx.x, read at the call: the volatile asm keeps the compiler from holding it in a register across a task body.
__device__ __forceinline__ std::uint32_t thread_of_block() {
  std::uint32_t thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread)::"memory");
  return thread;
}

/// `p` as a pointer derived from `base`, which the compiler knows to be shared memory. The compiler then emits shared
/// loads and stores where `p` alone would give generic ones. Both point into shared memory.
template <class T>
__device__ __forceinline__ T* as_shared(T* p, unsigned char* base) {
  return reinterpret_cast<T*>(base + (shared_address(p) - shared_address(base)));
}

/// Starts a barrier at phase 0 with `arrivals` expected arrivals in each phase. No order: other threads may use the
/// barrier once a block barrier, or a release and acquire, orders them after this call.
__device__ __forceinline__ void mbarrier_init(std::uint64_t& barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}

/// Ends the life of a barrier, so that mbarrier_init() may use its word again. No order: no thread uses the barrier meanwhile.
__device__ __forceinline__ void mbarrier_invalidate(std::uint64_t& barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

/// One arrival. Release at block scope: pairs with the acquire in mbarrier_test(), mbarrier_poll() and
/// mbarrier_poll_if() of the same barrier.
__device__ __forceinline__ void mbarrier_arrive(std::uint64_t& barrier) {
  asm volatile("{ .reg .b64 token; mbarrier.arrive.shared::cta.b64 token, [%0]; }" ::"r"(shared_address(&barrier)) : "memory");
}

/// True if the phase with that parity is complete. Acquire at block scope: pairs with mbarrier_arrive() of every thread
/// that arrived in the phase, and with the complete_tx of bulk_copy(). Never suspends: for a thread that polls several
/// words in turn.
__device__ __forceinline__ bool mbarrier_poll(std::uint64_t& barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(shared_address(&barrier)), "r"(parity)
               : "memory");
  return done != 0;
}

/// The same, acquire and pairs too, for a thread that waits for this barrier alone. On compute capability 9.0 and up the
/// hardware may suspend the thread for a bounded time before it answers.
__device__ __forceinline__ bool mbarrier_test(std::uint64_t& barrier, std::uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  std::uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(shared_address(&barrier)), "r"(parity)
               : "memory");
  return done != 0;
#else
  return mbarrier_poll(barrier, parity);
#endif
}

/// mbarrier_poll() that is ordered after the load that gave `seen`; false if `seen` is false. The predicate is a true
/// dependency on that load. A plain mbarrier_poll() after an mbarrier_test() is not ordered so: while the mbarrier_test()
/// is suspended the warp runs on, and the poll may return an older state (seen on an H200).
__device__ __forceinline__ bool mbarrier_poll_if(bool seen, std::uint64_t& barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{ .reg .pred p, q; setp.ne.u32 p, %3, 0; setp.ne.u32 q, %3, %3; "
      "@p mbarrier.test_wait.parity.shared::cta.b64 q, [%1], %2; selp.u32 %0, 1, 0, q; }"
      : "=r"(done)
      : "r"(shared_address(&barrier)), "r"(parity), "r"(std::uint32_t{seen})
      : "memory");
  return done != 0;
}

/// A barrier among `threads` threads of the block that name the same id (1..15; 0 is __syncthreads). Release and acquire at
/// block scope: pairs with itself in those threads. What each wrote before the call is visible to all of them after it.
__device__ __forceinline__ void named_barrier(std::uint32_t id, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// The same with a vote: each thread gets the number of those whose `vote` is true. Release and acquire at block scope, because
/// it stands in for named_barrier(): pairs with itself in those threads. All that meet call this one; in one use of a barrier
/// it does not mix with named_barrier() (PTX ISA, barrier).
__device__ __forceinline__ std::uint32_t named_barrier_count(std::uint32_t id, std::uint32_t threads, bool vote) {
  std::uint32_t count;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; bar.red.popc.u32 %0, %1, %2, p; }"
               : "=r"(count)
               : "r"(id), "r"(threads), "r"(std::uint32_t{vote})
               : "memory");
  return count;
}

/// Loads two stamped words with one instruction. Relaxed at device scope, and each word is single-copy atomic; pairs with
/// put_stamped() and store_two(). Relaxed is enough because a word's stamp tells whether its value is there, and the word
/// publishes nothing else.
__device__ __forceinline__ StampedPair load_two(const Stamped* at) {
  StampedPair pair;
  asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];"
               : "=l"(pair.first.word), "=l"(pair.second.word)
               : "l"(at)
               : "memory");
  return pair;
}

/// Stores two stamped words with one instruction. Relaxed at device scope, as in load_two(); pairs with look_at() and
/// load_two().
__device__ __forceinline__ void store_two(Stamped* at, const StampedPair& pair) {
  asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(at), "l"(pair.first.word), "l"(pair.second.word)
               : "memory");
}

/// Loads 16 bytes, aligned to 16, that are read once. The load allocates no line in L1, which has few lines beside a
/// block's shared memory: a load that finds no free line delays all later loads and stores of the SM's warps.
__device__ __forceinline__ void load_once(std::uint32_t (&to)[4], const void* from) {
  asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "l"(from)
               : "memory");
}
/// If `there`, loads 1, 2, 4, 8 or 16 bytes, aligned to as many; else zeros. Fewer than 4 bytes come with zeros behind them. A
/// weak load, as a plain one: that it takes no line of L1 is a hint. The predicate is part of the instruction, so that nothing
/// keeps the compiler from issuing many of them in a row.
template <std::size_t kBytes>
__device__ __forceinline__ void load_vector_if(bool there, std::uint32_t (&to)[(kBytes + 3) / 4], const void* from) {
  static_assert(kBytes == 1 || kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes == 16);
  for (std::uint32_t& word : to) word = 0;
  if constexpr (kBytes == 16)
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(to[0]), "+r"(to[1]), "+r"(to[2]), "+r"(to[3])
                 : "l"(from), "r"(std::uint32_t{there})
                 : "memory");
  else if constexpr (kBytes == 8)
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; @p ld.global.L1::no_allocate.v2.b32 {%0, %1}, [%2]; }"
                 : "+r"(to[0]), "+r"(to[1])
                 : "l"(from), "r"(std::uint32_t{there})
                 : "memory");
  else if constexpr (kBytes == 4)
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.L1::no_allocate.b32 %0, [%1]; }"
                 : "+r"(to[0])
                 : "l"(from), "r"(std::uint32_t{there})
                 : "memory");
  else if constexpr (kBytes == 2)
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.L1::no_allocate.u16 %0, [%1]; }"
                 : "+r"(to[0])
                 : "l"(from), "r"(std::uint32_t{there})
                 : "memory");
  else
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.L1::no_allocate.u8 %0, [%1]; }"
                 : "+r"(to[0])
                 : "l"(from), "r"(std::uint32_t{there})
                 : "memory");
}
/// Stores as many, the lower bytes of a word first. A weak store, without a hint.
template <std::size_t kBytes>
__device__ __forceinline__ void store_vector(void* to, const std::uint32_t (&from)[(kBytes + 3) / 4]) {
  static_assert(kBytes == 1 || kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes == 16);
  if constexpr (kBytes == 16)
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
  else if constexpr (kBytes == 8)
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(from[0]), "r"(from[1]) : "memory");
  else if constexpr (kBytes == 4) asm volatile("st.global.b32 [%0], %1;" ::"l"(to), "r"(from[0]) : "memory");
  else if constexpr (kBytes == 2) asm volatile("st.global.u16 [%0], %1;" ::"l"(to), "r"(from[0]) : "memory");
  else asm volatile("st.global.u8 [%0], %1;" ::"l"(to), "r"(from[0]) : "memory");
}
/// Whether the address is in global memory, which the two reach.
__device__ __forceinline__ bool is_global(const void* p) { return __isGlobal(p); }

// ---- asynchronous copies ----

/// Starts the copy of the 128 bytes around an address in global memory to L2. A hint: no order.
__device__ __forceinline__ void prefetch(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory"); }

/// The same to L1, where it stays until the SM's next acquire.
__device__ __forceinline__ void prefetch_to_l1(const void* at) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(at) : "memory");
}

/// Starts a copy of 16 bytes, both sides aligned to 16; bypasses L1. It is part of the generic proxy, so neither side
/// needs a proxy fence. Completion: wait_copies() of the same thread, or arrive_when_copied().
__device__ __forceinline__ void copy16(void* to_shared, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to_shared)), "l"(from) : "memory");
}
/// Closes a group of this thread's copy16() for wait_copies().
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until all but the last `kLeft` groups of this thread's copies have landed. Only this thread sees the bytes then:
/// it publishes them with a release of its own.
template <int kLeft>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}
/// Makes one of the arrivals that the barrier expects once all earlier copy16() of this thread have landed. The
/// arrival releases the copied bytes: pairs with the acquire in mbarrier_test().
__device__ __forceinline__ void arrive_when_copied(std::uint64_t& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/// Makes initialised mbarriers visible to the async proxy: a release of mbarrier_init(). Pairs with bulk_copy(): its
/// complete_tx finds an initialised barrier. Called after mbarrier_init(), at the end of init_roles().
__device__ __forceinline__ void publish_mbarriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
/// Orders this thread's later bulk copies after the generic-proxy stores to global memory that this thread has acquired
/// from other threads. The acquire alone orders generic accesses; a bulk copy reads through the async proxy.
__device__ __forceinline__ void fence_global_for_bulk_copies() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
/// Orders this thread's later bulk copies into shared memory after the generic-proxy reads of it by other threads that an
/// mbarrier orders before this call. The mbarrier alone orders generic accesses: a load that was issued before the arrival
/// may still be under way when a bulk copy writes (PTX ISA, "async proxy"). Without this fence 2 of 12 decode runs on an
/// H200 had wrong rows, with it none of 90: see tuning.md.
__device__ __forceinline__ void fence_shared_for_bulk_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// An L2 cache policy (evict first) for data that is read once, so that it does not evict data that is read again.
__device__ __forceinline__ std::uint64_t read_once_policy() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy)::"memory");
  return policy;
}
/// The one arrival of a barrier's phase, and the number of bytes whose landing completes that phase. Release at block
/// scope: pairs with the acquire in mbarrier_test(). Called before the bulk copies that bring the bytes.
__device__ __forceinline__ void expect_bytes(std::uint64_t& barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes) : "memory");
}
/// Starts a copy from global to shared memory by the async proxy. `bytes` is a multiple of 16, both sides are aligned to
/// 16. The barrier's phase completes when all bytes named by expect_bytes() have landed. complete_tx is a release at
/// block scope: pairs with the acquire in mbarrier_test(), after which the waiting thread sees the bytes.
__device__ __forceinline__ void bulk_copy(void* to_shared, const void* from, std::uint32_t bytes, std::uint64_t& barrier,
                                          std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
          shared_address(to_shared)),
      "l"(from), "r"(bytes), "r"(shared_address(&barrier)), "l"(policy)
      : "memory");
}
/// The same, and with the same order, for data that may be read again: without a policy.
__device__ __forceinline__ void bulk_copy(void* to_shared, const void* from, std::uint32_t bytes, std::uint64_t& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to_shared)),
               "l"(from), "r"(bytes), "r"(shared_address(&barrier))
               : "memory");
}
#else
__device__ __forceinline__ void publish_mbarriers() {}
__device__ __forceinline__ void fence_global_for_bulk_copies() {}
__device__ __forceinline__ void fence_shared_for_bulk_copies() {}
__device__ __forceinline__ std::uint64_t read_once_policy() { return 0; }
__device__ __forceinline__ void expect_bytes(std::uint64_t&, std::uint32_t) {}
__device__ __forceinline__ void bulk_copy(void*, const void*, std::uint32_t, std::uint64_t&, std::uint64_t) {}
__device__ __forceinline__ void bulk_copy(void*, const void*, std::uint32_t, std::uint64_t&) {}
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

/// Adds to two neighbouring floats in global memory, aligned to 8 bytes, to which no other thread adds meanwhile. Relaxed: the
/// sync() at the end of the task orders it before what the worker releases; that pairs with what later readers wait for.
__device__ __forceinline__ void add_two(float* to, float low, float high) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(low), "f"(high) : "memory");
#else
  to[0] += low;
  to[1] += high;
#endif
}

/// Two floats as bf16, the first in the lower half: the nearest, of two as near the even one.
__device__ __forceinline__ std::uint32_t bf16_pair(float low, float high) {
  std::uint32_t pair;
  asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low) : "memory");
  return pair;
}

/// The same with a and b in half precision.
__device__ __forceinline__ void mma_half(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
      : "memory");
}

}  // namespace flywheel::detail::ptx
