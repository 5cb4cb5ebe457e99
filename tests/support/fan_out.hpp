// Trees of tasks that spawn all their children at once, with spawn_n(): which ran, how often, and what each found written.
#pragma once

#include <cstdint>
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>
#include <vector>

#include "catch.hpp"

namespace flywheel::testing {

/// Where a tree leaves what it finds. Node i has the children i * fan + 1 to i * fan + fan.
struct FanMemory {
  std::uint32_t* cells;   // of each node, plain
  std::uint32_t* counts;  // [nodes, faults]
  std::uint32_t fan;

  template <class Block>
  FLYWHEEL_TASK std::uint32_t mark(Block& block, std::uint32_t node) const {
    return (block.iteration() + 1) << 20 | node;
  }
  FLYWHEEL_TASK void add(std::uint32_t which, std::uint32_t count) const {
    AtomicRef<std::uint32_t, Scope::device>(counts[which]).fetch_add(count, Order::relaxed);
  }
  FLYWHEEL_TASK std::uint32_t nodes(std::uint32_t levels) const {  // of a tree with so many levels below its root
    std::uint32_t all = 1;
    for (; levels; --levels) all = all * fan + 1;
    return all;
  }
};

/// A node. Its last thread marks its cell, which its children look at. Without room in the pool it counts what would be below.
struct FanNode {
  FanMemory memory;
  std::uint32_t node, levels;

 protected:
  template <class Self, class Block>
  FLYWHEEL_TASK void visit(Block& block) const {
    const std::uint32_t parent = node ? (node - 1) / memory.fan : 0;
    if (node && memory.cells[parent] != memory.mark(block, parent)) memory.add(1, 1);
    if (block.rank() == block.size() - 1) memory.cells[node] = memory.mark(block, node);
    if (block.leader()) memory.add(0, 1);
    if (levels == 0) return;
    const std::uint32_t spawned = block.spawn_n(memory.fan, [&](std::uint32_t i) {
      return Self{{memory, node * memory.fan + 1 + i, levels - 1}};
    });
    block.for_each(static_cast<int>(memory.fan - spawned), [&](int) { memory.add(0, memory.nodes(levels - 1)); });
  }
};
struct FanOutBlock : FanNode {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    visit<FanOutBlock>(block);
  }
};
struct FanOutWarp : FanNode {
  using Grain = Warp;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    visit<FanOutWarp>(block);
  }
};

/// Reads how many nodes there were, when all have ended.
struct FanSum {
  const std::uint32_t* counts;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block& block) const {
    return block.leader() ? counts[0] : 0;
  }
};

/// Trees of each shape and grain, in passes: every node once, each behind its parent, and all before what depends on the root.
template <class Node>
void check_fan_out(Runtime& runtime, std::uint32_t fan, std::uint32_t levels, std::uint32_t passes) {
  const std::uint32_t all = FanMemory{nullptr, nullptr, fan}.nodes(levels);
  INFO(fan << " children each, " << levels << " levels, " << all << " nodes");
  auto cells = runtime.upload(std::vector<std::uint32_t>(all));
  auto counts = runtime.upload(std::vector<std::uint32_t>(2));
  Graph graph;
  const auto root = graph.add(Node{{{cells.data(), counts.data(), fan}, 0, levels}});
  const auto sum = graph.add(FanSum{counts.data()}, after(root));
  Run run = runtime.submit(runtime.load(graph), repeat(passes));
  CHECK(run.get(sum) == all * passes);
  CHECK(counts.read() == std::vector<std::uint32_t>{all * passes, 0});
}

}  // namespace flywheel::testing
