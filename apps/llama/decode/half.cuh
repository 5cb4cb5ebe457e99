// IEEE half precision: 11 bits of fraction where bf16 has 8, and 5 of exponent where bf16 has 8, too. Keys and values are
// kept in it, whose range they do not leave; activations and weights are multiplied in it, see tile.cuh for which of them are
// rounded.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <cmath>

#include "apps/llama/checkpoint/matrix.cuh"

namespace llama {

struct Half {
  std::uint16_t bits;
};

/// To nearest, ties to even, of a finite number.
FLYWHEEL_TASK inline std::uint32_t round_to_bf16(float value) {
#ifdef __CUDA_ARCH__
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
#endif
}

/// What is too large becomes the largest, 65504.
FLYWHEEL_TASK inline float clamp_to_half(float value) {
  return value > 65504.f ? 65504.f : value < -65504.f ? -65504.f : value;
}

/// To nearest, ties to even; infinite from 65520 on.
FLYWHEEL_TASK inline std::uint32_t round_half_or_infinite(float value) {
#ifdef __CUDA_ARCH__
  return __half_as_ushort(__float2half_rn(value));
#else
  const std::uint32_t all = std::bit_cast<std::uint32_t>(value), sign = all >> 16 & 0x8000u, bits = all & 0x7fffffffu;
  if (bits > 0x7f800000u) return 0x7fffu;  // not a number
  if (bits >= 0x477ff000u) return sign | 0x7c00u;
  if (bits < 0x38800000u)  // below 2^-14 there are only multiples of 2^-24
    return sign | static_cast<std::uint32_t>(std::nearbyint(std::bit_cast<float>(bits) * 16777216.f));
  const std::uint32_t moved = bits - (112u << 23);  // exponents begin 112 lower
  return sign | (moved + 0xfffu + (moved >> 13 & 1)) >> 13;
#endif
}

FLYWHEEL_TASK inline std::uint32_t round_to_half(float value) { return round_half_or_infinite(clamp_to_half(value)); }
/// Two of them, the first in the low half of the word.
FLYWHEEL_TASK inline std::uint32_t round_two_to_half(float low, float high) {
#ifdef __CUDA_ARCH__
  // Rounded first, and limited both at once: three instructions where two values one by one take eight. What is not a number
  // stays so.
  const __half2 most = __half2half2(__ushort_as_half(0x7bff)), least = __half2half2(__ushort_as_half(0xfbff));
  const __half2 both = __hmax2_nan(__hmin2_nan(__floats2half2_rn(low, high), most), least);
  return __half_as_ushort(__low2half(both)) | static_cast<std::uint32_t>(__half_as_ushort(__high2half(both))) << 16;
#else
  return round_to_half(low) | round_to_half(high) << 16;
#endif
}

FLYWHEEL_TASK inline float from_half(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(static_cast<std::uint16_t>(bits)));
#else
  const std::uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>((bits & 0x8000u) << 16 | 0x7f800000u | fraction << 13);
  const float size = exponent ? std::bit_cast<float>((exponent + 112) << 23 | fraction << 13)
                              : static_cast<float>(fraction) * (1.f / 16777216.f);
  return bits & 0x8000u ? -size : size;
#endif
}
FLYWHEEL_TASK inline float to_float(Half half) { return from_half(half.bits); }

}  // namespace llama
