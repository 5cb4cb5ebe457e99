// The patterns of apps/taskbench beside tables written by hand and beside a second definition.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "catch.hpp"
#include "measure_support.hpp"
#include "taskbench_support.hpp"

namespace taskbench {
namespace {

using measure::error_of;
using measure::mentions;
using Points = std::vector<std::uint32_t>;
using Table = std::vector<Points>;  // of each live point of a step: its inputs

Points sorted_inputs(const Shape& shape, std::uint32_t step, std::uint32_t point) {
  Points inputs = inputs_of(shape, step, point);
  std::ranges::sort(inputs);
  return inputs;
}

Table table_of(const Shape& shape, std::uint32_t step) {
  Table table;
  const Live live = live_points(shape, step);
  for (std::uint32_t i = 0; i < live.count; ++i) table.push_back(sorted_inputs(shape, step, live.first + i));
  return table;
}

Shape shape_of(Pattern pattern, std::uint32_t width, std::uint32_t steps, std::uint32_t radix = 5, std::uint32_t period = 3) {
  return make_shape({.pattern = pattern, .width = width, .steps = steps, .radix = radix, .period = period});
}

std::int64_t wrapped(std::int64_t point, std::int64_t width) { return (point % width + width) % width; }

/// The points that read `from`, in the row or beside it, by the reverse definitions of the paper's program. `set`: of their
/// step.
std::set<std::int64_t> reverse(const ShapeOptions& o, std::uint32_t set, std::int64_t from) {
  std::set<std::int64_t> all;
  const std::int64_t width = o.width, radix = o.radix, far = std::int64_t{1} << set;
  const auto range = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t point = first; point <= last; ++point) all.insert(point);
  };
  if (o.pattern == Pattern::no_comm) range(from, from);
  if (o.pattern == Pattern::stencil_1d) range(from - 1, from + 1);
  if (o.pattern == Pattern::stencil_1d_periodic) all = {wrapped(from - 1, width), from, wrapped(from + 1, width)};
  if (o.pattern == Pattern::dom) range(from, from + 1);
  if (o.pattern == Pattern::tree) range(2 * from, 2 * from + 1);
  if (o.pattern == Pattern::fft) all = {from - far, from, from + far};
  if (o.pattern == Pattern::all_to_all) range(0, width - 1);
  if (o.pattern == Pattern::nearest || o.pattern == Pattern::random_nearest) range(from - (radix - 1) / 2, from + radix / 2);
  for (std::int64_t i = 0; o.pattern == Pattern::spread && i < radix; ++i)
    all.insert(wrapped(from - i * width / radix - (i > 0 ? set : 0), width));
  return all;
}

/// The set of a step, counted by hand: what a pattern repeats, from its first step with inputs on.
std::uint32_t expected_set(const ShapeOptions& o, std::uint32_t step) {
  std::uint32_t doublings = 0;
  while ((1u << doublings) < o.width) ++doublings;
  if (o.pattern == Pattern::fft) return doublings ? (step - 1) % doublings : 0;
  return o.pattern == Pattern::spread || o.pattern == Pattern::random_nearest ? step % o.period : 0;
}

}  // namespace

TEST_CASE("taskbench: the inputs of small rows, by hand") {
  CHECK(table_of(shape_of(Pattern::trivial, 3, 4), 2) == Table{{}, {}, {}});
  CHECK(table_of(shape_of(Pattern::no_comm, 3, 4), 2) == Table{{0}, {1}, {2}});
  CHECK(table_of(shape_of(Pattern::stencil_1d, 4, 4), 1) == Table{{0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3}});
  CHECK(table_of(shape_of(Pattern::stencil_1d_periodic, 4, 4), 1) == Table{{0, 1, 3}, {0, 1, 2}, {1, 2, 3}, {0, 2, 3}});
  CHECK(table_of(shape_of(Pattern::stencil_1d_periodic, 2, 4), 1) == Table{{0, 1}, {0, 1}});
  CHECK(table_of(shape_of(Pattern::stencil_1d_periodic, 1, 4), 1) == Table{{0}});
  CHECK(table_of(shape_of(Pattern::all_to_all, 3, 4), 3) == Table{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}});
  CHECK(table_of(shape_of(Pattern::nearest, 5, 4, 4), 1) == Table{{0, 1}, {0, 1, 2}, {0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4}});
  const Shape spread = shape_of(Pattern::spread, 6, 4, 2, 3);
  CHECK(table_of(spread, 3) == Table{{0, 3}, {1, 4}, {2, 5}, {0, 3}, {1, 4}, {2, 5}});
  CHECK(table_of(spread, 1) == Table{{0, 4}, {1, 5}, {0, 2}, {1, 3}, {2, 4}, {3, 5}});
  CHECK(table_of(spread, 2)[0] == Points{0, 5});
}

TEST_CASE("taskbench: the fft doubles its distance, and begins again") {
  const Shape fft = shape_of(Pattern::fft, 5, 9);
  CHECK(table_of(fft, 1) == Table{{0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4}});
  CHECK(table_of(fft, 2) == Table{{0, 2}, {1, 3}, {0, 2, 4}, {1, 3}, {2, 4}});
  CHECK(table_of(fft, 3) == Table{{0, 4}, {1}, {2}, {3}, {0, 4}});
  CHECK(table_of(fft, 4) == table_of(fft, 1));
}

