// The tasks of the programs on an emulated GPU. As those in tasks.hpp, but a block has many threads.
#pragma once

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "support/atomics.hpp"

namespace flywheel::simulate::emulated {

inline constexpr std::uint32_t kMostPredecessors = 3;

/// What the tasks of one run share.
struct Words {
  std::uint32_t* passes;  // of each task; plain: in which pass it ran last, from 1
  std::uint32_t* counts;  // of each task; atomic: how often it ran
  std::uint32_t* wrong;   // atomic: tasks that did not find their predecessors done, or their block's scans right
  std::uint32_t* late;    // of each task; plain: as `passes`, by one of its threads that does so last of all
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
    if (block.leader()) visit(block, pass);
    const int wrong = block.count(!scans_right(block));
    if (wrong && block.leader()) testing::add_to(*words.wrong, 1u);
    if (block.rank() == static_cast<int>(index * 37 % block.size())) words.late[index] = pass;
    return pass * 1000 + index;
  }
  /// One call right after the other, so that warps that are ahead find those behind still at the one before.
  template <class Block>
  FLYWHEEL_TASK bool scans_right(Block& block) const {
    const auto sum = [](std::uint32_t a, std::uint32_t b) { return a + b; };
    const auto rank = static_cast<std::uint32_t>(block.rank()), size = static_cast<std::uint32_t>(block.size());
    const std::uint32_t before = block.exclusive_scan(1u, sum, index), through = block.inclusive_scan(rank, sum);
    const std::uint32_t all = block.reduce(index, sum), chosen = block.broadcast(rank, static_cast<int>(index));
    return before == index + rank && through == rank * (rank + 1) / 2 && all == size * index && chosen == index % size;
  }
  template <class Block>
  FLYWHEEL_TASK void visit(Block& block, std::uint32_t pass) const {
    for (std::uint32_t i = 0; i < predecessors; ++i)
      if (words.passes[before[i]] != pass || words.late[before[i]] != pass) testing::add_to(*words.wrong, 1u);
    if (words.passes[index] != pass - 1 || words.late[index] != pass - 1) testing::add_to(*words.wrong, 1u);
    words.passes[index] = pass;
    testing::add_to(words.counts[index], 1u);
    if (fails_in == pass) block.fail(7);
  }
};

/// The same on one warp.
struct WarpNode : Node {
  using Grain = flywheel::Warp;
};

/// All of a phase see what those of the phase before wrote.
struct Cell {
  Words words;
  std::uint32_t first, index, count;  // of the cells of one phase; those of the phase before end at `first`
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    const std::uint32_t pass = block.iteration() + 1;
    for (std::uint32_t i = 0; first && i < count; ++i)
      if (words.passes[first - count + i] != pass) testing::add_to(*words.wrong, 1u);
    words.passes[index] = pass;
    testing::add_to(words.counts[index], 1u);
  }
};

/// Of a gang: waits until all `count` have come, in each pass.
struct Meet {
  std::uint32_t* come;
  std::uint32_t count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) {
      testing::add_to(*come, 1u);
      while (testing::peek_at(*come) < (block.iteration() + 1) * count && !block.cancelled()) {}
    }
    block.sync();
  }
};

struct Leaf {
  std::uint32_t* count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) testing::add_to(*count, 1u);
  }
};

/// Emits `values` numbers that say whose they are, and spawns leaves: those that find no room it counts itself.
struct Source {
  std::uint32_t* leaves;
  std::uint32_t index, values, spawns;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    for (std::uint32_t i = 0; i < values; ++i) block.emit(index << 16 | (block.iteration() * values + i));
    for (std::uint32_t i = 0; i < spawns; ++i)
      if (!block.spawn(Leaf{leaves})) testing::add_to(*leaves, 1u);
  }
};

/// Notes when it began among all, and on which worker.
struct Note {
  std::uint32_t* begins;   // of each task; plain: its number among all
  std::uint32_t* workers;  // of each task; plain
  std::uint32_t* next;     // atomic
  std::uint32_t index;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    begins[index] = testing::add_to(*next, 1u);
    workers[index] = block.worker();
  }
};

/// A word that the host looks at while the run goes on.
inline AtomicRef<std::uint32_t, Scope::system> shared_word(std::uint32_t& word) {
  return AtomicRef<std::uint32_t, Scope::system>(word);
}

/// Holds its worker until `words[1]` says go; `words[0]` counts those that are held.
struct Hold {
  std::uint32_t* words;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) {
      shared_word(words[0]).fetch_add(1, Order::relaxed);
      while (!shared_word(words[1]).load(Order::relaxed) && !block.cancelled()) {}
    }
    block.sync();
  }
};

}  // namespace flywheel::simulate::emulated
