// Random numbers for tests, and the seed in the report of a test that fails.
#pragma once

#include "catch.hpp"
#include "support/fresh_seed.hpp"

namespace flywheel::testing {

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
