// What the two reports of a trace (trace_report.cpp, worker_report.cpp) have in common.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trace.hpp"

namespace flywheel::detail {

inline constexpr std::size_t kWorst = 10;  // waits and tasks listed
inline constexpr double kLeastNs = 1;      // shorter times are rounding errors
inline constexpr double kKib = 1024;

using Spans = std::vector<const TraceSpan*>;
/// Spans with the time in ns by which they are ranked.
using Ranked = std::vector<std::pair<double, const TraceSpan*>>;

inline double length(const TraceSpan& span) { return span.end_ns - span.begin_ns; }
inline double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// Lengths in ns, and the bytes of operands that came with them.
struct Times {
  std::vector<double> ns;
  double total = 0;
  double bytes = 0;

  void add(double length_ns, std::uint32_t kib = 0) {
    ns.push_back(length_ns);
    total += length_ns;
    bytes += kib * kKib;
  }
  double mean() const { return ratio(total, static_cast<double>(ns.size())); }
  /// A percentile by nearest rank; 0 if there are no lengths. They must be sorted.
  double percentile(std::size_t percent) const { return ns.empty() ? 0 : ns[(ns.size() * percent + 99) / 100 - 1]; }
};

/// The kWorst that rank first, by falling rank.
inline Ranked worst(Ranked all) {
  std::erase_if(all, [](const auto& one) { return one.first < kLeastNs; });
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kWorst));
  std::partial_sort(all.begin(), end, all.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second->begin_ns < b.second->begin_ns;
  });
  all.erase(end, all.end());
  return all;
}

/// What is missing in a trace; empty if nothing is.
std::string loss_text(const Trace& trace);

}  // namespace flywheel::detail
