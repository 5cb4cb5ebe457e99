#include "apps/serve_bench/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace serve {

double LogHistogram::percentile_ns(double percent) const {
  const double wanted = std::ceil(percent * static_cast<double>(count_) / 100);
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, std::max<std::uint64_t>(count_, 1));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    seen += counts_[bucket];
    if (seen >= rank) return static_cast<double>(std::min(largest_of(bucket), max_));
  }
  return 0;
}

}  // namespace serve
