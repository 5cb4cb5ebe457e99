// The task types of the random graphs: order-sensitive work whose every step can be checked.
#pragma once

#include <flywheel/task.cuh>

#include "support/atomics.hpp"
#include "support/graph_spec.hpp"

namespace flywheel::testing {

/// Where one run keeps its account, one word for each node. A run parameter: overlapping runs have one each.
struct RunMemory {
  std::uint64_t* value;    // the hash a node computed last
  std::uint64_t* extra;    // sum over what its spawned tasks computed, all passes
  std::uint32_t* count;    // executions
  std::uint32_t* sprouts;  // executions of spawned tasks
  std::uint32_t* early;    // [0]: predecessors that had not run when a successor looked
  std::uint64_t salt;
};

// The arithmetic that tasks and oracle share.

FLYWHEEL_TASK constexpr std::uint64_t own_value(std::uint64_t salt, std::uint32_t bias, std::uint32_t id, std::uint32_t pass) {
  return mix(mix(salt, id), pass) + bias;
}
FLYWHEEL_TASK constexpr std::uint64_t inherited(std::uint64_t value, std::uint64_t extra, std::uint32_t position) {
  return mix(value + extra, position);
}
FLYWHEEL_TASK constexpr std::uint64_t emitted_value(std::uint32_t id, std::uint32_t pass, std::uint32_t number,
                                                    std::uint64_t value) {
  return (std::uint64_t{id} << 44) | (std::uint64_t{pass} << 32) | (std::uint64_t{number} << 24) | (value & 0xffffff);
}
FLYWHEEL_TASK constexpr bool fails_in(std::uint64_t salt, std::uint32_t fail_at, std::uint32_t pass) {
  return (salt & 1) && fail_at == pass;
}

/// One node of the tree that a task spawns. `key` says all about the tree below it.
struct Sprout {
  std::uint64_t key;
  std::uint32_t id;       // of the graph's node at the root
  std::uint32_t depth;    // levels below this one
  std::uint32_t fail_at;  // kNever unless the tree is to fail
  Param<RunMemory> memory;

  FLYWHEEL_TASK constexpr std::uint32_t children() const { return depth ? static_cast<std::uint32_t>(mix(key, 1) % 4) : 0; }
  FLYWHEEL_TASK constexpr Sprout child(std::uint32_t j) const { return {mix(key, 2 + j), id, depth - 1, fail_at, memory}; }
  FLYWHEEL_TASK constexpr bool fails(std::uint64_t salt, std::uint32_t pass) const {
    return fails_in(salt, fail_at, pass) && key % 4 == 0;
  }
  FLYWHEEL_TASK constexpr std::uint64_t worth(std::uint64_t salt, std::uint32_t pass) const { return mix(key, salt) + pass; }
  FLYWHEEL_TASK constexpr Priority priority() const { return static_cast<Priority>(key >> 62); }

  /// One thread: what this node of the tree has to do.
  template <class Block>
  FLYWHEEL_TASK void work(Block& block) const {
    const RunMemory run = block.param(memory);
    add_to(run.extra[id], worth(run.salt, block.iteration()));
    add_to(run.sprouts[id], 1u);
    if (peek_at(run.count[id]) != block.iteration() + 1) add_to(*run.early, 1u);  // its root is not there yet
    if (fails(run.salt, block.iteration())) block.fail(kTreeCode + id);
  }
  /// One thread: the whole tree below and with this node, for when the spawn pool is full.
  template <class Block>
  FLYWHEEL_TASK void work_all(Block& block) const {
    Sprout open[16];
    int count = 0;
    open[count++] = *this;
    while (count) {
      const Sprout next = open[--count];
      next.work(block);
      for (std::uint32_t j = 0; j < next.children(); ++j) open[count++] = next.child(j);
    }
  }
  /// One thread.
  template <class Block>
  FLYWHEEL_TASK void plant(Block& block) const {
    if (!block.spawn(*this, priority())) work_all(block);
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) work(block);
    block.for_each(static_cast<int>(children()), [&](int j) { child(static_cast<std::uint32_t>(j)).plant(block); });
  }
};

/// The tree of node `id`: its first level.
FLYWHEEL_TASK constexpr std::uint32_t first_sprouts(std::uint64_t seed, std::uint32_t id) {
  return 1 + static_cast<std::uint32_t>(mix(seed, id) % 4);
}
FLYWHEEL_TASK constexpr Sprout first_sprout(std::uint64_t seed, std::uint32_t id, std::uint32_t depth, std::uint32_t j,
                                            std::uint32_t fail_at, Param<RunMemory> memory) {
  return {mix(mix(seed, id), 100 + j), id, depth - 1, fail_at, memory};
}

/// A node of the graph: hashes its predecessors' values with its own number into its word.
struct Node {
  const std::uint32_t* before;
  std::uint64_t seed;  // of the graph
  std::uint32_t before_count, id;
  std::uint32_t fail_at, tree_fail_at, stop_at, emits, tree_depth;
  Param<RunMemory> memory;
  Param<std::uint32_t> bias;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    work(block);
  }

  template <class Block>
  FLYWHEEL_TASK std::uint64_t work(Block& block) const {
    const RunMemory run = block.param(memory);
    const std::uint32_t pass = block.iteration();
    const std::uint64_t value = mix(own_value(run.salt, block.param(bias), id, pass), heritage(block, run, pass));
    if (block.leader()) account(block, run, pass, value);
    block.sync();  // the tree's tasks look for this node's count
    if (tree_depth) plant_tree(block);
    if (block.leader() && stop_at == pass) block.stop();
    if (block.leader() && fails_in(run.salt, fail_at, pass)) block.fail(id);
    return value;
  }

 private:
  template <class Block>
  FLYWHEEL_TASK std::uint64_t heritage(Block& block, const RunMemory& run, std::uint32_t pass) const {
    std::uint64_t sum = 0;
    std::uint32_t early = 0;
    for (std::uint32_t i = static_cast<std::uint32_t>(block.rank()); i < before_count;
         i += static_cast<std::uint32_t>(block.size())) {
      const std::uint32_t p = before[i];
      sum += inherited(run.value[p], run.extra[p], i);
      early += peek_at(run.count[p]) != pass + 1;
    }
    if (early) add_to(*run.early, early);
    return block.reduce(sum, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  }
  template <class Block>
  FLYWHEEL_TASK void account(Block& block, const RunMemory& run, std::uint32_t pass, std::uint64_t value) const {
    run.value[id] = value;
    add_to(run.count[id], 1u);
    for (std::uint32_t k = 0; k < emits; ++k) block.emit(emitted_value(id, pass, k, value));
  }
  template <class Block>
  FLYWHEEL_TASK void plant_tree(Block& block) const {
    block.for_each(static_cast<int>(first_sprouts(seed, id)), [&](int j) {
      first_sprout(seed, id, tree_depth, static_cast<std::uint32_t>(j), tree_fail_at, memory).plant(block);
    });
  }
};

/// The same, with the value as a result.
struct ReturningNode {
  Node node;

  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    return node.work(block);
  }
};

}  // namespace flywheel::testing
