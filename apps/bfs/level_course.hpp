// The course of a search that goes level by level: which step comes next, and when it is over. All workers read the same
// counts, so all come to the same. The switches between the directions are those of Beamer, Asanovic and Patterson,
// "Direction-Optimizing Breadth-First Search" (SC 2012), with the constants of the GAP benchmark.
#pragma once

#include "apps/bfs/pieces.hpp"

namespace bfs {

enum class Step : std::uint32_t {
  top_down,   // the edges of the frontier, which is a list of pieces: whom do they reach for the first time?
  bottom_up,  // the vertices that are not reached: is a neighbour in the frontier?
  gather      // the list of pieces of the frontier that a bottom-up step has found
};

inline constexpr std::uint32_t kAlpha = 15, kBeta = 18;

struct LevelCourse {
  Step step = Step::top_down;
  std::uint32_t turn = 0;        // of the step
  std::uint32_t level = 0;       // distance of the frontier
  std::uint32_t side = 0;        // which of two bitmaps says who is reached
  std::uint32_t items = 0;       // of the frontier: its pieces; after a bottom-up step its vertices
  std::uint32_t chooses = 1;     // 0: top-down steps alone
  std::uint64_t edges_left = 0;  // of vertices that have not been in a frontier

  /// Before a step: chooses which. `count`: of the frontier. False: it is empty, the search is over.
  FLYWHEEL_TASK bool choose(const LevelCount& count, std::uint32_t vertices) {
    const std::uint32_t before = items;
    items = count.items;
    if (step == Step::gather) {
      step = Step::top_down;
      return items != 0;
    }
    edges_left -= count.edges;
    const bool grows = items >= before;
    if (step == Step::top_down && chooses && grows && count.edges > edges_left / kAlpha) step = Step::bottom_up;
    else if (step == Step::bottom_up && !grows && items < vertices / kBeta) step = Step::gather;
    return items != 0;
  }
  /// After it.
  FLYWHEEL_TASK void go_on() {
    ++turn;
    if (step != Step::gather) ++level;
    if (step == Step::bottom_up) side ^= 1;
  }
};

}  // namespace bfs
