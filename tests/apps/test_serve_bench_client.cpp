// Clients of apps/serve_bench against a service that can lose, falsify and stall.
#include <cmath>

#include "apps/serve_bench/arrivals.hpp"
#include "apps/serve_bench/sustainable.hpp"
#include "apps/serve_bench/trial.hpp"
#include "catch.hpp"
#include "serve_bench_support.hpp"

namespace serve {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Trial trial_of(FakeService& service, const Load& load) { return run_trial(service, {}, load, 1); }

}  // namespace

TEST_CASE("arrivals: the gaps are exponential, and the times follow from the seed") {
  PoissonArrivals arrivals(1e6, 7), same(1e6, 7);
  double sum = 0, squares = 0;
  std::int64_t last = 0;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    CHECK(arrivals.next_ns() == same.next_ns());
    const auto gap = static_cast<double>(arrivals.next_ns() - last);
    last = arrivals.next_ns();
    sum += gap, squares += gap * gap;
    arrivals.advance(), same.advance();
  }
  const double mean = sum / kCount;
  CHECK(mean == Approx(1000).epsilon(0.02));
  CHECK(std::sqrt(squares / kCount - mean * mean) == Approx(1000).epsilon(0.03));
}

TEST_CASE("arrivals: a rate of 0 has none") {
  CHECK(PoissonArrivals(0, 1).next_ns() == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("client: all requests are answered, one in ten of high priority") {
  FakeService service(1000, 100);
  const Trial trial = trial_of(service, {.per_second = 20'000, .seconds = 0.3});
  CHECK(trial.arrived() == Approx(6000).epsilon(0.15));
  CHECK(static_cast<double>(trial.high.arrived) == Approx(600).epsilon(0.25));
  CHECK(trial.high.answered == trial.high.arrived);
  CHECK(trial.normal.answered == trial.normal.arrived);
  CHECK(trial.lost() == 0);
  CHECK(trial.wrong() == 0);
}

TEST_CASE("client: a lost request is found") {
  FakeService service(1000, 100, {.lose_every = 500});
  const Trial trial = trial_of(service, {.per_second = 10'000, .seconds = 0.2, .drain_seconds = 2});
  CHECK(trial.lost() == trial.arrived() / 500);
  CHECK(trial.lost() > 0);
  CHECK_FALSE(trial.is_sustained());
}

TEST_CASE("client: a wrong answer is found") {
  FakeService service(1000, 100, {.wrong_every = 500});
  const Trial trial = trial_of(service, {.per_second = 10'000, .seconds = 0.2});
  CHECK(trial.wrong() == trial.arrived() / 500);
  CHECK(trial.wrong() > 0);
}

TEST_CASE("client: a stall is charged to all requests that were to arrive meanwhile, also to those that had no room") {
  FakeService service(1000, 4, {.stall_from_ns = 100 * kMs, .stall_ns = 100 * kMs});
  const Trial trial = trial_of(service, {.per_second = 5'000, .high_share = 0, .seconds = 0.4});
  CHECK(service.session(0).most() <= 4);
  CHECK(trial.lost() == 0);
  CHECK(trial.normal.latency.max_ns() >= 95 * kMs);
  // A quarter of the arrivals fall into the stall, evenly: an eighth of all wait for 50 ms or more.
  CHECK(trial.normal.latency.percentile_ns(92) >= 50 * kMs * 0.8);
}

TEST_CASE("client: at twice what the service can do no more requests are in flight than it has room for") {
  FakeService service(200'000, 16);
  const Trial trial = trial_of(service, {.per_second = 10'000, .seconds = 0.3});
  CHECK(service.session(0).most() <= 16);
  CHECK(trial.lost() == 0);
  CHECK(trial.answered_per_second() < 6000);
  CHECK_FALSE(trial.is_sustained());
  CHECK(trial.backlog_at_end() > trial.backlog_at_half() + 400);
}

TEST_CASE("trial: growth of resident memory is seen") {
  class Growing final : public Service, public Session {
   public:
    const char* name() const override { return "growing"; }
    Session& session(std::uint32_t) override { return *this; }
    std::uint64_t sum() override { return 0; }
    std::uint32_t workers() const override { return 1; }
    bool try_begin(const Request& request) override {
      kept_.emplace_back(100'000, 'x');
      begun_.push_back(request);
      return true;
    }
    void collect(std::vector<Answer>& answers) override {
      for (const Request& request : begun_) answers.push_back({request, answer_of({}, request.seed)});
      begun_.clear();
    }

   private:
    std::vector<std::string> kept_;
    std::vector<Request> begun_;
  } service;
  const Trial trial = run_trial(service, {}, {.per_second = 1000, .seconds = 0.3}, 1);
  CHECK(trial.memory.after - trial.memory.before > 15);
  CHECK(trial.memory.most >= trial.memory.before);
}

TEST_CASE("sustainable: the search ends just below what a service can do") {
  // The trials are computed, not run: a service that answers 1000 requests a second.
  constexpr double kRate = 1000;
  int trials = 0;
  const TryLoad try_load = [&](const Load& load) {
    ++trials;
    Trial trial;
    trial.seconds = load.seconds;
    const double offered = load.closed ? 2 * kRate : load.per_second, answered = std::min(offered, kRate);
    const auto count = [&](double rate, double share) { return static_cast<std::uint64_t>(rate * share * load.seconds); };
    trial.normal.arrived = count(offered, 1);
    trial.normal.arrived_by_half = count(offered, 0.5);
    trial.normal.answered_by_half = count(answered, 0.5);
    trial.normal.answered_by_end = count(answered, 1);
    return trial;
  };
  const Sustainable found = find_sustainable(try_load, 1000, 0.1);
  CHECK(found.closed_per_second == Approx(kRate));
  CHECK(found.per_second <= 1.02 * kRate);
  CHECK(found.per_second >= 0.97 * kRate);
  CHECK(trials <= 15);
}

TEST_CASE("sustainable: one disturbed trial does not lower the load") {
  int trials = 0;
  const TryLoad try_load = [&](const Load& load) {  // answers all at once, but for every second trial of the open loop
    Trial trial;
    trial.seconds = load.seconds;
    trial.normal.arrived = trial.normal.answered_by_end = 1000;
    trial.normal.arrived_by_half = trial.normal.answered_by_half = 500;
    if (!load.closed && ++trials % 2 == 1) trial.normal.answered_by_end = 500;
    return trial;
  };
  const Sustainable found = find_sustainable(try_load, 1, 0.1);
  CHECK(found.per_second > 1.07 * found.closed_per_second);
}

TEST_CASE("sustainable: a service that keeps up with nothing is an error") {
  const TryLoad try_load = [](const Load& load) {
    Trial trial;
    trial.seconds = load.seconds;
    trial.normal.answered_by_end = load.closed ? 1000 : 0;
    trial.normal.lost = 1;
    return trial;
  };
  CHECK_THROWS_AS(find_sustainable(try_load, 1, 0.1), std::runtime_error);
}

}  // namespace serve
