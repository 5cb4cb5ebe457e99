// The tasks of the simulated programs. They tell what happened to them through plain words, so that a missing order of memory
// is a race, and count through atomic ones.
#pragma once

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <chrono>
#include <thread>

#include "simulate/journal.hpp"
#include "support/atomics.hpp"

namespace flywheel::simulate {

inline constexpr std::uint32_t kMostPredecessors = 3;

/// What the tasks of one run share.
struct Words {
  std::uint32_t* passes;  // of each task; plain: in which pass it ran last, from 1
  std::uint32_t* counts;  // of each task; atomic: how often it ran
  std::uint32_t* wrong;   // atomic: tasks that did not find their predecessors done
};

/// A task that some before it must be done for.
struct Node {
  Words words;
  std::uint32_t index;
  std::uint32_t predecessors;
  std::uint32_t before[kMostPredecessors];
  std::uint32_t fails_in;  // pass, from 1

  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block& block) const {
    const std::uint32_t pass = block.iteration() + 1;
    for (std::uint32_t i = 0; i < predecessors; ++i)
      if (words.passes[before[i]] != pass) testing::add_to(*words.wrong, 1u);
    if (words.passes[index] != pass - 1) testing::add_to(*words.wrong, 1u);
    words.passes[index] = pass;
    testing::add_to(words.counts[index], 1u);
    if (fails_in == pass) block.fail(7);
    return pass * 1000 + index;
  }
};

/// A node that takes the result of one of those before it. On a number of its own the result shows what was taken.
struct Taker {
  Node node;
  Param<std::uint64_t> taken;

  FLYWHEEL_TASK static std::uint64_t result_of(std::uint64_t taken, std::uint32_t index) { return taken * 31 + index + 1; }
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    node(block);
    return result_of(block.param(taken), node.index);
  }
};
/// The same without a graph: it takes nothing.
struct Alone {
  Node node;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    node(block);
    return Taker::result_of(0, node.index);
  }
};

/// Of chains of runs of one graph, which take turns and are told their number: each sees what the one before wrote.
struct Link {
  Words words;
  Param<std::uint32_t> number;
  std::uint32_t chains;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block& block) const {
    const std::uint32_t own = block.param(number);
    if (own >= chains && words.passes[own - chains] != 1) testing::add_to(*words.wrong, 1u);
    words.passes[own] = 1;
    testing::add_to(words.counts[own], 1u);
    return own + 1;
  }
};

/// All of a phase see what those of the phase before wrote.
struct Cell {
  Words words;
  std::uint32_t first, index, count;  // of the cells of one phase; those of the phase before end at `first`
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const std::uint32_t pass = block.iteration() + 1;
    for (std::uint32_t i = 0; first && i < count; ++i)
      if (words.passes[first - count + i] != pass) testing::add_to(*words.wrong, 1u);
    words.passes[index] = pass;
    testing::add_to(words.counts[index], 1u);
  }
};

struct Leaf {
  std::uint32_t* count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    testing::add_to(*count, 1u);
  }
};

/// Emits `values` numbers, and spawns as many leaves: those that find no room it counts itself.
struct Source {
  std::uint32_t* leaves;
  std::uint32_t values, spawns;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (std::uint32_t i = 0; i < values; ++i) block.emit(block.iteration() * values + i);
    for (std::uint32_t i = 0; i < spawns; ++i)
      if (!block.spawn(Leaf{leaves})) testing::add_to(*leaves, 1u);
  }
};

/// How a body passes time.
struct Work {
  enum Kind : std::uint32_t { none, looks, sleeps } kind;
  std::uint32_t amount;  // looks at the clock, or microseconds
  void spend() const {
    for (std::uint32_t i = 0; kind == looks && i < amount; ++i) (void)std::chrono::steady_clock::now();
    if (kind == sleeps) std::this_thread::sleep_for(std::chrono::microseconds(amount));
  }
};

/// The number of a run: {priority:8 | which:24}. Its tasks are told it by a parameter.
FLYWHEEL_TASK constexpr std::uint32_t number_of(Priority priority, std::uint32_t which) {
  return static_cast<std::uint32_t>(priority) << 24 | which;
}

/// Notes in the journal when it began and ended.
struct Job {
  Param<std::uint32_t> number;
  std::uint32_t task;
  Priority own;
  Work work;
  bool fails = false;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const std::uint32_t run = block.param(number);
    const auto level = static_cast<std::uint32_t>(own);
    const std::size_t entry = journal::begin(run, task, block.worker(), own == Priority::inherit ? run >> 24 : level);
    work.spend();
    if (fails) block.fail(7);
    journal::end(entry);
  }
};

/// A job without a graph: it is told all that it needs.
struct Lone {
  std::uint32_t run;  // its number, see number_of()
  std::uint32_t task;
  Work work;
  bool fails;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    const std::size_t entry = journal::begin(run, task, block.worker(), run >> 24);
    work.spend();
    if (fails) block.fail(7);
    journal::end(entry);
    return result();
  }
  std::uint64_t result() const { return std::uint64_t{run} * 1000 + task; }
};

/// Of a gang: waits until all `count` have come, in each pass.
struct Meeting {
  Param<std::uint32_t> number;
  std::uint32_t task;
  std::uint32_t* come;
  std::uint32_t count, nap_us;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const std::size_t entry = journal::begin(block.param(number), task, block.worker(), journal::kGang);
    testing::add_to(*come, 1u);
    while (testing::peek_at(*come) < (block.iteration() + 1) * count && !block.cancelled()) Work{Work::sleeps, nap_us}.spend();
    journal::end(entry);
  }
};

/// A tree of spawned tasks, `places` of them. What finds no room in the pool runs where it is.
struct SpawnTree {
  Words words;
  std::uint32_t index, fan, places;
  std::uint32_t fails_at, fails_in;  // place; pass, from 1
  Priority own;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const std::uint32_t pass = block.iteration() + 1;
    if (words.passes[index] >= pass) testing::add_to(*words.wrong, 1u);
    words.passes[index] = pass;
    testing::add_to(words.counts[index], 1u);
    for (std::uint32_t i = 1; i <= fan && index * fan + i < places; ++i) {
      const SpawnTree child{words, index * fan + i, fan, places, fails_at, fails_in, own};
      if (!block.spawn(child, own)) child(block);
    }
    if (index == fails_at && pass == fails_in) block.fail(7);
  }
};

/// Behind a tree: all of it is done.
struct Harvest {
  Words words;
  std::uint32_t places;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (std::uint32_t i = 0; i < places; ++i)
      if (words.passes[i] != block.iteration() + 1) testing::add_to(*words.wrong, 1u);
  }
};

struct Nop {
  std::uint32_t unused;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

}  // namespace flywheel::simulate
