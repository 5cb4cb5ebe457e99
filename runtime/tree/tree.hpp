// The task that works a tree off: a grid task, whose warps are a TreeWarp each; and the block that a node gets.
#pragma once

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

}  // namespace flywheel::detail

namespace flywheel {

/// The task type of a tree, for the list of flywheel::start<...>(). Tree (<flywheel/tree.hpp>) makes it.
template <class Node>
struct TreeTask {
  using Type = detail::NodeType<Node>;
  using Sum = typename Type::Sum;

  detail::TreeMemory memory;
  Param<Node> root;
  Param<std::uint32_t> count;  // for so many indices the root runs
  std::uint32_t adds_up;       // 0: works the tree off, as a grid task; 1: the sum of all threads' sums

  template <class Block>
  FLYWHEEL_TASK Sum operator()(Block& block) const {
    static_assert(Block::kWarps * Block::kLanes <= static_cast<int>(detail::kMostTreeThreads));
    if (adds_up) return sum_of_all(block);
    const auto rank = static_cast<std::uint32_t>(block.rank()), size = static_cast<std::uint32_t>(block.size());
    const std::uint32_t thread = block.worker() * size + rank;
    memory.reset(thread, block.workers() * size);
    Sum sum{};
    sums()[thread] = sum;
    constexpr int kBytes = static_cast<int>(detail::TreeShape<Node>::kRingBytes);
    unsigned char* rings = block.template scratch<unsigned char>(Block::kWarps * kBytes);
    if (!block.grid_sync() || !rings) return sum;
    work_off(block, rings + block.warp() * kBytes, sum);
    sums()[thread] = sum;
    return sum;
  }

 private:
  FLYWHEEL_TASK Sum* sums() const { return reinterpret_cast<Sum*>(memory.sums); }

  template <class Block>
  FLYWHEEL_TASK void work_off(Block& block, unsigned char* ring, Sum& sum) const {
    using Warp = detail::TreeWarp<typename Block::Lanes, Node>;
    using Threads = std::conditional_t<detail::is_thread_node<Node>(), detail::OneThread, typename Block::LaneThreads>;
    Warp warp(block.device_state(), memory, block.worker(), ring);
    const auto run = [&](const Node& node, std::uint32_t index) {
      detail::TreeBlock<Warp, Threads, Block> of_node(warp, block, index);
      if constexpr (!Type::kReturns) node(of_node);
      else if (const Sum value = node(of_node); of_node.rank() == 0) sum = Type::combine(sum, value);
    };
    const detail::TreeEntry<Node> first{block.param(root), 0, block.param(count)};
    const bool has_root = block.worker() == 0 && block.warp() == 0;
    warp(has_root ? &first : nullptr, run, [&] { return block.cancelled(); });
    if (warp.is_full()) block.fail_of_library(Status::tree_full);
  }

  template <class Block>
  FLYWHEEL_TASK Sum sum_of_all(Block& block) const {
    const auto size = static_cast<std::uint32_t>(block.size());
    Sum sum{};
    for (auto i = static_cast<std::uint32_t>(block.rank()); i < block.workers() * size; i += size)
      sum = Type::combine(sum, sums()[i]);
    if constexpr (Type::kReturns) sum = block.reduce(sum, [](const Sum& a, const Sum& b) { return Type::combine(a, b); });
    return sum;
  }
};

}  // namespace flywheel
