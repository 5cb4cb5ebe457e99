// What the best dispatcher without foresight would take: independent tasks in their order, each on the worker that is free
// first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace bench {

/// The time until the last task ends, in the unit of the durations. `workers`: at least one.
inline double list_schedule(const std::vector<double>& durations, std::uint32_t workers) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (std::uint32_t w = 0; w < workers; ++w) free_at.push(0);
  double end = 0;
  for (const double duration : durations) {
    const double ends = free_at.top() + duration;
    free_at.pop();
    free_at.push(ends);
    end = std::max(end, ends);
  }
  return end;
}

}  // namespace bench
