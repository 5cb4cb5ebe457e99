// The runtime's executions of apps/taskbench on CPU workers, with problems drawn at random; and that what is wrong is found.
#include "apps/taskbench/plan.hpp"
#include "apps/taskbench/rows.hpp"
#include "catch.hpp"
#include "measure_support.hpp"
#include "taskbench_support.hpp"

namespace taskbench {
namespace {

using measure::error_of;
using measure::mentions;

constexpr std::uint32_t kScratch = 16u << 10;

Host& two_workers() {
  static const std::unique_ptr<Host> host = start_host(false, 2);
  return *host;
}

}  // namespace

TEST_CASE("taskbench on CPU workers: each execution leaves what a serial run leaves, whatever the problem") {
  for (const std::string& name : runtime_names())
    CHECK(rc::check([&] {
      const Problem problem = make_problem(some_shape(12, 8), *rc::gen::inRange<std::uint32_t>(1, 5), kScratch);
      const auto system = two_workers().make(name, problem);
      for (int turn = 0; turn < 2; ++turn) {
        const RunSettings settings = some_settings();
        RC_ASSERT(system->run(settings) > 0);
        check(*system, problem, settings);
      }
    }));
}

TEST_CASE("taskbench on CPU workers: every pattern, with every kernel") {
  const Pattern pattern = GENERATE(from_range(all_patterns()));
  const Kernel kernel = GENERATE(Kernel::empty, Kernel::compute, Kernel::memory, Kernel::busy_wait);
  const Problem problem = make_problem({.pattern = pattern, .width = 16, .steps = 20}, 2, kScratch);
  for (const std::string& name : runtime_names()) {
    INFO(name_of(pattern) << " " << name);
    const RunSettings settings{.iterations = 30, .run = 9, .kernel = kernel, .imbalance = Imbalance::uniform};
    const auto system = two_workers().make(name, problem);
    system->run(settings);
    CHECK_NOTHROW(check(*system, problem, settings));
  }
}

TEST_CASE("taskbench on CPU workers: a wrong cell is found by those that read it") {
  Problem problem = make_problem({.pattern = Pattern::stencil_1d, .width = 6, .steps = 7}, 1, kScratch);
  problem.plant = true;
  for (const std::string& name : runtime_names()) {
    const auto system = two_workers().make(name, problem);
    system->run({});
    CHECK(system->faults().count == 2);  // point 0 of step 3 is read by two
    CHECK(mentions(error_of([&] { check(*system, problem, {}); }), {"of step 4 found a wrong cell", "missing dependency"}));
  }
}

TEST_CASE("taskbench on CPU workers: a wrong cell that nobody reads differs from a serial run") {
  Problem problem = make_problem({.pattern = Pattern::trivial, .width = 6, .steps = 7}, 1, kScratch);
  problem.plant = true;
  const auto system = two_workers().make("compiled", problem);
  system->run({});
  CHECK(system->faults().count == 0);
  CHECK(mentions(error_of([&] { check(*system, problem, {}); }), {"point 0 of step 3", "something else than a serial run"}));
}

TEST_CASE("taskbench: a task that did not run is found, also when cells of the run before lie in its place") {
  const Problem problem = make_problem({.pattern = Pattern::nearest, .width = 9, .steps = 5}, 2, kScratch);
  SerialSystem system(problem);
  system.run({.run = 1});
  CHECK_NOTHROW(check(system, problem, {.run = 1}));
  system.skipped_step = 2, system.skipped_point = 4;
  system.run({.run = 2});
  CHECK(system.faults().count == 10);  // five readers in each of two graphs
  CHECK(mentions(error_of([&] { check(system, problem, {.run = 2}); }), {"point 4 of the step before", "10 such finds"}));
}

TEST_CASE("taskbench: a run is not taken for another") {
  const Problem problem = make_problem({.pattern = Pattern::fft, .width = 5, .steps = 5}, 1, kScratch);
  SerialSystem system(problem);
  system.run({.run = 1});
  CHECK(mentions(error_of([&] { check(system, problem, {.run = 2}); }), {"something else than a serial run"}));
}

TEST_CASE("taskbench: problems and systems that cannot be are refused") {
  CHECK(mentions(error_of([] { make_problem({}, 5); }), {"--graphs 5", "1 to 4"}));
  CHECK(mentions(error_of([] { make_problem({}, 1, 4096); }), {"--scratch", "8 to 16384"}));
  CHECK(mentions(error_of([] { two_workers().make("levels", make_problem({}, 1)); }), {"'levels'", "--systems"}));
}

TEST_CASE("taskbench: the work is counted as tasks draw it") {
  const Problem problem = make_problem({.pattern = Pattern::tree, .width = 6, .steps = 4}, 2, kScratch);
  CHECK(problem.tasks() == 2 * 13);
  CHECK(problem.work({.iterations = 10}) == 260);
  const std::uint64_t uneven = problem.work({.iterations = 1000, .imbalance = Imbalance::uniform});
  CHECK(uneven > 26 * 800);
  CHECK(uneven < 26 * 1200);
  CHECK(uneven != 26'000);
}

TEST_CASE("taskbench: the time of an iteration is that of undisturbed runs") {
  class Clocked final : public System {
   public:
    explicit Clocked(bool always) : always_(always) {}
    double run(const RunSettings& settings) override {
      const int length = runs_++ / 5;  // five runs of each
      const bool disturbed = always_ ? length % 2 == 0 : length == 1;
      return 25 + 0.01 * settings.iterations * (always_ && disturbed ? 3 : 1) + (disturbed ? 1000 : 0);
    }
    std::vector<Cell> cells(std::uint32_t) override { return {}; }
    Faults faults() override { return {}; }

   private:
    const bool always_;
    int runs_ = 0;
  };
  Clocked once(false), always(true);
  CHECK(us_of_iteration(once, Kernel::compute) == Approx(0.01));
  // Each shorter run takes longer than the longer one: an upper bound, and an end.
  CHECK(us_of_iteration(always, Kernel::compute) == Approx(0.03).epsilon(0.1));
}

TEST_CASE("taskbench: a grain that is hardly an iteration is left out, with a word") {
  Plan plan;
  plan.cases = {{.shape = {.pattern = Pattern::no_comm, .width = 2, .steps = 3}, .graphs = 1, .steps = false, .sweeps = {{}}}};
  plan.systems = {"dynamic"};
  plan.grains = {500, 1e-6};
  plan.rounds = 1;
  plan.turn_us = 100;
  const Results results = run_plan(two_workers(), plan, {}, [](const std::string&) {});
  REQUIRE(results.rows.size() == 1);
  CHECK(results.rows[0].name == "grain.no_comm_2.dynamic.at_500us");
  REQUIRE(results.notes.size() == 2);
  CHECK(mentions(results.notes[0], {"grain.no_comm_2.at_1e-06us: left out", "raise --smallest"}));
  CHECK(mentions(results.notes[1], {"metg: none"}));
}

TEST_CASE("taskbench: a system that fails is named, and leaves no rows") {
  Plan plan;
  plan.cases = {{.shape = {.pattern = Pattern::no_comm, .width = 3, .steps = 4}, .graphs = 1, .sweeps = {{}}}};
  plan.systems = {"dynamic", "compiled"};
  plan.grains = {500};
  plan.rounds = 1;
  plan.turn_us = 100;
  plan.plant = true;
  const Results wrong = run_plan(two_workers(), plan, {}, [](const std::string&) {});
  REQUIRE(wrong.failures.size() == 2);
  CHECK(mentions(wrong.failures[0], {"grain.no_comm_3.dynamic.step: ", "found a wrong cell"}));
  CHECK(wrong.rows.empty());
  plan.plant = false;
  std::vector<std::string> said;
  const Results well = run_plan(two_workers(), plan, {}, [&](const std::string& what) { said.push_back(what); });
  CHECK(well.failures.empty());
  CHECK(well.rows.size() == 4);
  REQUIRE(said.size() == 6);
  CHECK(said[2] == "round 1  grain.no_comm_3.dynamic.step");
  CHECK(said[5] == "round 1  grain.no_comm_3.compiled.at_500us");
}

}  // namespace taskbench
