// Bf16: the bfloat16 numbers of matrices, for processors and compilers that have no type for them.
#pragma once

#include <bit>
#include <cstdint>

#include "../base/platform.hpp"

namespace flywheel {

/// A bfloat16 number: the upper half of a float. The same bits as CUDA's __nv_bfloat16.
struct Bf16 {
  std::uint16_t bits;

  FLYWHEEL_TASK constexpr float value() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  /// The nearest one; of two that are as near, the even one. A NaN stays one.
  FLYWHEEL_TASK static constexpr Bf16 nearest(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    if ((word << 1) > (255u << 24)) return {static_cast<std::uint16_t>(word >> 16 | 1 << 6)};
    return {static_cast<std::uint16_t>((word + (1u << 15) - 1 + (word >> 16 & 1)) >> 16)};
  }
};

}  // namespace flywheel
