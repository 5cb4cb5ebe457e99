// The integers that sampling reckons with.
//
// Probabilities become integers, so that sums over the vocabulary are exact and come out the same in any
// order: the choice depends on logits, settings and position alone, not on how many threads look.
#pragma once

#include "apps/llama/tasks/arithmetic.cuh"
#include "apps/llama/tasks/step.cuh"

namespace flywheel::llama {

/// Orders as the floats do (all but NaN).
FLYWHEEL_TASK inline std::uint32_t order_key(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/// The float of an order_key().
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
FLYWHEEL_TASK inline float exponent_of(float logit, float largest, float temperature) { return (logit - largest) / temperature; }

/// A token's mass: e^exponent in units of 2^-31.
FLYWHEEL_TASK inline std::uint32_t mass_of(float exponent) { return static_cast<std::uint32_t>(exp_of(exponent) * 2147483648.f); }
/// From here on down masses are 0: e^-22 is 0.6 of a unit.
inline constexpr float kNoMass = -22.f;

/// Orders by logit, then the smaller token first.
FLYWHEEL_TASK inline std::uint64_t likelier_of(float logit, int token) {
  return static_cast<std::uint64_t>(order_key(logit)) << 32 | ~static_cast<std::uint32_t>(token);
}

}  // namespace flywheel::llama
