#include "when.hpp"

#include "../base/back_off.hpp"
#include "../base/error.hpp"

namespace flywheel::detail {

std::optional<std::size_t> RunWaits::any(std::span<Run> runs, TimePoint limit) {
  if (runs.empty()) throw UsageError("when_any() of no runs would wait for ever: pass at least one");
  for (BackOff back_off;; back_off.pause()) {
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (runs[i].done()) return i;
    if (!back_off.now_and_then()) continue;
    if (std::chrono::steady_clock::now() > limit) return std::nullopt;
    for (Run& run : runs) run.try_drain();
  }
}

bool RunWaits::all(std::span<Run> runs, TimePoint limit) {
  for (Run& run : runs)
    if (!run.wait_until(limit)) return false;
  return true;
}

std::optional<std::size_t> RunWaits::any_for(std::span<Run> runs, std::chrono::nanoseconds limit) {
  return any(runs, time_in(limit));
}

bool RunWaits::all_for(std::span<Run> runs, std::chrono::nanoseconds limit) { return all(runs, time_in(limit)); }

void RunWaits::all_well(std::span<Run> runs) {
  all(runs, TimePoint::max());
  for (Run& run : runs) run.wait();
}

}  // namespace flywheel::detail
