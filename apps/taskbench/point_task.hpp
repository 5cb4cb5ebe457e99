// A point of a graph as a task of the runtime.
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

}  // namespace taskbench
