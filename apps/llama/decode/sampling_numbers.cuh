// The integers that sampling reckons with.
//
// Probabilities become integers, so that sums over the vocabulary are exact and come out the same in any
// order: the choice depends on logits, settings and position alone, not on how many threads look.
#pragma once

#include "apps/llama/decode/arithmetic.cuh"
#include "apps/llama/decode/step.cuh"

namespace llama {

/// Orders as the floats do. NaN of either sign is more than infinity, so that the largest key tells of any: x86 makes
/// negative ones of its own.
FLYWHEEL_TASK inline std::uint32_t order_key(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return bits >> 31 && value == value ? ~bits : bits | 0x80000000u;
}

/// The float of an order_key(); NaN comes out positive.
FLYWHEEL_TASK inline float keyed(std::uint32_t key) { return std::bit_cast<float>(key >> 31 ? key & 0x7fffffffu : ~key); }

/// 64 random bits for a position of a text: the output function of splitmix64 (Steele, Lea and Flood, "Fast
/// Splittable Pseudorandom Number Generators"), twice. Counter-based: no state to carry.
FLYWHEEL_TASK inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t position) {
  const auto mix = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  return mix(mix(seed + 0x9e3779b97f4a7c15u) + 0x9e3779b97f4a7c15u * (position + 1));
}

/// A number in [0, total), from the upper 32 of 64 random bits. total is below 2^63.
FLYWHEEL_TASK inline std::uint64_t scale_down(std::uint64_t bits, std::uint64_t total) {
  const std::uint64_t upper = bits >> 32;
  return (total >> 32) * upper + (((total & 0xffffffffu) * upper) >> 32);
}

/// Of the token with the largest logit it is 0, of all others no more.
FLYWHEEL_TASK inline float exponent_of(float logit, float largest, float temperature) {
  return (logit - largest) / temperature;
}

/// From here on down masses are 0: e^-22 is 0.6 of a unit.
inline constexpr float kNoMass = -22.f;
/// A token's mass: e^exponent in units of 2^-31.
FLYWHEEL_TASK inline std::uint32_t mass_of(float exponent) {
  return static_cast<std::uint32_t>(exp_between(exponent > kNoMass ? exponent : kNoMass) * 2147483648.f);
}

/// exponent_of(), but for those that are less than kNoMass: they stay less. Without a branch, so that a thread can work on
/// several at a time. A GPU's own division has one, and rounds just so; where the quotients differ they are below 2^-60, for
/// which e^x is 1.
class Exponents {
 public:
  FLYWHEEL_TASK Exponents(float largest, float temperature)
      : largest_(largest),
        least_(1.05f * kNoMass * temperature),
        scale_(scale_of(temperature)),
        divisor_(temperature * scale_),
        reciprocal_(1 / divisor_) {}

  FLYWHEEL_TASK float operator()(float logit) const {
    const float scaled = bounded(logit) * scale_;
#ifdef __CUDA_ARCH__
    return divided(scaled);
#else
    return scaled / divisor_;
#endif
  }
  /// By multiplications: the quotient is right but for its last bits, and each remainder is exact (Markstein, "Computation of
  /// Elementary Functions on the IBM RISC System/6000 Processor"). Public for its test.
  FLYWHEEL_TASK float divided(float scaled) const {
    float quotient = scaled * reciprocal_;
    quotient = std::fma(std::fma(-quotient, divisor_, scaled), reciprocal_, quotient);
    return std::fma(std::fma(-quotient, divisor_, scaled), reciprocal_, quotient);
  }
  FLYWHEEL_TASK float bounded(float logit) const {
    const float below = logit - largest_;
    return below > least_ ? below : least_;  // NaN, too
  }
  FLYWHEEL_TASK float divisor() const { return divisor_; }

 private:
  /// A power of 2 that keeps divisors and remainders far from where floats end.
  FLYWHEEL_TASK static float scale_of(float temperature) {
    constexpr float kMuch = 18446744073709551616.f;  // 2^64
    return temperature < 1 / kMuch ? kMuch : temperature > kMuch ? 1 / kMuch : 1;
  }

  float largest_, least_, scale_, divisor_, reciprocal_;
};

/// Orders by logit, then the smaller token first.
FLYWHEEL_TASK inline std::uint64_t likelier_of(float logit, int token) {
  return static_cast<std::uint64_t>(order_key(logit)) << 32 | ~static_cast<std::uint32_t>(token);
}

}  // namespace llama
