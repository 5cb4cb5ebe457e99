// All systems of apps/taskbench on a GPU: the runtime's executions and the peers, which run the same code with the same checks.
#include "apps/taskbench/plan.hpp"
#include "apps/taskbench/rows.hpp"
#include "catch.hpp"
#include "measure_support.hpp"
#include "taskbench_support.hpp"

namespace taskbench {
namespace {

using measure::error_of;
using measure::mentions;

std::vector<std::string> all_systems() {
  std::vector<std::string> all = runtime_names();
  for (const std::string& peer : peer_names()) all.push_back(peer);
  return all;
}

Host& gpu() {
  static const std::unique_ptr<Host> host = start_host(true, 0);
  return *host;
}

std::unique_ptr<System> make(const std::string& name, const Problem& problem) {
  return is_peer(name) ? make_peer(name, problem) : gpu().make(name, problem);
}

/// Two runs with different numbers, the second among the cells of the first.
void run_twice(const std::string& name, const Problem& problem, RunSettings settings) {
  const auto quiet = is_peer(name) ? gpu().pause() : nullptr;
  const auto system = make(name, problem);
  for (settings.run = 1; settings.run <= 2; ++settings.run) {
    CHECK(system->run(settings) > 0);
    CHECK_NOTHROW(check(*system, problem, settings));
  }
}

}  // namespace

TEST_CASE("taskbench on a GPU: every pattern in every system, with every kernel") {
  const Pattern pattern = GENERATE(from_range(all_patterns()));
  for (const Kernel kernel : {Kernel::empty, Kernel::compute, Kernel::memory, Kernel::busy_wait}) {
    const Problem problem = make_problem({.pattern = pattern, .width = 13, .steps = 30}, 2, 16u << 10);
    for (const std::string& name : all_systems()) {
      INFO(name_of(pattern) << " " << name_of(kernel) << " " << name);
      CHECK((!is_peer(name) || why_not(name, problem).empty() || name == "levels_pdl"));
      if (is_peer(name) && !why_not(name, problem).empty()) continue;
      run_twice(name, problem, {.iterations = 40, .kernel = kernel, .imbalance = Imbalance::lognormal});
    }
  }
}

TEST_CASE("taskbench on a GPU: rows wider than the GPU, four graphs, uneven tasks") {
  const Pattern pattern = GENERATE(Pattern::stencil_1d, Pattern::random_nearest, Pattern::dom, Pattern::fft);
  const Problem problem = make_problem({.pattern = pattern, .width = 300, .steps = 40}, 4, 16u << 10);
  for (const std::string& name : all_systems()) {
    INFO(name_of(pattern) << " " << name);
    if (is_peer(name) && !why_not(name, problem).empty()) continue;
    run_twice(name, problem, {.iterations = 300, .kernel = Kernel::compute, .imbalance = Imbalance::uniform});
  }
}

TEST_CASE("taskbench on a GPU: a wrong cell is found in every system") {
  Problem problem = make_problem({.pattern = Pattern::stencil_1d, .width = 6, .steps = 7}, 1, 16u << 10);
  problem.plant = true;
  for (const std::string& name : all_systems()) {
    if (is_peer(name) && !why_not(name, problem).empty()) continue;
    const auto quiet = is_peer(name) ? gpu().pause() : nullptr;
    const auto system = make(name, problem);
    system->run({});
    INFO(name);
    CHECK(mentions(error_of([&] { check(*system, problem, {}); }), {"of step 4 found a wrong cell"}));
  }
}

TEST_CASE("taskbench on a GPU: an iteration takes its time, whatever the kernel") {
  const auto one = gpu().make("dynamic", make_problem({.width = 1, .steps = 1}, 1));
  for (const Kernel kernel : {Kernel::compute, Kernel::memory, Kernel::busy_wait}) {
    INFO(name_of(kernel));
    const double us = us_of_iteration(*one, kernel);
    CHECK(us > 1e-5);
    CHECK(us < 10);
  }
}

TEST_CASE("taskbench on a GPU: a peer that would need too many nodes or streams says so") {
  const Problem wide = make_problem({.pattern = Pattern::all_to_all, .width = 132, .steps = 100}, 1);
  CHECK(mentions(why_not("nodes", wide), {"dependencies", "--steps"}));
  CHECK(mentions(why_not("streams", wide), {"132 streams", "--widths"}));
  CHECK(mentions(error_of([&] { make_peer("nodes", wide); }), {"nodes: "}));
  CHECK(mentions(error_of([&] { make_peer("other", wide); }), {"'other'", "--systems"}));
}

TEST_CASE("taskbench on a GPU: the systems take turns, and our rows have the level graph and a limit beside them") {
  Plan plan;
  plan.cases = {{.shape = {.pattern = Pattern::stencil_1d, .width = 16, .steps = 50}, .graphs = 1, .sweeps = {{}}}};
  plan.systems = all_systems();
  plan.grains = {16, 4, 1, 0.25};
  plan.rounds = 2;
  plan.turn_us = 1000;
  plan.on_gpu = true;
  const Results results = run_plan(gpu(), plan, {.gpu = "gpu"}, [](const std::string&) {});
  for (const std::string& failure : results.failures) UNSCOPED_INFO(failure);
  REQUIRE(results.failures.empty());
  const auto find = [&](const std::string& name) -> const measure::Row& {
    for (const measure::Row& row : results.rows)
      if (row.name == name) return row;
    throw std::runtime_error("there is no row " + name);
  };
  const measure::Row& step = find("grain.stencil_16.compiled.step");
  CHECK(step.peer == "grain.stencil_16.levels.step");
  CHECK(step.peer_value.has_value());
  CHECK(step.limit.has_value());
  CHECK(find("grain.stencil_16.counter.at_16us").value > 10);
  CHECK(find("grain.stencil_16.dynamic.at_16us").peer_value.has_value());
}

}  // namespace taskbench
