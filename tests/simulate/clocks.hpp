// Vector clocks (Fidge 1988, Mattern 1988): what a thread knows of each thread's past.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simulate/scheduler.hpp"

namespace flywheel::simulate {

using Epoch = std::uint32_t;

/// Threads that a run has had so far, rounded up. No clock knows anything of others: what lies behind is zero in all of them.
inline std::uint32_t clock_width = 8;
inline void widen_clocks(std::uint32_t threads) { clock_width = std::max(clock_width, (threads + 7) / 8 * 8); }

struct VectorClock {
  Epoch at[kMostFibers] = {};

  VectorClock() = default;
  VectorClock(const VectorClock&) = default;
  VectorClock& operator=(const VectorClock& other) {
    for_each_eight([&](std::uint32_t f) { at[f] = other.at[f]; });
    return *this;
  }
  void clear() {
    for_each_eight([&](std::uint32_t f) { at[f] = 0; });
  }
  void join(const VectorClock& other) {
    for_each_eight([&](std::uint32_t f) { at[f] = std::max(at[f], other.at[f]); });
  }
  /// Whether any of those moments is known here.
  bool knows_any(const VectorClock& moments) const {
    std::uint32_t known = 0;
    for_each_eight([&](std::uint32_t f) { known |= static_cast<std::uint32_t>(moments.at[f] - 1u < at[f]); });  // 0 is none
    return known != 0;
  }

 private:
  /// Eight at a time: the compiler takes them together.
  template <class Each>
  static void for_each_eight(Each&& each) {
    for (std::uint32_t first = 0; first < clock_width; first += 8)
      for (std::uint32_t f = 0; f < 8; ++f) each(first + f);
  }
};
static_assert(kMostFibers % 8 == 0);

}  // namespace flywheel::simulate
