// The program taskbench on CPU workers, and its arguments.
#include <algorithm>
#include <filesystem>
#include <string>

#include "apps/taskbench/options.hpp"
#include "apps/taskbench/rows.hpp"
#include "catch.hpp"
#include "measure_support.hpp"
#include "support/program.hpp"

namespace taskbench {
namespace {

namespace fs = std::filesystem;
namespace testing = flywheel::testing;
using measure::error_of;
using measure::mentions;
using measure::number_of;
using measure::rows_of;

/// The text is what came on stderr.
testing::Answer ask_taskbench(const std::string& arguments) {
  return testing::ask("apps/taskbench/taskbench", "--cpu --workers 2 --quick --rounds 1 " + arguments, "2>&1 >/dev/null");
}

Plan plan_for(const Arguments& arguments, std::uint32_t workers = 132) { return plan_of(arguments, true, workers); }

}  // namespace

TEST_CASE("taskbench: on CPU workers the rows are whole") {
  const measure::TempResults folder("taskbench");
  const testing::Answer answer = ask_taskbench(
      "--patterns stencil_1d,tree --widths 5 --steps 8 --graphs 2 --largest 40 --smallest 10 "
      "--kernels empty,busy_wait --imbalances lognormal --commit abc --out " +
      folder.path().string());
  INFO(answer.text);
  REQUIRE(answer.code == 0);
  auto rows = rows_of(folder.path() / "cpu.json");
  for (const std::string pattern : {"stencil", "tree"})
    for (const std::string& system : runtime_names()) {
      const std::string prefix = "grain." + pattern + "_5.x2";
      REQUIRE(rows.contains(prefix + "." + system + ".step"));
      CHECK(rows[prefix + "." + system + ".step"].commit == "abc");
      for (const std::string grain : {"10", "20", "40"}) {
        const std::string name = prefix + ".busy_wait.lognormal." + system + ".at_" + grain + "us";
        REQUIRE(rows.contains(name));
        CHECK((rows[name].value > 0 && rows[name].peer.empty()));
        CHECK(number_of(rows[name], "grain_us") == std::stod(grain));
        CHECK(number_of(rows[name], "iterations") >= 1);
        CHECK(number_of(rows[name], "efficiency") == Approx(0.5).margin(0.5));
      }
    }
}

TEST_CASE("taskbench: one grain, one execution") {
  const testing::Answer answer = ask_taskbench("--patterns dom --widths 4 --steps 9 --grain 20 --systems compiled --seed 77");
  INFO(answer.text);
  CHECK(answer.code == 0);
  CHECK(mentions(answer.text, {"round 1  grain.dom_4.compiled.step", "round 1  grain.dom_4.compiled.at_20us"}));
  CHECK_FALSE(mentions(answer.text, {"dynamic"}));
}

TEST_CASE("taskbench: a planted error is found, and nothing is written") {
  const measure::TempResults folder("taskbench");
  const testing::Answer answer = ask_taskbench("--patterns fft --widths 6 --steps 9 --plant --out " + folder.path().string());
  INFO(answer.text);
  CHECK(answer.code == 1);
  for (const char* system : {"dynamic", "compiled", "unplaced"})
    CHECK(mentions(answer.text, {("taskbench: grain.fft_6." + std::string(system) + ".step: ").c_str(), "found a wrong cell"}));
  CHECK_FALSE(fs::exists(folder.path() / "cpu.json"));
}

TEST_CASE("taskbench: what cannot be is refused before anything is measured") {
  for (const std::string wrong :
       {"--patterns stencil",    "--widths 0", "--widths 99999", "--steps 0",        "--graphs 5",  "--kernels full",
        "--imbalances some",     "--radix 0",  "--period 0",     "--fraction 2",     "--grain 0",   "--largest 0.1",
        "--smallest 0",          "--factor 1", "--scratch 4",    "--systems levels", "--workers 0", "--rounds 0",
        "--out /dev/null/below", "--seed -1"}) {
    const testing::Answer answer = ask_taskbench(wrong);
    INFO(wrong << "\n" << answer.text);
    CHECK(answer.code != 0);
    CHECK(mentions(answer.text, {wrong.substr(0, wrong.find(' ')).c_str()}));
    CHECK_FALSE(mentions(answer.text, {"round 1"}));
  }
}

TEST_CASE("taskbench: by default all patterns, four points a worker, and uneven tasks in four graphs") {
  const Plan plan = plan_for({});
  std::vector<std::string> names;
  for (const Case& one : plan.cases)
    for (const Sweep& sweep : one.sweeps) names.push_back(prefix_of(one, sweep));
  CHECK(names.size() == all_patterns().size() + 1 + 4);
  for (const char* name : {"grain.stencil_132", "grain.stencil_periodic_132", "grain.all_to_all_132", "grain.stencil_528",
                           "grain.stencil_132.x4.uniform", "grain.random_nearest_132.x4.lognormal"})
    CHECK(std::ranges::count(names, name) == 1);
  CHECK(plan.grains.front() == 64);
  CHECK(plan.grains.back() == 0.25);
  CHECK(plan.rounds == 5);
  for (const Case& one : plan.cases) CHECK(one.steps);
}

TEST_CASE("taskbench: all_to_all has fewer steps, so that it has at most two million edges") {
  const Plan plan = plan_for({.patterns = {"all_to_all", "nearest"}, .widths = {132, 2000}});
  CHECK(plan.cases[0].shape.steps == 2'000'000 / (132 * 132));
  CHECK(plan.cases[1].shape.steps == 10);
  CHECK(plan.cases[2].shape.steps == 300);
}

TEST_CASE("taskbench: kernels and imbalances are combined, and empty tasks have no grains") {
  const Plan plan =
      plan_for({.patterns = {"fft"}, .kernels = {"empty", "memory", "compute"}, .imbalances = {"none", "uniform"}});
  REQUIRE(plan.cases.size() == 1);
  CHECK(plan.cases[0].steps);
  CHECK(plan.cases[0].sweeps.size() == 4);
  CHECK_FALSE(plan_for({.patterns = {"fft"}, .kernels = {"memory"}}).cases[0].steps);
  CHECK(plan_for({.patterns = {"fft"}, .kernels = {"empty"}}).cases[0].sweeps.empty());
}

TEST_CASE("taskbench: a peer is one that this build has") {
  CHECK(mentions(error_of([] { plan_of({.systems = {"levels"}}, false, 2); }), {"--systems", "'levels'", "peers need CUDA"}));
  for (const std::string& peer : peer_names()) CHECK(plan_for({.systems = {peer}}).systems.front() == peer);
}

}  // namespace taskbench
