// Bit arithmetic both processors can do.
#pragma once

#include <cstdint>

#include "runtime/platform.hpp"

namespace flywheel {

FLYWHEEL_TASK inline std::uint32_t count_bits(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__popc(bits));
#else
  return static_cast<std::uint32_t>(__builtin_popcount(bits));
#endif
}

/// Position of the lowest set bit; `bits` is not 0.
FLYWHEEL_TASK inline std::uint32_t lowest_bit(std::uint32_t bits) { return count_bits((bits & (0u - bits)) - 1); }

/// `bits` without its n lowest set bits.
FLYWHEEL_TASK inline std::uint32_t drop_bits(std::uint32_t bits, std::uint32_t n) {
  for (; n && bits; --n) bits &= bits - 1;
  return bits;
}

/// The n lowest set bits of `bits`.
FLYWHEEL_TASK inline std::uint32_t lowest_bits(std::uint32_t bits, std::uint32_t n) {
  return bits & ~drop_bits(bits, n);
}

/// Position of the n-th (from 0) set bit, or 0 if there are fewer.
FLYWHEEL_TASK inline std::uint32_t nth_bit(std::uint32_t bits, std::uint32_t n) {
  const std::uint32_t rest = drop_bits(bits, n);
  return rest ? lowest_bit(rest) : 0;
}

}  // namespace flywheel
