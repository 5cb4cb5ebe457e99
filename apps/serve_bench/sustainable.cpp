#include "apps/serve_bench/sustainable.hpp"

#include <stdexcept>

namespace serve {
namespace {

constexpr double kPrecision = 0.02;  // of the closed loop's rate
constexpr double kLeast = 0.02;      // below that share of it the search gives up

}  // namespace

Sustainable find_sustainable(const TryLoad& try_load, double seconds, double high_share) {
  Load load{.high_share = high_share, .seconds = seconds, .closed = true};
  Sustainable found;
  found.closed_per_second = try_load(load).answered_per_second();
  if (!(found.closed_per_second > 0))
    throw std::runtime_error("no request of the closed loop was answered in time: give it more time with --seconds");
  load.closed = false;
  const auto sustains = [&](double share) {
    load.per_second = share * found.closed_per_second;
    // A disturbance from outside can only hide that a load is sustained: so there is a second trial.
    return try_load(load).is_sustained() || try_load(load).is_sustained();
  };

  double low = 0.5, high = 1.1;
  for (; !sustains(low); low /= 2) {
    high = low;
    if (low < kLeast)
      throw std::runtime_error(
          "the backlog grows at every load that was tried: leave more cores to it, or see --threads and --workers");
  }
  while (high - low > kPrecision) {
    const double middle = (low + high) / 2;
    (sustains(middle) ? low : high) = middle;
  }
  found.per_second = low * found.closed_per_second;
  return found;
}

}  // namespace serve
