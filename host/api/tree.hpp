// Tree: small nodes by the million, of which each may add more. Programs get it through <flywheel/flywheel.hpp>.
//
//   struct Fib {
//     using Grain = flywheel::Thread;                  // a thread for each node; flywheel::Warp: a warp
//     std::uint32_t n;
//     template <class Block> FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
//       if (n < 2) return n;
//       block.spawn(Fib{n - 1});
//       block.spawn(Fib{n - 2});
//       return 0;
//     }
//   };
//
//   auto rt = flywheel::start<flywheel::TreeTask<Fib>>();
//   flywheel::Tree<Fib> fib(rt);
//   std::uint64_t sum = fib(Fib{40});                  // the sum of what all nodes returned: 102334155
#pragma once

#include <algorithm>
#include <bit>

#include "../../runtime/tree/tree_task.hpp"
#include "runtime.hpp"

namespace flywheel {

/// A tree of nodes that all workers work off together, from a root on. Each node's body may spawn more; which worker runs them
/// is found out as it goes. A node is a type with
///
///   using Grain = flywheel::Thread;  // or flywheel::Warp: its threads are those of a warp, and each that spawns spawns one
///   template <class Block> FLYWHEEL_TASK auto operator()(Block& block) const;
///   static constexpr std::uint32_t kMostSpawns = 2;  // calls of spawn() and spawn_n() in one body at most, by all its threads
///
/// of at most 64 bytes. Its block has spawn(node), spawn_n(node, n) for n children at the cost of one, of which each sees its
/// block.index(), fail(code), worker() and workers(). What the body returns, at most 16 bytes, is summed up: with
/// `static Sum combine(Sum, Sum)` of the node if it has that, else with +. It must not matter in which order; Sum{} is neutral.
///
/// The runtime's list of task types names TreeTask<Node>. A tree needs all workers, as phased graphs do: trees go one at a
/// time. Keep the Tree until its runs have ended, and the runtime where it is. Thread-safe, but for moving.
template <class Node>
class Tree {
 public:
  using Sum = typename TreeTask<Node>::Sum;

  /// `bytes`: device memory for nodes that no ring has room for. A tree goes down before it goes wide, so it needs little, a
  /// node or two for each warp and level. A run that finds it full fails with Status::tree_full. Throws like
  /// Runtime::allocate() and load().
  explicit Tree(Runtime& rt, std::size_t bytes = std::size_t{64} << 20) : rt_(&rt) {
    using Shape = detail::TreeShape<Node>;
    const std::size_t fit = std::max<std::size_t>(bytes / (4 * Shape::kChunkWords), 64);
    const auto count = static_cast<std::uint32_t>(std::bit_floor(std::min(fit, std::size_t{1} << 24)));
    words_ = rt.allocate<detail::TreeWords>(1);
    slots_ = rt.allocate<std::uint64_t>(2 * std::size_t{count});
    chunks_ = rt.allocate<std::uint32_t>(std::size_t{count} * Shape::kChunkWords);
    sums_ = rt.allocate<Sum>(rt.workers());
    Graph graph;
    root_ = graph.param<Node>();
    count_ = graph.param<std::uint32_t>();
    auto* const sums = reinterpret_cast<unsigned char*>(sums_.data());
    TreeTask<Node> task{{words_.data(), slots_.data(), chunks_.data(), sums, count}, root_, count_, 0};
    graph.add_grid(task);
    task.adds_up = 1;
    sum_ = graph.add(task);
    executable_ = rt.load(graph);
  }

  /// Submits the tree of this root. The options are those of Runtime::submit(), such as a Priority. Throws like it.
  template <class... Options>
  Run submit(const Node& root, const Options&... options) {
    return submit_n(root, 1, options...);
  }
  /// The same for `n` roots that differ in their index: for independent nodes, too. Throws UsageError also if n is 0.
  template <class... Options>
  Run submit_n(const Node& root, std::uint32_t n, const Options&... options) {
    if (n == 0) throw UsageError("a tree has at least one root: submit nothing where there is none");
    return rt_->submit(executable_, set(root_, root), set(count_, n), options...);
  }
  /// Waits for the run, and returns what its nodes have summed up. Throws RunError if it failed or was cancelled.
  Sum get(Run& run) const { return run.get(sum_); }

  Sum operator()(const Node& root) {
    Run run = submit(root);
    return get(run);
  }

 private:
  Runtime* rt_;
  Buffer<detail::TreeWords> words_;
  Buffer<std::uint64_t> slots_;
  Buffer<std::uint32_t> chunks_;
  Buffer<Sum> sums_;
  Param<Node> root_{};
  Param<std::uint32_t> count_{};
  TaskRef<Sum> sum_{};
  Executable executable_;
};

}  // namespace flywheel
