#include "apps/measure/stats.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace measure {
namespace {

void require_usable(const Samples& samples, double percent) {
  if (samples.empty()) {
    throw std::invalid_argument("percentile of no samples: let the measurement take at least one");
  }
  if (!(percent > 0 && percent <= 100)) {
    throw std::invalid_argument("percentile " + std::to_string(percent) + " does not exist: ask for one in (0, 100]");
  }
  if (std::any_of(samples.begin(), samples.end(), [](double sample) { return std::isnan(sample); })) {
    throw std::invalid_argument("a sample is NaN: the measurement divided by a count or a time of zero; fix it there");
  }
}

}  // namespace

Better better_for(std::string_view unit) {
  if (unit == "us" || unit == "ms" || unit == "share") return Better::lower;
  if (unit == "M/s" || unit == "GB/s" || unit == "TFLOP/s" || unit == "efficiency") return Better::higher;
  throw std::invalid_argument("unit '" + std::string(unit) +
                              "' is unknown: use us, ms, share, efficiency, M/s, GB/s or TFLOP/s");
}

double percentile(Samples samples, double percent) {
  require_usable(samples, percent);
  // percent * size is exact for whole percents, so the quotient is exact whenever the rank is a whole number.
  const double rank = std::ceil(percent * static_cast<double>(samples.size()) / 100);
  const auto index = std::clamp<std::size_t>(static_cast<std::size_t>(rank), 1, samples.size()) - 1;
  const auto nth = samples.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(samples.begin(), nth, samples.end());
  return *nth;
}

double tail(Samples samples, double percent, Better better) {
  if (better == Better::lower) return percentile(std::move(samples), percent);
  for (double& sample : samples) sample = -sample;
  return -percentile(std::move(samples), percent);
}

const Samples& best_of(const std::vector<Samples>& candidates, Better better) {
  if (candidates.empty()) throw std::invalid_argument("best of no candidates: measure at least one shape");
  const auto median_is_less = [](const Samples& a, const Samples& b) { return percentile(a, 50) < percentile(b, 50); };
  return better == Better::lower ? *std::min_element(candidates.begin(), candidates.end(), median_is_less)
                                 : *std::max_element(candidates.begin(), candidates.end(), median_is_less);
}

}  // namespace measure
