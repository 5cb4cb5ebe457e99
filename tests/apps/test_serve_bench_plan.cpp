// The trials of apps/serve_bench, with services that do wrong.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "apps/serve_bench/plan.hpp"
#include "catch.hpp"
#include "measure_support.hpp"
#include "serve_bench_support.hpp"

namespace serve {
namespace {

using measure::mentions;

/// A short plan, in which each service is a fake with the faults under its name.
Results run_fakes(const std::map<std::string, FakeFaults>& faults, std::vector<std::string>* said = nullptr) {
  Plan plan;
  plan.workloads = {Workload{}};
  for (const auto& named : faults) plan.services.push_back(named.first);
  plan.fractions = {0.3};
  plan.busy_fractions.clear();
  plan.overload = 1.5;
  plan.seconds = plan.search_seconds = 0.1;
  const auto note = [&](const std::string& what) {
    if (said) said->push_back(what);
  };
  return run_plan(plan, note, [&](const std::string& name, const ServiceOptions&) {
    if (name == "absent") throw std::runtime_error("it is not there");
    return std::make_unique<FakeService>(50'000, 1000, faults.at(name));
  });
}

}  // namespace

TEST_CASE("plan: the steps") {
  Plan plan;
  plan.fractions = {0.5, 1};
  plan.busy_fractions = {0.25};
  std::vector<std::string> names;
  for (const Step& step : steps_of(plan)) names.push_back(step.name);
  CHECK(names == std::vector<std::string>{"alone.x0.05", "x0.50", "x1.00", "x2.00", "busy.x0.25"});
  CHECK(steps_of(plan).front().high_share == 1);
  CHECK(steps_of(plan).back().busy_cores);
  plan.overload = 0;
  CHECK(steps_of(plan).size() == 4);
}

TEST_CASE("plan: services take turns at each step") {
  std::vector<std::string> said;
  const Results results = run_fakes({{"one", {}}, {"two", {}}}, &said);
  CHECK(results.failures.empty());
  CHECK(results.capacities.size() == 2);
  REQUIRE(results.measured.size() == 6);
  for (std::size_t i = 0; i < 6; i += 2) {
    CHECK(results.measured[i].service == "one");
    CHECK(results.measured[i + 1].service == "two");
    CHECK(results.measured[i].step == results.measured[i + 1].step);
  }
  CHECK(said.size() == 8);  // two searches, three steps of two services
}

TEST_CASE("plan: a service that does wrong is named, and the others go on") {
  const Results results =
      run_fakes({{"absent", {}}, {"false", {.wrong_every = 100}}, {"sum", {.wrong_sum = true}}, {"well", {}}});
  REQUIRE(results.failures.size() == 3);
  CHECK(mentions(results.failures[0], {"serve.task.20us.absent: it is not there"}));
  CHECK(mentions(results.failures[1], {"false", "answers were wrong"}));
  CHECK(mentions(results.failures[2], {"sum", "some were lost or ran twice"}));
  REQUIRE(results.measured.size() == 3);
  CHECK(std::ranges::all_of(results.measured, [](const Measured& m) { return m.service == "well"; }));
}

}  // namespace serve
