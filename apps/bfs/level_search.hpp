// LevelSearch: breadth-first search level by level in one task, with one grid_sync() after each step. It ends by itself.
#pragma once

#include "apps/bfs/level_bottom_up.hpp"

namespace bfs {

struct LevelSearch {
  LevelMemory memory;
  flywheel::Param<std::uint32_t> root;
  std::uint32_t chooses;  // 0: top-down steps alone

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const LevelMemory here = memory;  // in registers
    reset_levels(block, here, block.param(root));
    if (!block.grid_sync()) return;
    LevelCourse course{.chooses = chooses, .edges_left = here.graph.offsets[here.graph.vertices]};
    while (course.choose(here.frontier_count(course.turn), here.graph.vertices)) {
      run_step(block, here, course);
      course.go_on();
      if (!block.grid_sync()) return;
    }
  }
};

}  // namespace bfs
