// The bottom-up step: each vertex that is not reached looks for a neighbour that is. Before the step all neighbours of a
// frontier but the last have been reached, so whoever is a neighbour of such a vertex and reached is in the frontier.
#pragma once

#include "apps/bfs/level_step.hpp"

namespace bfs {

/// How many vertices a lane looks at together, so that their loads are on their way at once. A plain kernel may say another
/// number: it has more threads on an SM, and fewer registers for each.
template <class Block>
constexpr int vertices_in_hand() {
  if constexpr (requires { Block::kVerticesInHand; }) return Block::kVerticesInHand;
  else return 8;
}

/// A warp looks through kGroup words of the bitmap at once, a vertex of each with each lane.
template <class Block>
class BottomUp {
  static constexpr int kGroup = vertices_in_hand<Block>();

  /// What is left of a vertex's row.
  struct Row {
    std::uint32_t at, end, degree;
    bool found;
    FLYWHEEL_TASK bool is_open() const { return !found && at < end; }
  };

 public:
  FLYWHEEL_TASK BottomUp(Block& block, const LevelMemory& memory, const LevelCourse& course)
      : block_(block),
        memory_(memory),
        reached_(memory.reached[course.side]),
        level_(course.level) {}

  /// Returns what the calling lane has found, as a packed LevelCount.
  FLYWHEEL_TASK std::uint64_t look_through(std::uint32_t* next) {
    const std::uint32_t words = memory_.words(), step = all_warps(block_) * kGroup;
    for (std::uint32_t first = warp_of_all(block_) * kGroup; first < words; first += step) {
      const std::uint32_t later = (first + step) * 32 + static_cast<std::uint32_t>(block_.lane()) * kGroup;
      if (later < memory_.graph.vertices) fetch_ahead(memory_.graph.offsets + later);
      look_at_group(first, words, next);
    }
    return sum_;
  }

 private:
  FLYWHEEL_TASK void look_at_group(std::uint32_t first, std::uint32_t words, std::uint32_t* next) {
    std::uint32_t held[kGroup], fresh[kGroup] = {};
    for (int w = 0; w < kGroup; ++w) held[w] = first + w < words ? reached_[first + w] : ~0u;
    for (std::uint32_t bit = static_cast<std::uint32_t>(block_.lane()); bit < 32; bit += Block::kLanes) {
      Row rows[kGroup];
      open_rows(first, bit, held, rows);
      look_alone(rows);
      look_together(rows);
      for (int w = 0; w < kGroup; ++w)
        if (rows[w].found) fresh[w] |= note(first + w, bit, rows[w].degree);
    }
    for (int w = 0; w < kGroup; ++w) {
      const std::uint32_t all = Block::kLanes == 1 ? fresh[w] : block_.ballot(fresh[w] != 0);
      if (block_.lane() == 0 && first + w < words) next[first + w] = held[w] | all;
    }
  }

  FLYWHEEL_TASK void open_rows(std::uint32_t first, std::uint32_t bit, const std::uint32_t (&held)[kGroup],
                               Row (&rows)[kGroup]) const {
    for (int w = 0; w < kGroup; ++w) {
      const std::uint32_t v = (first + w) * 32 + bit;
      rows[w] = {0, 0, 0, false};
      if (held[w] >> bit & 1 || v >= memory_.graph.vertices) continue;
      rows[w].at = memory_.graph.offsets[v];
      rows[w].end = memory_.graph.offsets[v + 1];
      rows[w].degree = rows[w].end - rows[w].at;
    }
  }

  FLYWHEEL_TASK bool is_reached(std::uint32_t vertex) const { return reached_[vertex / 32] >> vertex % 32 & 1; }

