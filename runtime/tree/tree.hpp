// What the task of a tree does: a grid task, whose warps are a TreeWarp each; and the block that a node gets.
#pragma once

#include "tree_task.hpp"
#include "tree_warp.hpp"

namespace flywheel::detail {

/// The block of a node. `Threads`: those that run it, one or a warp; `Block`: that of the tree's task.
template <class Warp, class Threads, class Block>
class TreeBlock : public Threads {
 public:
  static constexpr bool kOnGpu = Block::kOnGpu;

  FLYWHEEL_TASK TreeBlock(Warp& warp, Block& block, std::uint32_t index) : warp_(warp), block_(block), index_(index) {}

  /// One thread: adds a node to the tree. It runs when it can, by any thread or warp, after what the caller wrote before.
  template <class Node>
  FLYWHEEL_TASK void spawn(const Node& node) {
    spawn_n(node, 1);
  }
  /// Adds a node that runs `count` times, with the indices 0 to count - 1: for that many children at the cost of one.
  template <class Node>
  FLYWHEEL_TASK void spawn_n(const Node& node, std::uint32_t count) {
    if (count && !warp_.push(node, count)) fail_full();
  }
  /// Which of those the node is.
  FLYWHEEL_TASK std::uint32_t index() const { return index_; }

  /// As in any task: the run fails with this code. The tree ends soon; nodes that others have taken still run.
  FLYWHEEL_TASK void fail(std::uint32_t code) {
    block_.fail(code);
    warp_.stop();
  }
  FLYWHEEL_TASK std::uint32_t worker() const { return block_.worker(); }
  FLYWHEEL_TASK std::uint32_t workers() const { return block_.workers(); }

 private:
  FLYWHEEL_TASK void fail_full() {
    block_.fail_of_library(Status::tree_full);
    warp_.stop();
  }

  Warp& warp_;
  Block& block_;
  const std::uint32_t index_;
};

/// A TreeTask on one block.
template <class Node, class Block>
class TreeOnBlock {
  using Type = NodeType<Node>;
  using Sum = typename Type::Sum;
  using Shape = TreeShape<Node>;
  using Warp = TreeWarp<typename Block::Lanes, Node, Block::kWarps>;
  using Mail = TreeMail<Node, Block::kWarps>;

 public:
  FLYWHEEL_TASK TreeOnBlock(const TreeTask<Node>& task, Block& block) : task_(task), block_(block) {}

  /// All workers work the tree off; each leaves the sum of its nodes.
  FLYWHEEL_TASK Sum work_off() {
    const auto size = static_cast<std::uint32_t>(block_.size());
    task_.memory.reset(block_.worker() * size + static_cast<std::uint32_t>(block_.rank()), block_.workers() * size);
    constexpr std::uint32_t kBytes = Block::kWarps * Shape::kWarpBytes;
    unsigned char* const scratch = block_.template scratch<unsigned char>(kBytes);
    auto* const mail = reinterpret_cast<Mail*>(scratch);
    if (scratch && block_.leader()) mail->reset(block_.worker() == 0);
    Sum sum{};
    if (block_.grid_sync() && scratch)
      run_warp(*mail, scratch + Mail::kBytes + static_cast<std::uint32_t>(block_.warp()) * Shape::kRingBytes, sum);
    sum = sum_of_block(sum);
    if (block_.leader()) sums()[block_.worker()] = sum;
    return sum;
  }
  /// One worker, when all have ended: adds these sums up.
  FLYWHEEL_TASK Sum add_up() const {
    Sum sum{};
    block_.for_each(static_cast<int>(block_.workers()), [&](int worker) { sum = Type::combine(sum, sums()[worker]); });
    return sum_of_block(sum);
  }

 private:
  FLYWHEEL_TASK Sum* sums() const { return reinterpret_cast<Sum*>(task_.memory.sums); }
  FLYWHEEL_TASK Sum sum_of_block(const Sum& sum) const {
    if constexpr (Type::kReturns) return block_.reduce(sum, [](const Sum& a, const Sum& b) { return Type::combine(a, b); });
    else return sum;
  }
  /// A node that throws, as it may on CPU workers: the others do not wait for what it would have spawned.
  template <class W>
  struct StopUnlessEnded {
    const W& warp;
    bool ended = false;
    FLYWHEEL_TASK ~StopUnlessEnded() {
      if (!ended) warp.stop();
    }
  };
  FLYWHEEL_TASK void run_warp(Mail& mail, unsigned char* ring, Sum& sum) {
    using Threads = std::conditional_t<is_thread_node<Node>(), OneThread, typename Block::LaneThreads>;
    Warp warp(block_.device_state(), task_.memory, block_.worker(), mail, ring);
    const auto run = [&](const Node& node, std::uint32_t index) {
      TreeBlock<Warp, Threads, Block> of_node(warp, block_, index);
      if constexpr (!Type::kReturns) node(of_node);
      else if (const Sum value = node(of_node); of_node.rank() == 0) sum = Type::combine(sum, value);
    };
    const TreeEntry<Node> root{block_.param(task_.root), 0, block_.param(task_.count)};
    const bool has_root = block_.worker() == 0 && block_.warp() == 0;
    if constexpr (Block::kOnGpu) {
      warp(has_root ? &root : nullptr, run, [&] { return block_.cancelled(); });
    } else {
      StopUnlessEnded<Warp> thrown{warp};
      warp(has_root ? &root : nullptr, run, [&] { return block_.cancelled(); });
      thrown.ended = true;
    }
    if (warp.is_full()) block_.fail_of_library(Status::tree_full);
  }

  const TreeTask<Node>& task_;
  Block& block_;
};

template <class Node, class Block>
FLYWHEEL_TASK typename NodeType<Node>::Sum run_tree_task(const TreeTask<Node>& task, Block& block) {
  TreeOnBlock<Node, Block> tree(task, block);
  return task.adds_up ? tree.add_up() : tree.work_off();
}

}  // namespace flywheel::detail
