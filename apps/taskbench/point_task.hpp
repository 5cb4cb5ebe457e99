// A point of a graph as a task of the runtime: of all warps of a worker, or of one.
#pragma once

#include "apps/taskbench/point.hpp"

namespace taskbench {

struct PointTask {
  GraphData graph;
  flywheel::Param<RunSettings> settings;
  std::uint32_t step, point;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    run_point(block, graph, PlainCells{graph.cells}, step, point, block.param(settings));
  }
};

/// The same as a warp task. It computes as much in all, so each thread of the fewer has more to do.
struct WarpPointTask {
  using Grain = flywheel::Warp;

  PointTask task;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    RunSettings settings = block.param(task.settings);
    if (Block::kOnGpu && settings.kernel == Kernel::compute) {
      constexpr std::uint32_t kMore = 256 / 32, kMost = ~0u / kMore;
      settings.iterations = kMore * (settings.iterations < kMost ? settings.iterations : kMost);
    }
    run_point(block, task.graph, PlainCells{task.graph.cells}, task.step, task.point, settings);
  }
};

}  // namespace taskbench
