// Vector clocks (Fidge 1988, Mattern 1988): what a thread knows of each thread's past.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simulate/scheduler.hpp"

namespace flywheel::simulate {

using Epoch = std::uint32_t;

struct VectorClock {
  Epoch at[kMostFibers] = {};
  void join(const VectorClock& other) {
    for (std::uint32_t f = 0; f < kMostFibers; ++f) at[f] = std::max(at[f], other.at[f]);
  }
  /// Whether any of those moments is known here.
  bool knows_any(const VectorClock& moments) const {
    for (std::uint32_t f = 0; f < kMostFibers; ++f)
      if (moments.at[f] && moments.at[f] <= at[f]) return true;
    return false;
  }
};

}  // namespace flywheel::simulate
