// The histogram of apps/serve_bench beside the exact percentile of apps/measure.
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "apps/measure/stats.hpp"
#include "apps/serve_bench/histogram.hpp"
#include "catch.hpp"

namespace serve {
namespace {

LogHistogram histogram_of(const std::vector<std::int64_t>& values) {
  LogHistogram histogram;
  for (const std::int64_t value : values) histogram.add(value);
  return histogram;
}

/// Values of all magnitudes.
std::int64_t some_value() {
  const int bits = *rc::gen::inRange(0, 40);
  return *rc::gen::inRange<std::int64_t>(0, (std::int64_t{2} << bits) - 1);
}

}  // namespace

TEST_CASE("histogram: a percentile is at most 1/64 above the exact one, and never below") {
  CHECK(rc::check([] {
    const auto count = *rc::gen::inRange<std::size_t>(1, 200);
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(some_value());
    const LogHistogram histogram = histogram_of(values);
    for (const double percent : {0.1, 50.0, 99.0, 99.9, 100.0}) {
      const double exact = measure::percentile({values.begin(), values.end()}, percent);
      const double found = histogram.percentile_ns(percent);
      RC_ASSERT(found >= exact);
      RC_ASSERT(found <= exact + exact / 64);
    }
    RC_ASSERT(histogram.max_ns() == static_cast<std::uint64_t>(*std::ranges::max_element(values)));
  }));
}

TEST_CASE("histogram: small values are exact") {
  for (std::int64_t value = 0; value < 128; ++value)
    CHECK(histogram_of({value}).percentile_ns(50) == static_cast<double>(value));
}

TEST_CASE("histogram: merging is adding") {
  LogHistogram a = histogram_of({10, 20, 30});
  a.merge(histogram_of({1'000'000, 40}));
  CHECK(a.count() == 5);
  CHECK(a.max_ns() == 1'000'000);
  CHECK(a.percentile_ns(60) == 30);
  CHECK(a.percentile_ns(100) == 1'000'000);
}

TEST_CASE("histogram: what is out of range counts at its ends") {
  const std::int64_t hour = std::int64_t{3600} * 1'000'000'000;
  const LogHistogram histogram = histogram_of({-5, hour});
  CHECK(histogram.count() == 2);
  CHECK(histogram.percentile_ns(50) == 0);
  CHECK(histogram.percentile_ns(100) == static_cast<double>((std::int64_t{1} << 40) - 1));
  CHECK(histogram.max_ns() == static_cast<std::uint64_t>(hour));
}

TEST_CASE("histogram: none has percentile 0, and its memory does not depend on the samples") {
  CHECK(LogHistogram().percentile_ns(99) == 0);
  CHECK(sizeof(LogHistogram) < 20'000);
}

}  // namespace serve