  /// Each lane looks along its own rows. Most find a neighbour at once, since a row begins with those of the highest degrees;
  /// few have so many edges that all lanes have to help.
  FLYWHEEL_TASK void look_alone(Row (&rows)[kGroup]) const {
    look_at_next<2>(rows);
    for (int times = 0; times < 7 && is_any_open(rows); ++times) look_at_next<4>(rows);
  }
  FLYWHEEL_TASK bool is_any_open(const Row (&rows)[kGroup]) const {
    bool is_open = false;
    for (int w = 0; w < kGroup; ++w) is_open |= rows[w].is_open();
    return block_.any_warp(is_open);
  }
  /// So many edges of each row: first all their targets, then all these targets' bits.
  template <int kEdges>
  FLYWHEEL_TASK void look_at_next(Row (&rows)[kGroup]) const {
    std::uint32_t targets[kGroup][kEdges];
    for (int w = 0; w < kGroup; ++w)
      for (int e = 0; e < kEdges; ++e) {
        const std::uint32_t at = rows[w].at + static_cast<std::uint32_t>(e);
        targets[w][e] = !rows[w].found && at < rows[w].end ? memory_.graph.targets[at] : kNone;
      }
    for (int w = 0; w < kGroup; ++w) {
      for (int e = 0; e < kEdges; ++e) rows[w].found |= targets[w][e] != kNone && is_reached(targets[w][e]);
      rows[w].at += kEdges;
    }
  }

  /// The lanes look along what is left of each row together.
  FLYWHEEL_TASK void look_together(Row (&rows)[kGroup]) const {
    for (int w = 0; w < kGroup; ++w) {
      for (std::uint32_t open = block_.ballot(rows[w].is_open()); open; open &= open - 1) {
        const int owner = static_cast<int>(lowest_bit(open));
        const std::uint32_t end = block_.shuffle(rows[w].end, owner);
        bool found = false;
        for (std::uint32_t at = block_.shuffle(rows[w].at, owner); at < end && !found; at += 2 * Block::kLanes)
          found = block_.any_warp(is_any_reached(at + static_cast<std::uint32_t>(block_.lane()), end));
        if (block_.lane() == owner) rows[w].found = found, rows[w].at = end;
      }
    }
  }
  FLYWHEEL_TASK bool is_any_reached(std::uint32_t at, std::uint32_t end) const {
    const std::uint32_t one = at < end ? memory_.graph.targets[at] : kNone;
    const std::uint32_t other = at + Block::kLanes < end ? memory_.graph.targets[at + Block::kLanes] : kNone;
    return (one != kNone && is_reached(one)) || (other != kNone && is_reached(other));
  }

  FLYWHEEL_TASK std::uint32_t note(std::uint32_t word, std::uint32_t bit, std::uint32_t degree) {
    memory_.distance[word * 32 + bit] = level_ + 1;
    sum_ += LevelCount::packed(1, degree);
    return 1u << bit;
  }

  Block& block_;
  const LevelMemory& memory_;
  const std::uint32_t* reached_;
  const std::uint32_t level_;
  std::uint64_t sum_ = 0;
};

template <class Block>
FLYWHEEL_TASK void step_bottom_up(Block& block, const LevelMemory& memory, const LevelCourse& course) {
  const std::uint64_t mine = BottomUp<Block>(block, memory, course).look_through(memory.reached[course.side ^ 1]);
  const std::uint64_t all = of_last_lane(block, sum_before(block, mine) + mine);
  // Relaxed: the barrier after the step orders the sum before its use.
  if (block.lane() == 0 && all) Shared<std::uint64_t>(memory.count_of(course.turn + 1)).add(all, Order::relaxed);
}

/// One step, whichever the course has chosen.
template <class Block>
FLYWHEEL_TASK void run_step(Block& block, const LevelMemory& memory, const LevelCourse& course) {
  if (block.worker() == 0 && block.leader())
    memory.count_of(course.turn + 2) = 0;  // nobody reads it, or adds to it, in this step
  if (course.step == Step::top_down) step_top_down(block, memory, course);
  else if (course.step == Step::bottom_up) step_bottom_up(block, memory, course);
  else step_gather(block, memory, course);
}

}  // namespace bfs
