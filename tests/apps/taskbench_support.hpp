// What the tests of apps/taskbench share: shapes by name, problems drawn at random, and a system that does wrong.
#pragma once

#include <rapidcheck.h>

#include <stdexcept>

#include "apps/taskbench/system.hpp"

namespace taskbench {

/// A shape of any pattern that make_shape() takes.
inline ShapeOptions some_shape(std::uint32_t most_width, std::uint32_t most_steps) {
  ShapeOptions options;
  options.pattern = *rc::gen::elementOf(all_patterns());
  options.width = *rc::gen::inRange<std::uint32_t>(1, most_width + 1);
  options.steps = *rc::gen::inRange<std::uint32_t>(1, most_steps + 1);
  options.seed = *rc::gen::arbitrary<std::uint32_t>();
  options.fraction = *rc::gen::inRange(0, 101) / 100.0;
  const bool spread = options.pattern == Pattern::spread;
  options.radix = *rc::gen::inRange<std::uint32_t>(1, spread ? options.width + 1 : 12);
  const std::uint32_t apart = (options.width + options.radix - 1) / options.radix;
  options.period = *rc::gen::inRange<std::uint32_t>(1, spread ? apart + 1 : 5);
  return options;
}

inline RunSettings some_settings() {
  const std::uint16_t run = *rc::gen::inRange<std::uint16_t>(1, 60'000);
  const auto kernel = *rc::gen::element(Kernel::empty, Kernel::compute, Kernel::memory, Kernel::busy_wait);
  const auto imbalance = *rc::gen::element(Imbalance::none, Imbalance::uniform, Imbalance::lognormal);
  return {.iterations = *rc::gen::inRange<std::uint32_t>(0, 200), .run = run, .kernel = kernel, .imbalance = imbalance};
}

struct OneThreadBlock {
  static constexpr int kLanes = 1;
  static bool leader() { return true; }
  static int lane() { return 0; }
  static std::uint64_t shuffle(std::uint64_t value, int) { return value; }
  template <class F>
  static void for_each(int n, F&& f) {
    for (int i = 0; i < n; ++i) f(i);
  }
};

/// Runs a problem one task after another on the calling thread, and falsifies what it is told to.
class SerialSystem final : public System {
 public:
  explicit SerialSystem(const Problem& problem) : problem_(problem) {
    for (std::uint32_t g = 0; g < problem.graphs.size(); ++g) {
      cells_.emplace_back(std::size_t{problem.width()} * problem.steps());
      scratch_.emplace_back(std::size_t{problem.width()} * 2 * problem.pieces() * kPieceChunks);
    }
  }
  double run(const RunSettings& settings) override {
    OneThreadBlock block;
    for (std::uint32_t g = 0; g < problem_.graphs.size(); ++g) {
      GraphData data = data_of(problem_, g);
      data.cells = cells_[g].data(), data.scratch = scratch_[g].data(), data.faults = &faults_;
      for_each_point(data.shape, [&](std::uint32_t step, std::uint32_t point) {
        if (step != skipped_step || point != skipped_point)
          run_point(block, data, PlainCells{data.cells}, step, point, settings);
      });
    }
    return 1;
  }
  std::vector<Cell> cells(std::uint32_t graph) override { return cells_.at(graph); }
  Faults faults() override { return faults_; }

  std::uint32_t skipped_step = ~0u, skipped_point = ~0u;

 private:
  const Problem problem_;
  std::vector<std::vector<Cell>> cells_;
  std::vector<std::vector<Chunk>> scratch_;
  Faults faults_{};
};

}  // namespace taskbench
