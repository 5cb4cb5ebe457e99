// Random numbers by counter: a hash of who asks, so that the host, CPU workers and a GPU draw the same. Integers only, since
// two processors may round a logarithm differently.
#pragma once

#include <flywheel/flywheel.hpp>

#include <cstdint>

namespace taskbench {

FLYWHEEL_TASK inline std::uint64_t mix(std::uint64_t x) {  // the finaliser of splitmix64 (Steele et al., 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// 64 random bits for a point or an edge of a graph.
FLYWHEEL_TASK inline std::uint64_t draw(std::uint32_t seed, std::uint32_t graph, std::uint32_t step, std::uint64_t point) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ull;
  const std::uint64_t who = mix((std::uint64_t{seed} << 32 | step) + kGolden * (graph + 1));
  return mix(who + kGolden * (point + 1));
}

/// How the work of tasks differs: not at all; by a factor that is uniform in 0.5 to 1.5; by one that is log-normal with a
/// sigma of 0.5 and a mean of 1.
enum class Imbalance : std::uint8_t { none, uniform, lognormal };

inline constexpr std::uint32_t kOne = 1u << 16;  // factors are fixed-point numbers with 16 binary places

/// 2^x for x with 16 binary places, from -16 to 15: a cubic that is exact at whole numbers and off by 1 in 5,000 at most.
FLYWHEEL_TASK inline std::uint32_t exp2_fixed(std::int32_t x) {
  const std::int64_t f = x & 0xffff;
  const std::int64_t inner = 14828 + ((5132 * f) >> 16);
  const std::int64_t power = kOne + ((f * (45576 + ((f * inner) >> 16))) >> 16);
  const std::int32_t whole = x >> 16;
  return static_cast<std::uint32_t>(whole < 0 ? power >> -whole : power << whole);
}

/// Standard normal, with 16 binary places: twelve uniform numbers less six (Irwin and Hall), which ends at -6 and 6.
FLYWHEEL_TASK inline std::int32_t normal_fixed(std::uint64_t bits) {
  std::int32_t sum = -6 * static_cast<std::int32_t>(kOne);
  for (int word = 0; word < 3; ++word) {
    bits = mix(bits + word);
    for (int part = 0; part < 4; ++part) sum += static_cast<std::int32_t>(bits >> (16 * part) & 0xffff);
  }
  return sum;
}

/// The factor of a task whose random bits are these.
FLYWHEEL_TASK inline std::uint32_t factor_of(Imbalance imbalance, std::uint64_t bits) {
  if (imbalance == Imbalance::none) return kOne;
  if (imbalance == Imbalance::uniform) return kOne / 2 + static_cast<std::uint32_t>(bits & 0xffff);
  constexpr std::int64_t kSigma = 47274;   // 0.5 log2(e), with 16 binary places
  constexpr std::int32_t kToMean = 11818;  // half of sigma squared, likewise: it makes the mean 1
  return exp2_fixed(static_cast<std::int32_t>((kSigma * normal_fixed(bits)) >> 16) - kToMean);
}

}  // namespace taskbench
