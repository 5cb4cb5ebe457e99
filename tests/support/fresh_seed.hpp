// A fresh seed for each test, and FLYWHEEL_SEED to repeat one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace flywheel::testing {

inline std::uint64_t fresh_seed() {
  const char* given = std::getenv("FLYWHEEL_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

}  // namespace flywheel::testing
