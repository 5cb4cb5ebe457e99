// How threads of the program wait for runs and tasks: between two polls of a completion word.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace flywheel::detail {

inline constexpr std::uint32_t kSpins = 2000;  // turns without a pause: a few microseconds

/// Backs off between two polls: spins for a few microseconds, within which most runs end, then yields, then sleeps.
inline void back_off(std::uint32_t turn) {
  if (turn < kSpins) return;
  if (turn < 4000) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(turn < 8000 ? 20 : 100));
}

}  // namespace flywheel::detail
