// when_any() and when_all(): one thread waits for several runs.
//
//   const std::size_t first = flywheel::when_any(fast, safe);
//   flywheel::when_all(runs);  // any range of runs
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "run.hpp"

namespace flywheel {

namespace detail {

/// Waits for several runs; they back off as Run::wait() does.
struct RunWaits {
  using TimePoint = std::chrono::steady_clock::time_point;
  static std::optional<std::size_t> any(std::span<Run> runs, TimePoint limit);
  static bool all(std::span<Run> runs, TimePoint limit);
  static std::optional<std::size_t> any_for(std::span<Run> runs, std::chrono::nanoseconds limit);
  static bool all_for(std::span<Run> runs, std::chrono::nanoseconds limit);
  static void all_well(std::span<Run> runs);
};

template <class T>
concept RangeOfRuns = std::ranges::input_range<T> && std::convertible_to<std::ranges::range_reference_t<T>, Run>;

/// The runs of a range.
template <RangeOfRuns Range>
std::vector<Run> runs_of(Range&& range) {
  std::vector<Run> runs;
  for (auto&& run : range) runs.push_back(run);
  return runs;
}
/// The runs that a call names one by one.
template <class... Args>
std::vector<Run> runs_of(Args&&... args) {
  static_assert((std::convertible_to<Args&&, Run> && ...),
                "when_any() and when_all() take runs, or one range of runs: pass what Runtime::submit() returned");
  std::vector<Run> runs;
  runs.reserve(sizeof...(Args));
  (runs.push_back(std::forward<Args>(args)), ...);
  return runs;
}

}  // namespace detail

/// Waits until one of the runs has ended, well or not, and returns its place among the arguments or in the range; the
/// first one if several have ended. Throws UsageError if there are no runs, or an empty one among them.
template <class... Runs>
std::size_t when_any(Runs&&... runs) {
  std::vector<Run> all = detail::runs_of(std::forward<Runs>(runs)...);
  return *detail::RunWaits::any(all, detail::RunWaits::TimePoint::max());
}
/// Like when_any(), but waits at most for `limit`. Empty if no run has ended by then.
template <class... Runs>
std::optional<std::size_t> when_any_for(std::chrono::nanoseconds limit, Runs&&... runs) {
  std::vector<Run> all = detail::runs_of(std::forward<Runs>(runs)...);
  return detail::RunWaits::any_for(all, limit);
}

/// Waits until all of the runs have ended. Then throws the RunError of the first that failed or was cancelled, if any
/// was. Throws UsageError for an empty Run.
template <class... Runs>
void when_all(Runs&&... runs) {
  std::vector<Run> all = detail::runs_of(std::forward<Runs>(runs)...);
  detail::RunWaits::all_well(all);
}
/// Waits until all of the runs have ended, at most for `limit`. False if they have not by then. Does not throw for a
/// failed run.
template <class... Runs>
bool when_all_for(std::chrono::nanoseconds limit, Runs&&... runs) {
  std::vector<Run> all = detail::runs_of(std::forward<Runs>(runs)...);
  return detail::RunWaits::all_for(all, limit);
}

}  // namespace flywheel
