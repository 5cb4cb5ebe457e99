// A point of a graph as an early task: it begins before the tasks before it have ended, and polls its inputs. Their cells come
// in stamped words, which say themselves that they are there.
#pragma once

#include <flywheel/task.cuh>

#include "apps/taskbench/point.hpp"

namespace taskbench {

inline constexpr std::size_t kWordsOfCell = 4;

FLYWHEEL_TASK inline Cell cell_of(const flywheel::Stamped (&words)[kWordsOfCell]) {
  const std::uint32_t who = words[1].bits();
  return {words[0].bits(), static_cast<std::uint16_t>(who), static_cast<std::uint16_t>(who >> 16),
          std::uint64_t{words[3].bits()} << 32 | words[2].bits()};
}

/// Cells in stamped words, as the tasks of a compiled graph see them.
template <class Block>
struct StampedCells {
  Block& block;
  flywheel::Stamped* words;

  /// Waits until all words are of this pass. False if there is no such cell, or its words will not come, since the run has
  /// failed. All lanes of a warp call it, and go on together. On CPU workers no task begins early, so all words are there.
  FLYWHEEL_TASK bool read(std::size_t at, Cell& to) const {
    flywheel::Stamped got[kWordsOfCell] = {};
    const auto all_there = [&] {
      bool there = true;
      for (std::size_t i = 0; at != kNoCell && i < kWordsOfCell; ++i) {
        got[i] = flywheel::look_at(words[kWordsOfCell * at + i]);
        there = there && got[i].stamp() == block.stamp();
      }
      return there;
    };
    bool come = true;
    if constexpr (Block::kOnGpu) come = block.spin(all_there);
    else all_there();
    to = cell_of(got);
    return come && at != kNoCell;
  }
  FLYWHEEL_TASK void write(std::size_t at, const Cell& cell) const {
    const std::uint32_t bits[kWordsOfCell] = {cell.step, std::uint32_t{cell.run} << 16 | cell.point,
                                              static_cast<std::uint32_t>(cell.hash),
                                              static_cast<std::uint32_t>(cell.hash >> 32)};
    for (std::size_t i = 0; i < kWordsOfCell; ++i) put_stamped(words[kWordsOfCell * at + i], bits[i], block.stamp());
  }
};

struct EarlyPointTask {
  static constexpr bool kEarly = true;

  GraphData graph;
  flywheel::Stamped* words;
  flywheel::Param<RunSettings> settings;
  std::uint32_t step, point;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    run(block);
  }
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const { run(block); }

 private:
  template <class Block>
  FLYWHEEL_TASK void run(Block& block) const {
    run_point(block, graph, StampedCells<Block>{block, words}, step, point, block.param(settings));
    block.sync();
    if (block.leader()) block.sent();  // all words of this task are on their way
  }
};

}  // namespace taskbench