TEST_CASE("taskbench: the live points of a tree double, and each reads its parent") {
  const Shape tree = shape_of(Pattern::tree, 6, 5);
  CHECK(table_of(tree, 0) == Table{{}});
  CHECK(table_of(tree, 1) == Table{{0}, {0}});
  CHECK(table_of(tree, 2) == Table{{0}, {0}, {1}, {1}});
  CHECK(table_of(tree, 3) == Table{{0}, {0}, {1}, {1}, {2}, {2}});
  CHECK(table_of(tree, 4) == table_of(tree, 3));
}

TEST_CASE("taskbench: the live points of a dom grow, move and shrink") {
  const Shape dom = shape_of(Pattern::dom, 3, 6);
  CHECK(table_of(dom, 0) == Table{{}});
  CHECK(table_of(dom, 1) == Table{{0}, {0}});
  CHECK(table_of(dom, 2) == Table{{0}, {0, 1}, {1}});
  CHECK(table_of(dom, 3) == Table{{0}, {0, 1}, {1, 2}});
  CHECK(live_points(dom, 4).first == 1);
  CHECK(table_of(dom, 4) == Table{{0, 1}, {1, 2}});
  CHECK(table_of(dom, 5) == Table{{1, 2}});
  CHECK(count_points(dom) == 12);
}

TEST_CASE("taskbench: inputs are those points whose readers say so, for widths drawn at random") {
  CHECK(rc::check([] {
    const ShapeOptions options = some_shape(40, 12);
    const Shape shape = make_shape(options);
    for (std::uint32_t step = 0; step < shape.steps; ++step) {
      const Live live = live_points(shape, step), before = live_points(shape, std::int64_t{step} - 1);
      RC_ASSERT(live.count >= 1 && live.first + live.count <= shape.width);
      std::map<std::uint32_t, Points> expected;
      for (std::uint32_t i = 0; i < before.count; ++i)
        for (const std::int64_t reader : reverse(options, expected_set(options, step), before.first + i))
          if (live.has(reader)) expected[static_cast<std::uint32_t>(reader)].push_back(before.first + i);
      for (std::uint32_t point = live.first; point < live.first + live.count; ++point) {
        const Points found = sorted_inputs(shape, step, point);
        RC_ASSERT(std::ranges::adjacent_find(found) == found.end());
        if (options.pattern != Pattern::random_nearest) RC_ASSERT(found == expected[point]);
        else RC_ASSERT(std::ranges::includes(expected[point], found));
      }
    }
  }));
}

TEST_CASE("taskbench: random_nearest takes a part of the nearest points, always itself, and repeats") {
  const ShapeOptions options{
      .pattern = Pattern::random_nearest, .width = 500, .steps = 8, .radix = 9, .period = 4, .fraction = 0.3};
  const Shape shape = make_shape(options);
  std::uint64_t inputs = 0;
  for (std::uint32_t point = 4; point < 496; ++point) {
    const Points found = sorted_inputs(shape, 2, point);
    CHECK(std::ranges::count(found, point) == 1);
    CHECK(found == sorted_inputs(shape, 6, point));
    inputs += found.size() - 1;
  }
  CHECK(static_cast<double>(inputs) / (492 * 8) == Approx(0.3).margin(0.03));
  CHECK(table_of(shape, 2) != table_of(shape, 3));
  ShapeOptions other = options;
  other.graph = 1;
  CHECK(table_of(make_shape(other), 2) != table_of(shape, 2));
  other = options;
  other.fraction = 1;
  CHECK(table_of(make_shape(other), 2) == table_of(shape_of(Pattern::nearest, 500, 8, 9), 2));
  other.fraction = 0;
  CHECK(table_of(make_shape(other), 2) == table_of(shape_of(Pattern::no_comm, 500, 8), 2));
}

TEST_CASE("taskbench: points and edges are counted") {
  CHECK(count_points(shape_of(Pattern::all_to_all, 7, 5)) == 35);
  CHECK(count_edges(shape_of(Pattern::all_to_all, 7, 5)) == 4 * 49);
  CHECK(count_edges(shape_of(Pattern::stencil_1d, 7, 3)) == 2 * 19);
  CHECK(count_edges(shape_of(Pattern::trivial, 7, 3)) == 0);
}

TEST_CASE("taskbench: a shape that cannot be is refused, with its option and a remedy") {
  const auto error = [](ShapeOptions options) { return error_of([&] { make_shape(options); }); };
  CHECK(mentions(error({.width = 0}), {"--widths 0", "1 to 16384"}));
  CHECK(mentions(error({.width = 1u << 15}), {"--widths 32768"}));
  CHECK(mentions(error({.steps = 0}), {"--steps 0"}));
  CHECK(mentions(error({.radix = 0}), {"--radix 0"}));
  CHECK(mentions(error({.period = 0}), {"--period 0"}));
  CHECK(mentions(error({.fraction = 1.5}), {"--fraction", "between 0 and 1"}));
  CHECK(mentions(error({.pattern = Pattern::spread, .width = 4, .radix = 5}), {"--radix 5", "than the row has points"}));
  CHECK(mentions(error({.pattern = Pattern::spread, .width = 10, .radix = 5, .period = 3}), {"--period 3", "at most 2"}));
  CHECK(mentions(error_of([] { pattern_named("stencil"); }), {"--patterns: 'stencil'", "stencil_1d_periodic"}));
  for (const Pattern pattern : all_patterns()) CHECK(pattern_named(name_of(pattern)) == pattern);
}

}  // namespace taskbench
