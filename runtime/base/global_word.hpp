// Read-modify-writes of words in a GPU's global memory, in PTX with the .global state space. For AtomicRef (platform.hpp).
//
// cuda::atomic_ref takes generic addresses. For 64-bit words ptxas then emits an attempt and, in case the word lies in shared
// memory, a loop (ATOM, QSPC, ATOMS.CAST.SPIN; nvcc 13.0), so even a thread that ignores the old value waits for a round trip
// to L2. A `red` of global memory does not wait. The scope is the GPU. Each call site states its order, pair and reason.
#pragma once

#include <cstdint>

#include "order.hpp"

#ifdef __CUDA_ARCH__

namespace flywheel::detail {

// `sem` is the order that the caller of AtomicRef names, with its pair; the scope is the GPU.
#define FLYWHEEL_ATOM(sem, op, type, reg) \
  asm volatile("atom." sem ".gpu.global." op "." type " %0, [%1], %2;" : "=" reg(old) : "l"(word), reg(value) : "memory")
#define FLYWHEEL_RED(sem, op, type, reg) \
  asm volatile("red." sem ".gpu.global." op "." type " [%0], %1;" ::"l"(word), reg(value) : "memory")

/// Defines name(word, value, order), which returns the old value.
#define FLYWHEEL_GLOBAL_FETCH(name, bits, op, type, reg)                            \
  __device__ __forceinline__ bits name(const bits* word, bits value, Order order) { \
    bits old;                                                                       \
    if (order == Order::relaxed) FLYWHEEL_ATOM("relaxed", op, type, reg);           \
    else if (order == Order::acquire) FLYWHEEL_ATOM("acquire", op, type, reg);      \
    else if (order == Order::release) FLYWHEEL_ATOM("release", op, type, reg);      \
    else FLYWHEEL_ATOM("acq_rel", op, type, reg);                                   \
    return old;                                                                     \
  }
/// Defines name(word, value, order) without a result. The order is relaxed or release.
#define FLYWHEEL_GLOBAL_UPDATE(name, bits, op, type, reg)                           \
  __device__ __forceinline__ void name(const bits* word, bits value, Order order) { \
    if (order == Order::relaxed) FLYWHEEL_RED("relaxed", op, type, reg);            \
    else FLYWHEEL_RED("release", op, type, reg);                                    \
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

/// Relaxed fetch_and if `wanted`, whose pair the caller names; otherwise leaves the word alone and returns 0. A predicate
/// replaces the branch: where two branches join, a move of the result would wait for it before it is used.
__device__ __forceinline__ std::uint64_t global_fetch_and_if(bool wanted, const std::uint64_t* word, std::uint64_t value) {
  std::uint64_t old;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; mov.b64 %0, 0; @p atom.relaxed.gpu.global.and.b64 %0, [%1], %2; }"
               : "=&l"(old)
               : "l"(word), "l"(value), "r"(std::uint32_t{wanted})
               : "memory");
  return old;
}

#undef FLYWHEEL_ATOM
#undef FLYWHEEL_RED
#undef FLYWHEEL_GLOBAL_FETCH
#undef FLYWHEEL_GLOBAL_UPDATE

}  // namespace flywheel::detail

#endif
