// METG(50%) of apps/taskbench, of curves that are computed.
#include "apps/taskbench/metg.hpp"

#include <cmath>

#include "apps/taskbench/rows.hpp"
#include "catch.hpp"
#include "measure_support.hpp"

namespace taskbench {
namespace {

using measure::error_of;
using measure::mentions;

/// A system that spends `overhead_us` on each task besides its work.
std::vector<GrainPoint> curve_of(double overhead_us, const std::vector<double>& grains) {
  std::vector<GrainPoint> points;
  for (const double grain : grains) points.push_back({grain, grain + overhead_us, 132 * grain / (grain + overhead_us)});
  return points;
}

}  // namespace

TEST_CASE("taskbench: the efficiency is the rate over the best rate") {
  const auto points = with_efficiency({{8, 9, 40}, {4, 5, 50}, {2, 3, 20}});
  CHECK(points[0].efficiency == Approx(0.8));
  CHECK(points[1].efficiency == 1);
  CHECK(points[2].efficiency == Approx(0.4));
  CHECK(with_efficiency({{1, 1, 0}})[0].efficiency == 0);
}

TEST_CASE("taskbench: a task takes twice the overhead where half of the rate is left") {
  for (const double overhead : {0.3, 1.5, 6.0}) {
    const auto found = metg(curve_of(overhead, geometric_grains(1024, 0.01, 2)));
    REQUIRE(found);
    CHECK(*found == Approx(2 * overhead).epsilon(0.02));
  }
}

TEST_CASE("taskbench: between two grains the logarithm of the time is interpolated") {
  const auto found = metg({{8, 8, 100}, {4, 4, 60}, {1, 1, 20}});
  REQUIRE(found);
  CHECK(*found == Approx(std::pow(4, 0.75)));
  const auto exact = metg({{8, 8, 100}, {4, 5, 50}, {1, 2, 20}});
  REQUIRE(exact);
  CHECK(*exact == Approx(5));
  const auto other = metg({{8, 8, 100}, {4, 4, 60}, {1, 1, 20}}, 0.6);
  REQUIRE(other);
  CHECK(*other == Approx(4));
}

TEST_CASE("taskbench: the points come in any order, and a dip above the least time does not matter") {
  const auto found = metg({{1, 1, 20}, {16, 16, 100}, {4, 4, 80}, {8, 8, 45}});
  REQUIRE(found);
  CHECK(*found == Approx(std::pow(4, 0.5)));
}

TEST_CASE("taskbench: there is none where no grain is small enough") {
  CHECK_FALSE(metg({}));
  CHECK_FALSE(metg({{8, 8, 100}}));
  CHECK_FALSE(metg({{8, 8, 100}, {4, 4, 60}}));
  CHECK_FALSE(metg({{8, 8, 0}, {4, 4, 0}}));
}

TEST_CASE("taskbench: grains shrink by the factor, both ends are there") {
  CHECK(geometric_grains(8, 1, 2) == std::vector<double>{8, 4, 2, 1});
  CHECK(geometric_grains(5, 5, 2) == std::vector<double>{5});
  const auto grains = geometric_grains(64, 0.25, std::sqrt(2));
  CHECK(grains.size() == 17);
  CHECK(grains.back() == Approx(0.25));
  CHECK(mentions(error_of([] { geometric_grains(8, 0, 2); }), {"--smallest"}));
  CHECK(mentions(error_of([] { geometric_grains(1, 8, 2); }), {"--largest", "--smallest"}));
  CHECK(mentions(error_of([] { geometric_grains(8, 1, 1); }), {"--factor"}));
}

TEST_CASE("taskbench: rows are named by pattern, width and what differs from balanced compute-bound tasks") {
  Case one{.shape = {.pattern = Pattern::stencil_1d, .width = 132}, .graphs = 1};
  CHECK(row_name(prefix_of(one), "compiled", "step") == "grain.stencil_132.compiled.step");
  CHECK(prefix_of(one, {}) == "grain.stencil_132");
  CHECK(row_name(prefix_of(one, {Kernel::busy_wait, Imbalance::uniform}), "levels", at_grain(0.25)) ==
        "grain.stencil_132.busy_wait.uniform.levels.at_0.25us");
  one.graphs = 4;
  one.shape.pattern = Pattern::fft;
  CHECK(prefix_of(one, {Kernel::compute, Imbalance::lognormal}) == "grain.fft_132.x4.lognormal");
}

TEST_CASE("taskbench: a METG has the level graph's beside it, and one that is not there is told") {
  const std::vector<double> grains = geometric_grains(64, 0.25, 2);
  std::vector<std::string> notes;
  const auto rows =
      metg_rows("grain.fft_8",
                {{"compiled", curve_of(1, grains)}, {"levels", curve_of(1.5, grains)}, {"dynamic", curve_of(0.01, grains)}},
                {.gpu = "g"}, notes);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].name == "grain.fft_8.compiled.metg");
  CHECK(rows[0].peer == "grain.fft_8.levels.metg");
  CHECK(rows[0].value == Approx(2).epsilon(0.05));
  REQUIRE(rows[0].peer_value);
  CHECK(*rows[0].peer_value == Approx(3).epsilon(0.05));
  CHECK(rows[1].peer.empty());
  REQUIRE(notes.size() == 1);
  CHECK(mentions(notes[0], {"grain.fft_8.dynamic.metg", "--smallest"}));
}

}  // namespace taskbench
