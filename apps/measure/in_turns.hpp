// Two executables that do the same work, timed in turns: for programs that say what a feature buys. A header alone.
#pragma once

#include <flywheel/flywheel.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace measure {

/// Medians of the times of a pass.
struct InTurns {
  double plain_us, with_us;
};

/// The time of a pass of `executable`, in us: one run of so many passes, divided by them.
inline double us_of_pass(flywheel::Runtime& rt, const flywheel::Executable& executable, std::uint32_t passes) {
  const auto begin = std::chrono::steady_clock::now();
  rt.submit(executable, flywheel::repeat(passes)).wait();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / passes;
}

/// Runs both in turns, so that clocks and temperature touch them alike, and forgets the first round.
inline InTurns time_in_turns(flywheel::Runtime& rt, const flywheel::Executable& plain, const flywheel::Executable& with) {
  constexpr int kRounds = 9;
  const std::uint32_t passes = rt.on_gpu() ? 300 : 5;
  std::vector<double> plain_us, with_us;
  for (int round = 0; round <= kRounds; ++round) {
    const double first = us_of_pass(rt, plain, passes), second = us_of_pass(rt, with, passes);
    if (round == 0) continue;
    plain_us.push_back(first);
    with_us.push_back(second);
  }
  const auto median = [](std::vector<double>& times) {
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    return times[kRounds / 2];
  };
  return {median(plain_us), median(with_us)};
}

/// "NVIDIA H200: 12.3 us a pass with a store part, 15.1 without: 1.23x".
inline void print_gain(const flywheel::Runtime& rt, const char* feature, const InTurns& times) {
  std::printf("%s: %.1f us a pass with %s, %.1f without: %.2fx\n", rt.device().c_str(), times.with_us, feature, times.plain_us,
              times.plain_us / times.with_us);
}

}  // namespace measure
