// Bit arithmetic for host and GPU. The idle set uses it (runtime/records/idle.hpp), and the search for runs with roots left.
#pragma once

#include <cstdint>

#include "platform.hpp"

namespace flywheel::detail {

/// Number of set bits.
FLYWHEEL_TASK inline std::uint32_t count_bits(std::uint64_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__popcll(bits));
#else
  return static_cast<std::uint32_t>(__builtin_popcountll(bits));
#endif
}

/// Position of the lowest set bit, from 0. `bits` must not be 0.
FLYWHEEL_TASK inline std::uint32_t lowest_bit(std::uint64_t bits) { return count_bits((bits & (0 - bits)) - 1); }
/// The same for 32 bits: on a GPU two instructions.
FLYWHEEL_TASK inline std::uint32_t lowest_of_32(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits))) - 1;
#else
  return lowest_bit(bits);
#endif
}

/// How many bits are set from position 0 on, before the first that is not.
FLYWHEEL_TASK inline std::uint32_t low_ones(std::uint32_t bits) { return ~bits ? lowest_of_32(~bits) : 32; }

/// Selects up to n set bits of `bits`: the first ones from position `start` (below 64) upwards, then on from position 0.
FLYWHEEL_TASK inline std::uint64_t pick_bits(std::uint64_t bits, std::uint32_t n, std::uint32_t start) {
  if (n >= count_bits(bits)) return bits;
  const std::uint64_t turned = start ? (bits >> start) | (bits << (64 - start)) : bits;
  std::uint64_t rest = turned;
  for (; n && rest; --n) rest &= rest - 1;
  const std::uint64_t picked = turned & ~rest;
  return start ? (picked << start) | (picked >> (64 - start)) : picked;
}

}  // namespace flywheel::detail
