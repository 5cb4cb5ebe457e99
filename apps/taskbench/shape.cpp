#include "apps/taskbench/shape.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace taskbench {
namespace {

struct Named {
  Pattern pattern;
  const char* name;
};
constexpr Named kNames[] = {{Pattern::trivial, "trivial"},
                            {Pattern::no_comm, "no_comm"},
                            {Pattern::stencil_1d, "stencil_1d"},
                            {Pattern::stencil_1d_periodic, "stencil_1d_periodic"},
                            {Pattern::dom, "dom"},
                            {Pattern::tree, "tree"},
                            {Pattern::fft, "fft"},
                            {Pattern::all_to_all, "all_to_all"},
                            {Pattern::nearest, "nearest"},
                            {Pattern::spread, "spread"},
                            {Pattern::random_nearest, "random_nearest"}};

/// As the fields of Shape and of a cell are wide, and four rows of points fit memory by far.
constexpr std::uint32_t kMostWidth = 1u << 14, kMostSteps = 1u << 20;

void check(bool right, const std::string& option, std::uint64_t value, const std::string& remedy) {
  if (!right) throw std::invalid_argument(option + " " + std::to_string(value) + ": " + remedy);
}

std::uint32_t sets_of(const ShapeOptions& options) {
  if (options.pattern == Pattern::fft) return std::max<std::uint32_t>(std::bit_width(options.width - 1), 1);
  const bool moves = options.pattern == Pattern::spread || options.pattern == Pattern::random_nearest;
  return moves ? options.period : 1;
}

void check_inputs(const ShapeOptions& options) {
  check(options.radix >= 1 && options.radix <= 1024, "--radix", options.radix, "a point has 1 to 1024 inputs");
  check(options.period >= 1 && options.period <= 1024, "--period", options.period, "the inputs repeat after 1 to 1024 steps");
  if (!(options.fraction >= 0 && options.fraction <= 1))
    throw std::invalid_argument("--fraction " + std::to_string(options.fraction) + ": a probability is between 0 and 1");
  if (options.pattern != Pattern::spread) return;
  check(options.radix <= options.width, "--radix", options.radix, "spread has no more inputs than the row has points");
  const std::uint32_t apart = (options.width + options.radix - 1) / options.radix;
  check(options.period <= apart, "--period", options.period,
        "with spread the inputs of a point would meet: at most " + std::to_string(apart) + " with this width and radix");
}

}  // namespace

std::vector<std::uint32_t> inputs_of(const Shape& shape, std::uint32_t step, std::uint32_t point) {
  std::vector<std::uint32_t> inputs;
  for_each_input(shape, step, point, [&](std::uint32_t from) { inputs.push_back(from); });
  return inputs;
}

std::uint64_t count_points(const Shape& shape) {
  std::uint64_t count = 0;
  for (std::uint32_t step = 0; step < shape.steps; ++step) count += live_points(shape, step).count;
  return count;
}

std::uint64_t count_edges(const Shape& shape) {
  std::uint64_t count = 0;
  for_each_point(shape, [&](std::uint32_t step, std::uint32_t point) {
    for_each_input(shape, step, point, [&](std::uint32_t) { ++count; });
  });
  return count;
}

std::vector<Pattern> all_patterns() {
  std::vector<Pattern> all;
  for (const Named& named : kNames) all.push_back(named.pattern);
  return all;
}

std::string name_of(Pattern pattern) { return kNames[static_cast<int>(pattern)].name; }

Pattern pattern_named(const std::string& name) {
  std::string known;
  for (const Named& named : kNames) {
    if (name == named.name) return named.pattern;
    known += (known.empty() ? "" : ", ") + std::string(named.name);
  }
  throw std::invalid_argument("--patterns: '" + name + "' is none: choose among " + known);
}

Shape make_shape(const ShapeOptions& options) {
  check(options.width >= 1 && options.width <= kMostWidth, "--widths", options.width, "a row has 1 to 16384 points");
  check(options.steps >= 1 && options.steps <= kMostSteps, "--steps", options.steps, "a graph has 1 to 1048576 steps");
  check_inputs(options);
  const double scaled = std::min(std::round(options.fraction * 4294967296.0), 4294967295.0);
  return {.width = options.width,
          .steps = options.steps,
          .seed = options.seed,
          .connected = static_cast<std::uint32_t>(scaled),
          .radix = static_cast<std::uint16_t>(options.radix),
          .sets = static_cast<std::uint16_t>(sets_of(options)),
          .pattern = options.pattern,
          .graph = static_cast<std::uint8_t>(options.graph)};
}

}  // namespace taskbench
