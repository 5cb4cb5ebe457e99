#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/measure/measurement.hpp"
#include "apps/measure/results.hpp"
#include "apps/measure/stats.hpp"
#include "tests/apps/measure_support.hpp"
#include "tests/catch.hpp"

using namespace measure;
using Names = std::vector<std::string>;

namespace {

// By the definition, and nothing else: try every sample, count, keep the smallest that is large enough.
double plain_percentile(const Samples& samples, int percent) {
  double best = *std::max_element(samples.begin(), samples.end());
  for (const double candidate : samples) {
    const auto no_larger = std::count_if(samples.begin(), samples.end(), [&](double s) { return s <= candidate; });
    const bool enough = static_cast<long>(no_larger) * 100 >= static_cast<long>(samples.size()) * percent;
    if (enough) best = std::min(best, candidate);
  }
  return best;
}

// What 99 in 100 reach: the largest sample with enough samples at or above it.
double plain_slow_rate(const Samples& samples, int percent) {
  double best = *std::min_element(samples.begin(), samples.end());
  for (const double candidate : samples) {
    const auto reach = std::count_if(samples.begin(), samples.end(), [&](double s) { return s >= candidate; });
    const bool enough = static_cast<long>(reach) * 100 >= static_cast<long>(samples.size()) * percent;
    if (enough) best = std::max(best, candidate);
  }
  return best;
}

Samples some_samples() {
  const auto ints = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(-50, 50)));
  return Samples(ints.begin(), ints.end());
}

Names names_of(const std::vector<Measurement>& rows) {
  Names names;
  for (const Measurement& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace

TEST_CASE("percentile agrees with counting") {
  CHECK(rc::check([] {
    const Samples samples = some_samples();
    const int percent = *rc::gen::inRange(1, 101);
    RC_ASSERT(percentile(samples, percent) == plain_percentile(samples, percent));
  }));
}

TEST_CASE("the tail of a rate is its slow end") {
  CHECK(rc::check([] {
    const Samples samples = some_samples();
    const int percent = *rc::gen::inRange(1, 101);
    RC_ASSERT(tail(samples, percent, Better::lower) == plain_percentile(samples, percent));
    RC_ASSERT(tail(samples, percent, Better::higher) == plain_slow_rate(samples, percent));
  }));
}

TEST_CASE("percentile of a known list") {
  Samples hundred;
  for (int i = 100; i >= 1; --i) hundred.push_back(i);
  CHECK(percentile(hundred, 50) == 50);
  CHECK(percentile(hundred, 99) == 99);
  CHECK(percentile(hundred, 100) == 100);
  CHECK(tail(hundred, 99, Better::higher) == 2);
  CHECK(percentile({7}, 1) == 7);
}

TEST_CASE("percentile refuses what has none") {
  CHECK_THROWS_AS(percentile({}, 50), std::invalid_argument);
  CHECK_THROWS_AS(percentile({1}, 0), std::invalid_argument);
  CHECK_THROWS_AS(percentile({1}, 101), std::invalid_argument);
  CHECK_THROWS_AS(percentile({1, std::nan("")}, 50), std::invalid_argument);
}

TEST_CASE("units know which way is good") {
  CHECK(better_for("us") == Better::lower);
  CHECK(better_for("ms") == Better::lower);
  CHECK(better_for("share") == Better::lower);
  CHECK(better_for("efficiency") == Better::higher);
  CHECK(better_for("M/s") == Better::higher);
  CHECK(better_for("GB/s") == Better::higher);
  CHECK(better_for("TFLOP/s") == Better::higher);
  CHECK(mentions(error_of([&] { better_for("parsec"); }), {"parsec", "use us"}));
}

TEST_CASE("best_of takes the candidate with the best median") {
  const std::vector<Samples> candidates{{1, 5, 9}, {4, 4, 90}, {6, 6, 6}};
  CHECK(best_of(candidates, Better::higher) == candidates[2]);
  CHECK(best_of(candidates, Better::lower) == candidates[1]);
  CHECK_THROWS_AS(best_of({}, Better::lower), std::invalid_argument);
}

TEST_CASE("time_each calls as often as it says and times as many") {
  int calls = 0;
  const Samples times = time_each(3, 5, [&] { ++calls; });
  CHECK(calls == 8);
  CHECK(times.size() == 5);
  CHECK(std::all_of(times.begin(), times.end(), [](double time) { return time >= 0; }));
}

TEST_CASE("interleave takes turns") {
  std::string order;
  const auto noting = [&](char letter) {
    return Measurement{.name = std::string(1, letter), .unit = "us", .round = [&order, letter] {
                         order += letter;
                         return Samples{1};
                       }};
  };
  std::vector<Measurement> rows{noting('a'), noting('b'), noting('c')};
  rows[1].max_rounds = 1;
  std::string announced;
  const auto outcomes =
      interleave(rows, 3, [&](const std::string& name, int round) { announced += name + std::to_string(round); });
  CHECK(order == "abcacac");
  CHECK(announced == "a1b1c1a2c2a3c3");
  CHECK(outcomes[0].rounds == 3);
  CHECK(outcomes[1].rounds == 1);
  CHECK_THROWS_AS(interleave(rows, 0), std::invalid_argument);
}

TEST_CASE("interleave gives the median of the rounds and the tail of all samples") {
  int round = 0;
  const std::vector<Samples> rounds{{1, 2, 3}, {100, 200, 300}, {4, 5, 6}};
  const auto next = [&] { return rounds[static_cast<std::size_t>(round++)]; };
  const auto times = interleave({{.name = "times", .unit = "us", .round = next}}, 3);
  CHECK(times[0].p50 == 5);
  CHECK(times[0].p99 == 300);
  round = 0;
  const auto rates = interleave({{.name = "rates", .unit = "M/s", .round = next}}, 3);
  CHECK(rates[0].p50 == 5);
  CHECK(rates[0].p99 == 1);
}

TEST_CASE("a measurement that fails leaves the others alone") {
  int tries = 0;
  const Measurement broken{.name = "broken", .unit = "us", .round = [&]() -> Samples {
                             ++tries;
                             throw std::runtime_error("no luck");
                           }};
  const auto outcomes = interleave({constant("a", 1), broken, constant("b", 2)}, 2);
  CHECK(tries == 1);
  CHECK(outcomes[1].error == "no luck");
  CHECK(outcomes[0].p50 == 1);
  CHECK(outcomes[2].p50 == 2);
  const auto rows = make_rows({constant("a", 1), broken, constant("b", 2)}, outcomes, {});
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].name == "b");
}

TEST_CASE("select_rows brings peers and limits along") {
  std::vector<Measurement> all{constant("limit.hop", 1), constant("limit.other", 1), constant("peer.x", 1),
                               constant("runtime.y", 1), constant("cpu.z", 1)};
  all[2].limit = "limit.hop";
  all[3].peer = "peer.x";
  all[4].needs_gpu = false;
  CHECK(names_of(select_rows(all, "runtime.*", true)) == Names{"limit.hop", "peer.x", "runtime.y"});
  CHECK(names_of(select_rows(all, "*", true)).size() == all.size());
  CHECK(names_of(select_rows(all, "*", false)) == Names{"cpu.z"});
  CHECK(select_rows(all, "runtime.*", false).empty());
  CHECK(select_rows({}, "limit.*", false).empty());
  CHECK(mentions(error_of([&] { select_rows(all, "limt.*", true); }), {"limt.*", "limit.hop"}));
}
