// Percentiles of samples, and the clock that takes samples on the host.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

namespace measure {

using Samples = std::vector<double>;

/// Which way is good for a unit: times shrink, rates and bandwidths grow.
enum class Better { lower, higher };

/// "us", "ms" and "share" (of 1) are better lower, "M/s", "GB/s", "TFLOP/s" and "efficiency" (of 1) are better higher. Errors:
/// std::invalid_argument for any other unit.
Better better_for(std::string_view unit);

/// Nearest rank: the smallest sample such that at least `percent` in a hundred samples are no larger. Always
/// a value that was measured. Errors: std::invalid_argument for no samples, a NaN, or a percent outside (0,
/// 100].
double percentile(Samples samples, double percent);

/// The value that `percent` in a hundred samples are at least as good as: the slow tail, whichever way is
/// good. For a rate the 99% tail is therefore its first percentile from below. Errors: as `percentile`.
double tail(Samples samples, double percent, Better better);

/// The candidate with the best median: a limit is what the best of several shapes reaches.
/// Errors: std::invalid_argument if there is no candidate or one is empty.
const Samples& best_of(const std::vector<Samples>& candidates, Better better);

inline double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// Calls `action` `warm_up` times untimed, then `count` times; gives the time of each timed call in us.
template <class Action>
Samples time_each(int warm_up, int count, Action&& action) {
  for (int i = 0; i < warm_up; ++i) action();
  Samples times;
  times.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    action();
    times.push_back(microseconds_since(begin));
  }
  return times;
}

}  // namespace measure
