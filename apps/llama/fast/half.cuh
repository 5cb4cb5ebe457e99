// IEEE half precision, which keys and values are kept in: 11 bits where bf16 has 8, in a range that they do not leave.
#pragma once

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

#include "apps/llama/fast/inputs.cuh"

namespace flywheel::llama {

struct Half {
  std::uint16_t bits;
};

/// What is too large becomes the largest, 65504.
FLYWHEEL_TASK inline float clamp_to_half(float value) { return value > 65504.f ? 65504.f : value < -65504.f ? -65504.f : value; }

/// To nearest, ties to even; for what clamp_to_half() leaves as it is.
FLYWHEEL_TASK inline std::uint32_t round_inside_half(float inside) {
#ifdef __CUDA_ARCH__
  return __half_as_ushort(__float2half_rn(inside));
#else
  const std::uint32_t all = std::bit_cast<std::uint32_t>(inside), sign = all >> 16 & 0x8000u, bits = all & 0x7fffffffu;
  if (bits < 0x38800000u)  // below 2^-14 there are only multiples of 2^-24
    return sign | static_cast<std::uint32_t>(std::nearbyint(std::bit_cast<float>(bits) * 16777216.f));
  const std::uint32_t moved = bits - (112u << 23);  // exponents begin 112 lower
  return sign | (moved + 0xfffu + (moved >> 13 & 1)) >> 13;
#endif
}

FLYWHEEL_TASK inline std::uint32_t round_to_half(float value) { return round_inside_half(clamp_to_half(value)); }

FLYWHEEL_TASK inline float from_half(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(static_cast<std::uint16_t>(bits)));
#else
  const std::uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent ? std::bit_cast<float>((exponent + 112) << 23 | fraction << 13)
                              : static_cast<float>(fraction) * (1.f / 16777216.f);
  return bits & 0x8000u ? -size : size;
#endif
}
FLYWHEEL_TASK inline float to_float(Half half) { return from_half(half.bits); }

}  // namespace flywheel::llama
