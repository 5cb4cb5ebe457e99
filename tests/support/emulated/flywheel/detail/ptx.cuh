// In place of device/ptx.cuh: the same functions, carried out by the emulated block.
#pragma once

#include "runtime/base/stamped.hpp"
#include "runtime/gemm/bf16.hpp"
#include "support/emulated/cuda.hpp"

namespace flywheel::detail::ptx {

/// Which of the two ways pages come is DeviceState::bulk_copies alone.
inline constexpr bool kHopper = true;
/// Little, so that short passes copy ahead.
inline constexpr std::uint32_t kLeastCopiedAhead = 64u << 10;
/// Few, so that lanes come to the end of them one by one.
inline constexpr std::uint32_t kQuickPolls = 3;

inline testing::EmulatedBlock::Call block() { return testing::EmulatedBlock::current(); }

inline std::uint32_t thread_of_block() { return threadIdx.x; }

inline std::uint32_t shared_address(const void* p) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p)); }
template <class T>
T* as_shared(T* p, unsigned char*) {
  return p;
}

inline void mbarrier_init(std::uint64_t& barrier, std::uint32_t arrivals) { block()->init(barrier, arrivals); }
inline void mbarrier_invalidate(std::uint64_t& barrier) { block()->invalidate(barrier); }
inline void mbarrier_arrive(std::uint64_t& barrier) { block()->arrive(barrier); }
inline bool mbarrier_test(std::uint64_t& barrier, std::uint32_t parity) { return block()->test(barrier, parity); }
inline bool mbarrier_poll(std::uint64_t& barrier, std::uint32_t parity) { return block()->poll(barrier, parity); }
inline bool mbarrier_poll_if(bool seen, std::uint64_t& barrier, std::uint32_t parity) {
  return seen && block()->poll_at_last(barrier, parity);
}
inline void named_barrier(std::uint32_t id, std::uint32_t threads) { block()->named_barrier(id, threads); }
inline std::uint32_t named_barrier_count(std::uint32_t id, std::uint32_t threads, bool vote) {
  return block()->named_barrier_count(id, threads, vote);
}

inline void check_two(const Stamped* at) {
  if (reinterpret_cast<std::uintptr_t>(at) % 16)
    block()->fail(block()->here() + " loads or stores two words at an address that is not aligned to 16 bytes");
}

inline StampedPair load_two(const Stamped* at) {
  check_two(at);
  block()->look();
  return {look_at(at[0]), look_at(at[1])};
}

inline void check_vector(const void* at, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(at) % bytes)
    block()->fail(block()->here() + " loads or stores a vector of " + std::to_string(bytes) +
                  " bytes at an address that is not aligned to it");
}
inline void load_once(std::uint32_t (&to)[4], const void* from) { std::memcpy(to, from, sizeof to); }
template <std::size_t kBytes>
void load_vector_if(bool there, std::uint32_t (&to)[(kBytes + 3) / 4], const void* from) {
  std::memset(to, 0, sizeof to);
  if (!there) return;
  check_vector(from, kBytes);
  std::memcpy(to, from, kBytes);
}
template <std::size_t kBytes>
void store_vector(void* to, const std::uint32_t (&from)[(kBytes + 3) / 4]) {
  check_vector(to, kBytes);
  std::memcpy(to, from, kBytes);
}
inline bool is_global(const void*) { return true; }

inline void store_two(Stamped* at, const StampedPair& pair) {
  check_two(at);
  put_stamped(at[0], pair.first.bits(), pair.first.stamp());
  put_stamped(at[1], pair.second.bits(), pair.second.stamp());
}

inline void prefetch(const void*) {}
inline void prefetch_to_l1(const void*) {}
inline void copy16(void* to_shared, const void* from) { block()->copy16(to_shared, from); }
inline void commit_copies() { block()->commit_copies(); }
template <int kLeft>
void wait_copies() {
  block()->wait_copies(kLeft);
}
inline void arrive_when_copied(std::uint64_t& barrier) { block()->arrive_when_copied(barrier); }

inline void publish_mbarriers() { block()->publish_mbarriers(); }
inline void fence_global_for_bulk_copies() { block()->fence_global_for_bulk_copies(); }
inline void fence_shared_for_bulk_copies() { block()->fence_shared_for_bulk_copies(); }
inline std::uint64_t read_once_policy() { return 0; }
inline void expect_bytes(std::uint64_t& barrier, std::uint32_t bytes) { block()->expect_bytes(barrier, bytes); }
inline void bulk_copy(void* to_shared, const void* from, std::uint32_t bytes, std::uint64_t& barrier, std::uint64_t) {
  block()->bulk_copy(to_shared, from, bytes, barrier);
}

inline void bulk_copy(void* to_shared, const void* from, std::uint32_t bytes, std::uint64_t& barrier) {
  block()->bulk_copy(to_shared, from, bytes, barrier);
}

inline void add_two(float* to, float low, float high) {
  check_vector(to, 8);
  to[0] += low;
  to[1] += high;
}
inline std::uint32_t bf16_pair(float low, float high) {
  return Bf16::nearest(low).bits | std::uint32_t{Bf16::nearest(high).bits} << 16;
}
inline void mma_bf16(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  block()->template multiply_add<testing::Bf16Pair>("mma_bf16()", sums, a, b);
}
inline void mma_half(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  block()->template multiply_add<testing::HalfPair>("mma_half()", sums, a, b);
}

}  // namespace flywheel::detail::ptx
