// The tasks of random programs with control: steps that hash what those before them left into plain words, choose, go round in
// loops, spawn and continue. control_graph.hpp makes the programs.
#pragma once

#include <flywheel/task.cuh>

#include "support/atomics.hpp"

namespace flywheel::testing {

/// What one program keeps of its steps, by number. Plain memory, but for `extra` and `sprouts`: dependencies alone order it.
struct StepWords {
  std::uint64_t* value;
  std::uint64_t* extra;    // the sum over what its spawned tasks brought
  std::uint32_t* count;    // executions
  std::uint32_t* turns;    // of the loop that it ends, since that last ended
  std::uint32_t* sprouts;  // spawned tasks that have run
};

/// What a step does besides hashing what its predecessors left into its value.
struct StepSpec {
  std::uint32_t id;
  std::uint32_t cases;    // it chooses one of so many, or two, or none; 0: it does not choose
  std::uint32_t turns;    // it ends a loop, and begins it again at most so often; 0: it does not
  std::uint32_t sprouts;  // the most tasks that it spawns
  std::uint32_t joins;    // 1: a continuation adds up what they bring, and chooses
};

/// The cases that a step chooses, a bit each.
FLYWHEEL_TASK constexpr std::uint32_t chosen_by(const StepSpec& step, std::uint64_t value) {
  if (!step.cases) return 0;
  const std::uint32_t one = static_cast<std::uint32_t>(value >> 8) % (step.cases + 1);  // the last: none
  const std::uint32_t two = (value >> 40) % 4 == 0 ? 1u << (value >> 44) % step.cases : 0;
  return (one < step.cases ? 1u << one : 0) | two;
}
FLYWHEEL_TASK constexpr std::uint32_t sprouts_of(const StepSpec& step, std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 28) % (step.sprouts + 1);
}
FLYWHEEL_TASK constexpr bool goes_again(const StepSpec& step, std::uint64_t value, std::uint32_t turn) {
  return step.turns && turn < step.turns && (value >> 20) % 4 != 0;
}
FLYWHEEL_TASK constexpr std::uint64_t inherit(std::uint64_t value, std::uint64_t from, std::uint64_t extra) {
  return mix(value, from + 3 * extra);
}
FLYWHEEL_TASK constexpr std::uint64_t joined(std::uint64_t value, std::uint64_t extra) { return mix(value, extra ^ 0x77); }
FLYWHEEL_TASK constexpr std::uint64_t brought(std::uint64_t value, std::uint32_t j) { return mix(value, 1000 + j) >> 8; }
FLYWHEEL_TASK constexpr std::uint32_t children_of(std::uint64_t worth) { return static_cast<std::uint32_t>(worth % 3); }

/// Adds to `extra` of its step; the first ones spawn more, some all at once.
struct StepSprout {
  StepWords words;
  std::uint64_t worth;
  std::uint32_t id, depth;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) work();
    const std::uint32_t count = depth ? children_of(worth) : 0;
    const bool at_once = worth & 64;
    const std::uint32_t spawned = at_once ? block.spawn_n(count, [this](std::uint32_t j) { return child_of(j); }) : 0;
    if (!block.leader()) return;
    for (std::uint32_t j = spawned; j < count; ++j)
      if (const StepSprout child = child_of(j); at_once || !block.spawn(child)) child.work();
  }
  FLYWHEEL_TASK StepSprout child_of(std::uint32_t j) const { return {words, mix(worth, j) >> 8, id, depth - 1}; }
  FLYWHEEL_TASK void work() const {
    add_to(words.extra[id], worth);
    add_to(words.sprouts[id], 1u);
  }
};

/// The end of a step with a continuation.
struct StepJoin {
  StepWords words;
  StepSpec step;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) decide(block);
  }
  template <class Block>
  FLYWHEEL_TASK void decide(Block& block) const {
    std::uint64_t& value = words.value[step.id];
    if (step.joins) value = joined(value, words.extra[step.id]);
    const std::uint32_t chosen = chosen_by(step, value);
    for (std::uint32_t n = 0; n < step.cases; ++n)
      if (chosen >> n & 1) block.choose(n);
    if (!step.turns) return;
    std::uint32_t& turn = words.turns[step.id];
    const bool again = goes_again(step, value, turn);
    turn = again ? turn + 1 : 0;
    if (again) block.again();
  }
};

struct Step {
  StepWords words;
  const std::uint32_t* before;
  StepSpec step;
  std::uint32_t before_count;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    std::uint64_t value = mix(words.value[step.id], step.id);
    for (std::uint32_t i = 0; i < before_count; ++i) value = inherit(value, words.value[before[i]], words.extra[before[i]]);
    words.value[step.id] = value;
    ++words.count[step.id];
    const StepJoin join{words, step};
    const bool later = step.joins && block.then(join);
    if (step.joins && !later) return alone(block, value);  // the pool is full
    for (std::uint32_t j = 0; j < sprouts_of(step, value); ++j) plant(block, {words, brought(value, j), step.id, 1});
    if (!later) join.decide(block);
  }

 private:
  template <class Block>
  FLYWHEEL_TASK void plant(Block& block, const StepSprout& sprout) const {
    if (block.spawn(sprout)) return;
    work_all(sprout);
  }
  template <class Block>
  FLYWHEEL_TASK void alone(Block& block, std::uint64_t value) const {
    for (std::uint32_t j = 0; j < sprouts_of(step, value); ++j) work_all({words, brought(value, j), step.id, 1});
    StepJoin{words, step}.decide(block);
  }
  FLYWHEEL_TASK static void work_all(const StepSprout& sprout) {
    sprout.work();
    for (std::uint32_t j = 0; j < children_of(sprout.worth); ++j) sprout.child_of(j).work();
  }
};

}  // namespace flywheel::testing
