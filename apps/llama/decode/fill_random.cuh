// Random numbers made where they are needed: 16 GB of weights would take minutes to make and copy from the host.
#pragma once

#include "apps/llama/decode/half.cuh"

namespace llama {

/// Value i of a tensor depends on the seed and on i alone, so it is the same on any processor and number of workers.
struct FillRandom {
  static constexpr bool kCompiled = false;
  enum Kind : std::uint32_t { kFloat, kBf16, kHalf };
  template <class T>
  static constexpr Kind kind_of = std::is_same_v<T, Bf16>   ? kBf16
                                  : std::is_same_v<T, Half> ? kHalf
                                                            : kFloat;

  void* to;             // the task's first value
  std::uint64_t first;  // index of that in the tensor
  std::uint64_t seed;
  std::int32_t count;
  Kind kind;
  float mean, deviation;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(count, [&](int i) {
      const float value = at(first + static_cast<std::uint64_t>(i));
      if (kind == kBf16) static_cast<Bf16*>(to)[i].bits = static_cast<std::uint16_t>(round_to_bf16(value));
      else if (kind == kHalf) static_cast<Half*>(to)[i].bits = static_cast<std::uint16_t>(round_to_half(value));
      else static_cast<float*>(to)[i] = value;
    });
  }

  /// Step `i` of splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
  FLYWHEEL_TASK static std::uint64_t mix(std::uint64_t seed, std::uint64_t i) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

 private:
  /// The sum of four uniform numbers is normal enough; it is exact in integers, and one product is left to round.
  FLYWHEEL_TASK float at(std::uint64_t i) const {
    const std::uint64_t bits = mix(seed, i);
    const int sum = static_cast<int>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    constexpr float kDeviation = 37837.227f;  // of the sum: 65536 / sqrt(3)
    return mean + static_cast<float>(sum - 2 * 0xffff) * (deviation / kDeviation);
  }
};

}  // namespace llama
