// LevelSearch: breadth-first search level by level in one task, with one grid_sync() after each step. It ends by itself.
#pragma once

#include "apps/bfs/level_bottom_up.hpp"
#include "apps/measure/work_clock.hpp"

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
      note(block, here, course);
      run_step(block, here, course);
      course.go_on();
      if (!block.grid_sync()) return;
    }
    note(block, here, course);
  }

 private:
  template <class Block>
  FLYWHEEL_TASK static void note(const Block& block, const LevelMemory& memory, const LevelCourse& course) {
    if (block.worker() != 0 || !block.leader() || course.turn >= LevelWords::kMostRecords) return;
    memory.shared->records[course.turn] = {measure::shared_clock_ns(), course.items, course.step};
  }
};

}  // namespace bfs
