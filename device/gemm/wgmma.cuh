// Wrappers for PTX of compute capability 9.0a: products by a warpgroup (wgmma), and copies of boxes of a matrix by tensor maps.
// Where the compiler has none of it, FLYWHEEL_HAS_WGMMA is 0. PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" and
// "cp.async.bulk.tensor".
//
// A box of 64 values of each row lies in shared memory as lines of 128 bytes, one for each row, whose 16-byte parts are
// permuted within groups of 8 lines ("128-byte swizzle"). So a box begins at a multiple of 1024 bytes.
#pragma once

#include <flywheel/detail/ptx.cuh>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define FLYWHEEL_HAS_WGMMA 1
#else
#define FLYWHEEL_HAS_WGMMA 0
#endif

#if FLYWHEEL_HAS_WGMMA

namespace flywheel::detail::ptx {

/// Makes a tensor map in global memory that the host has written known to this thread's later tensor copies. Acquire at device
/// scope from the generic proxy to the tensormap proxy; pairs with the host's copy of the map, which has ended before the task
/// was submitted.
__device__ __forceinline__ void acquire_tensor_map(const void* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

/// What L2 does with a line when it needs room: gives it up like any other, or first. The words that createpolicy.fractional.L2
/// makes for all of an access, as CUTLASS has them (cute::TMA::CacheHintSm90).
inline constexpr std::uint64_t kEvictNormal = 0x1000000000000000, kEvictFirst = 0x12f0000000000000;

/// Starts the copy of a box of a matrix to shared memory: values from `x` on of the rows from `y` on. What lies outside of the
/// matrix comes as zeros. complete_tx on the barrier is a release at block scope, as in bulk_copy(). `policy`: one of the
/// above.
__device__ __forceinline__ void tensor_copy(void* to_shared, const void* map, std::uint32_t x, std::uint32_t y,
                                            std::uint64_t& barrier, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], [%4], "
      "%5;" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(&barrier)), "l"(policy)
      : "memory");
}

/// Bytes that are to land in the current phase of a barrier, beside those that its arrival expects. Relaxed, block scope: pairs
/// with nothing, because the phase's one arrival, expect_bytes() or mbarrier_arrive(), comes later.
__device__ __forceinline__ void expect_more_bytes(std::uint64_t& barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}

/// Starts the copy of a box from shared memory to a matrix, by the async proxy. A proxy fence lies between the stores to the
/// box and this. Completion: commit_stored_boxes(), then wait_stored_boxes() or wait_stored_all().
__device__ __forceinline__ void tensor_store(const void* map, std::uint32_t x, std::uint32_t y, const void* from_shared) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y),
               "r"(shared_address(from_shared))
               : "memory");
}
/// The same, but the box is added to the matrix, of floats: each value of it by one atomic addition in L2.
__device__ __forceinline__ void tensor_add(const void* map, std::uint32_t x, std::uint32_t y, const void* from_shared) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x),
               "r"(y), "r"(shared_address(from_shared))
               : "memory");
}
/// The same of a stretch of bytes, a multiple of 16, both sides aligned to 16.
__device__ __forceinline__ void bulk_store(void* to, const void* from_shared, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from_shared)),
               "r"(bytes)
               : "memory");
}
/// Closes a group of this thread's copies.
__device__ __forceinline__ void commit_stored_boxes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until all but the last `kLeft` groups have read their boxes.
template <int kLeft>
__device__ __forceinline__ void wait_stored_boxes() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
/// Waits until all of this thread's copies are in memory, where this thread sees them.
__device__ __forceinline__ void wait_stored_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

/// The matrix descriptor of a box with lines of 128 bytes: its address, 1024 bytes from one group of 8 lines to the next, and
/// the 128-byte swizzle. The next 16 values of the lines are 32 bytes on, kDescriptorStep.
__device__ __forceinline__ std::uint64_t box_descriptor(const void* box) {
  return (shared_address(box) % (1u << 18)) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 |
         std::uint64_t{1} << 62;
}
inline constexpr std::uint64_t kDescriptorStep = 32 >> 4;

/// Before the first product of a group. Orders this warp's accesses to the registers of the sums before those of the products,
/// which are asynchronous; no memory.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Closes a group of this warpgroup's products.
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until all but the last `kLeft` groups have ended: their boxes may be overwritten.
template <int kLeft>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

/// Waits until all groups have ended: the sums are there. As far as the compiler knows, each of them is written here. So it
/// moves nothing that reads one in front of the wait, where ptxas would let no product overlap with another (its note C7514).
template <int kSums>
__device__ __forceinline__ void finish_products(float (&sums)[kSums]) {
  wait_products<0>();
#pragma unroll
  for (float& sum : sums) asm volatile("" : "+f"(sum)::"memory");
}

#define FLYWHEEL_4_SUMS(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define FLYWHEEL_16_SUMS(i) FLYWHEEL_4_SUMS(i), FLYWHEEL_4_SUMS(i + 4), FLYWHEEL_4_SUMS(i + 8), FLYWHEEL_4_SUMS(i + 12)

// sums += a * b, by the four warps of a warpgroup: a 64 x 16, b 16 x (twice the number of sums), both from boxes in shared
// memory. A warp has 16 rows: sums[4 j + 2 h + i] of lane l is row l / 4 + 8 h, column 8 j + 2 (l % 4) + i.

__device__ __forceinline__ void multiply_boxes(float (&sums)[8], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "{ .reg .pred p; setp.eq.u32 p, 0, 0; "
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7"
      "}, %8, %9, p, 1, 1, 0, 0; }"
      : FLYWHEEL_4_SUMS(0), FLYWHEEL_4_SUMS(4)
      : "l"(a), "l"(b)
      : "memory");
}

__device__ __forceinline__ void multiply_boxes(float (&sums)[32], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "{ .reg .pred p; setp.eq.u32 p, 0, 0; "
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, "
      "%25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, 0, 0; }"
      : FLYWHEEL_16_SUMS(0), FLYWHEEL_16_SUMS(16)
      : "l"(a), "l"(b)
      : "memory");
}

__device__ __forceinline__ void multiply_boxes(float (&sums)[64], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "{ .reg .pred p; setp.eq.u32 p, 0, 0; "
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, "
      "%25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, 0; }"
      : FLYWHEEL_16_SUMS(0), FLYWHEEL_16_SUMS(16), FLYWHEEL_16_SUMS(32), FLYWHEEL_16_SUMS(48)
      : "l"(a), "l"(b)
      : "memory");
}

__device__ __forceinline__ void multiply_boxes(float (&sums)[128], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "{ .reg .pred p; setp.eq.u32 p, 0, 0; "
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, "
      "%25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, "
      "%71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, "
      "%94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, "
      "%114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0; }"
      : FLYWHEEL_16_SUMS(0), FLYWHEEL_16_SUMS(16), FLYWHEEL_16_SUMS(32), FLYWHEEL_16_SUMS(48), FLYWHEEL_16_SUMS(64),
        FLYWHEEL_16_SUMS(80), FLYWHEEL_16_SUMS(96), FLYWHEEL_16_SUMS(112)
      : "l"(a), "l"(b)
      : "memory");
}

#undef FLYWHEEL_16_SUMS
#undef FLYWHEEL_4_SUMS

}  // namespace flywheel::detail::ptx

#endif  // FLYWHEEL_HAS_WGMMA
