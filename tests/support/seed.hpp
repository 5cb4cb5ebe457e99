// Random numbers for tests: a fresh seed each time, printed when a test fails, and FLYWHEEL_SEED to repeat
// it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

#include "catch.hpp"

namespace flywheel::testing {

inline std::uint64_t fresh_seed() {
  const char* given = std::getenv("FLYWHEEL_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

using Random = std::mt19937_64;

/// A number in [low, high].
inline std::uint32_t pick(Random& random, std::uint32_t low, std::uint32_t high) {
  return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
}

}  // namespace flywheel::testing

/// Names the seed in the report of any failure in this scope.
#define FLYWHEEL_TEST_SEED(name)                              \
  const std::uint64_t name = flywheel::testing::fresh_seed(); \
  INFO("to repeat this run: FLYWHEEL_SEED=" << name)
