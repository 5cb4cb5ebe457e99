// The arrival times of an open loop: a Poisson process. The times follow from the seed alone, so a service that falls behind
// does not delay them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace serve {

class PoissonArrivals {
 public:
  /// `per_second` arrivals on average; 0: none ever.
  PoissonArrivals(double per_second, std::uint64_t seed) : mean_ns_(per_second > 0 ? 1e9 / per_second : 0), state_(seed) {
    advance();
  }

  /// The time of the next arrival, in ns from the begin of the process.
  std::int64_t next_ns() const {
    return next_ < kNever ? static_cast<std::int64_t>(next_) : std::numeric_limits<std::int64_t>::max();
  }
  /// On to the arrival after that: the gaps are independent and exponentially distributed.
  void advance() { next_ = mean_ns_ > 0 ? next_ - mean_ns_ * std::log(uniform()) : kNever; }

 private:
  static constexpr double kNever = 9e18;

  /// In (0, 1], by splitmix64 (Steele et al., 2014).
  double uniform() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    return (static_cast<double>(x >> 11) + 1) * 0x1p-53;
  }

  double mean_ns_;
  std::uint64_t state_;
  double next_ = 0;
};

}  // namespace serve
