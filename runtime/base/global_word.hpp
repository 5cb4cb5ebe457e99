// Read-modify-writes of words in a GPU's global memory, by PTX that names the memory.
//
// cuda::atomic_ref's are of generic addresses. Of 64 bits ptxas makes those an attempt and, should the word turn out to be in
// shared memory, a loop (ATOM, QSPC, ATOMS.CAST.SPIN; nvcc 13.0): who does not want the old value waits a trip to L2 for
// the answer all the same. A `red` of global memory waits for nothing.
#pragma once

#include <cstdint>

#include "order.hpp"

#ifdef __CUDA_ARCH__

namespace flywheel::detail {

#define FLYWHEEL_ATOM(sem, op, type, reg) \
  asm volatile("atom." sem ".gpu.global." op "." type " %0, [%1], %2;" : "=" reg(old) : "l"(word), reg(value) : "memory")
#define FLYWHEEL_RED(sem, op, type, reg) \
  asm volatile("red." sem ".gpu.global." op "." type " [%0], %1;" ::"l"(word), reg(value) : "memory")

/// name(word, value, order) gives the old value.
#define FLYWHEEL_GLOBAL_FETCH(name, bits, op, type, reg)                                                  \
  __device__ __forceinline__ bits name(const bits* word, bits value, Order order) {                       \
    bits old;                                                                                             \
    if (order == Order::relaxed) FLYWHEEL_ATOM("relaxed", op, type, reg);                                 \
    else if (order == Order::acquire) FLYWHEEL_ATOM("acquire", op, type, reg);                            \
    else if (order == Order::release) FLYWHEEL_ATOM("release", op, type, reg);                            \
    else FLYWHEEL_ATOM("acq_rel", op, type, reg);                                                         \
    return old;                                                                                           \
  }
/// name(word, value, order) tells nothing; relaxed or release.
#define FLYWHEEL_GLOBAL_UPDATE(name, bits, op, type, reg)                                                 \
  __device__ __forceinline__ void name(const bits* word, bits value, Order order) {                       \
    if (order == Order::relaxed) FLYWHEEL_RED("relaxed", op, type, reg);                                  \
    else FLYWHEEL_RED("release", op, type, reg);                                                          \
  }

FLYWHEEL_GLOBAL_FETCH(global_fetch_add, std::uint32_t, "add", "u32", "r")
FLYWHEEL_GLOBAL_FETCH(global_fetch_add, std::uint64_t, "add", "u64", "l")
FLYWHEEL_GLOBAL_FETCH(global_fetch_or, std::uint32_t, "or", "b32", "r")
FLYWHEEL_GLOBAL_FETCH(global_fetch_or, std::uint64_t, "or", "b64", "l")
FLYWHEEL_GLOBAL_FETCH(global_fetch_and, std::uint32_t, "and", "b32", "r")
FLYWHEEL_GLOBAL_FETCH(global_fetch_and, std::uint64_t, "and", "b64", "l")
FLYWHEEL_GLOBAL_FETCH(global_exchange, std::uint32_t, "exch", "b32", "r")
FLYWHEEL_GLOBAL_FETCH(global_exchange, std::uint64_t, "exch", "b64", "l")
FLYWHEEL_GLOBAL_UPDATE(global_add, std::uint32_t, "add", "u32", "r")
FLYWHEEL_GLOBAL_UPDATE(global_add, std::uint64_t, "add", "u64", "l")
FLYWHEEL_GLOBAL_UPDATE(global_set, std::uint32_t, "or", "b32", "r")
FLYWHEEL_GLOBAL_UPDATE(global_set, std::uint64_t, "or", "b64", "l")

/// Relaxed, and only if `wanted`; 0 otherwise. Without a branch: where one joined, the answer would be waited for to be moved.
__device__ __forceinline__ std::uint64_t global_fetch_and_if(bool wanted, const std::uint64_t* word, std::uint64_t value) {
  std::uint64_t old;
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %3, 0; mov.b64 %0, 0; @p atom.relaxed.gpu.global.and.b64 %0, [%1], %2; }"
      : "=&l"(old) : "l"(word), "l"(value), "r"(std::uint32_t{wanted}) : "memory");
  return old;
}

#undef FLYWHEEL_ATOM
#undef FLYWHEEL_RED
#undef FLYWHEEL_GLOBAL_FETCH
#undef FLYWHEEL_GLOBAL_UPDATE

}  // namespace flywheel::detail

#endif
