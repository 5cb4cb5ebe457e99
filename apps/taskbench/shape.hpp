// What Task Bench calls a task graph: points in a row, the same row in every step, and a pattern that says which points of the
// step before a point reads. Pure functions, the same on the host and on a GPU.
//
// The patterns are those of Slaughter et al., "Task Bench" (SC 2020), and of its program, github.com/StanfordLegion/task-bench,
// core/core.cc. That program also has a name random_spread, without a definition; it is not here.
#pragma once

#include <flywheel/flywheel.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "apps/taskbench/draw.hpp"

namespace taskbench {

enum class Pattern : std::uint8_t {
  trivial,              // none
  no_comm,              // itself
  stencil_1d,           // itself and its neighbours
  stencil_1d_periodic,  // the same in a ring
  dom,                  // itself and its left neighbour, where the live points move along the row (discrete ordinates)
  tree,                 // its parent; the live points double until the row is full
  fft,                  // itself and two at a distance that doubles from step to step, over and over
  all_to_all,           // all
  nearest,              // the `radix` points around it
  spread,               // `radix` points evenly apart, all but the first moving with the step
  random_nearest        // of the `radix` points around it each with a probability, and itself
};

struct Shape {
  std::uint32_t width = 4, steps = 4;
  std::uint32_t seed = 0;
  std::uint32_t connected = 1u << 30;  // random_nearest: the probability of an input, times 2^32
  std::uint16_t radix = 5;
  std::uint16_t sets = 1;  // after so many steps the inputs repeat
  Pattern pattern = Pattern::trivial;
  std::uint8_t graph = 0;  // which of the graphs that run side by side
};

/// The live points of a step: `count` of them from `first` on. Step -1 has none.
struct Live {
  std::uint32_t first, count;
  FLYWHEEL_TASK bool has(std::int64_t point) const { return point >= first && point < std::int64_t{first} + count; }
};
FLYWHEEL_TASK inline Live live_points(const Shape& shape, std::int64_t step) {
  const std::int64_t width = shape.width, steps = shape.steps;
  if (step < 0) return {0, 0};
  if (shape.pattern == Pattern::dom) {
    const std::int64_t grown = step + 1 < steps - step ? step + 1 : steps - step, moved = step + width - steps;
    return {static_cast<std::uint32_t>(moved > 0 ? moved : 0), static_cast<std::uint32_t>(grown < width ? grown : width)};
  }
  if (shape.pattern == Pattern::tree && step < 32 && (std::int64_t{1} << step) < width) return {0, 1u << step};
  return {0, shape.width};
}

/// Which of the pattern's sets of inputs a step has.
FLYWHEEL_TASK inline std::uint32_t set_of(const Shape& shape, std::uint32_t step) {
  if (shape.sets == 1) return 0;
  return (shape.pattern == Pattern::fft ? step + shape.sets - 1 : step) % shape.sets;
}

/// An upper bound of the number of inputs of a point: how many candidates there are.
FLYWHEEL_TASK inline std::uint32_t candidate_count(const Shape& shape) {
  const Pattern pattern = shape.pattern;
  if (pattern == Pattern::trivial) return 0;
  if (pattern == Pattern::no_comm || pattern == Pattern::tree) return 1;
  if (pattern == Pattern::dom) return 2;
  if (pattern == Pattern::stencil_1d || pattern == Pattern::stencil_1d_periodic || pattern == Pattern::fft) return 3;
  return pattern == Pattern::all_to_all ? shape.width : shape.radix;
}

inline constexpr std::int64_t kNoInput = -1;

/// Neighbour -1, 0 or 1 of a point in a ring. In a ring of two both neighbours are the same, in a ring of one it is the point.
FLYWHEEL_TASK inline std::int64_t in_ring(std::int64_t width, std::int64_t point, std::int64_t by) {
  if (by != 0 && width <= (by < 0 ? 1 : 2)) return kNoInput;
  return (point + by + width) % width;
}

FLYWHEEL_TASK inline std::int64_t random_candidate(const Shape& shape, std::uint32_t set, std::int64_t point,
                                                   std::int64_t from) {
  const std::uint64_t drawn = draw(shape.seed, shape.graph, set, static_cast<std::uint64_t>(point) << 32 | (from & 0xffffffff));
  return from == point || (drawn >> 32) < shape.connected ? from : kNoInput;
}

/// Candidate `k`, a point or one that is not in the row. Different candidates are different points.
FLYWHEEL_TASK inline std::int64_t candidate(const Shape& shape, std::uint32_t set, std::int64_t point, std::int64_t k) {
  const std::int64_t width = shape.width, radix = shape.radix;
  const Pattern pattern = shape.pattern;
  if (pattern == Pattern::no_comm) return point;
  if (pattern == Pattern::stencil_1d || pattern == Pattern::dom) return point - 1 + k;
  if (pattern == Pattern::stencil_1d_periodic) return in_ring(width, point, k - 1);
  if (pattern == Pattern::tree) return point / 2;
  if (pattern == Pattern::fft) return point + (k - 1) * (std::int64_t{1} << set);
  if (pattern == Pattern::all_to_all) return k;
  if (pattern == Pattern::spread) return (point + k * width / radix + (k > 0 ? set : 0)) % width;
  const std::int64_t near = point - radix / 2 + k;
  return pattern == Pattern::nearest ? near : random_candidate(shape, set, point, near);
}

/// Input `k` of a point in a step, below candidate_count(): a live point of the step before, or kNoInput.
FLYWHEEL_TASK inline std::int64_t input_of(const Shape& shape, std::uint32_t set, std::uint32_t step, std::uint32_t point,
                                           std::uint32_t k) {
  const std::int64_t from = candidate(shape, set, point, k);
  return live_points(shape, std::int64_t{step} - 1).has(from) ? from : kNoInput;
}

/// Calls f(from) for each input of a point.
template <class F>
void for_each_input(const Shape& shape, std::uint32_t step, std::uint32_t point, F&& f) {
  const std::uint32_t set = set_of(shape, step);
  for (std::uint32_t k = 0; k < candidate_count(shape); ++k) {
    const std::int64_t from = input_of(shape, set, step, point, k);
    if (from != kNoInput) f(static_cast<std::uint32_t>(from));
  }
}
std::vector<std::uint32_t> inputs_of(const Shape& shape, std::uint32_t step, std::uint32_t point);

/// Calls f(step, point) for all points, step by step.
template <class F>
void for_each_point(const Shape& shape, F&& f) {
  for (std::uint32_t step = 0; step < shape.steps; ++step) {
    const Live live = live_points(shape, step);
    for (std::uint32_t i = 0; i < live.count; ++i) f(step, live.first + i);
  }
}
std::uint64_t count_points(const Shape& shape);
std::uint64_t count_edges(const Shape& shape);

std::vector<Pattern> all_patterns();
/// The name in the paper's program: "stencil_1d".
std::string name_of(Pattern pattern);
/// Throws std::invalid_argument for a name that is none.
Pattern pattern_named(const std::string& name);

/// What a person chooses of a shape.
struct ShapeOptions {
  Pattern pattern = Pattern::trivial;
  std::uint32_t width = 4, steps = 4;
  std::uint32_t radix = 5, period = 3;  // of the patterns that have them
  double fraction = 0.25;               // random_nearest: the probability of an input
  std::uint32_t seed = 1;
  std::uint32_t graph = 0;
};
/// Throws std::invalid_argument, naming the option and the remedy, for a shape that cannot be.
Shape make_shape(const ShapeOptions& options);

}  // namespace taskbench
