// Small nodes by the million: independent ones with arguments of their own, trees of one node a spawn, and the search of the
// UTS trees. Part of the runtime's rows, see runtime_rows.hpp.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <stdexcept>

#include "apps/bench/runtime_rows.hpp"
#include "apps/trees/uts.hpp"

namespace bench {

using namespace flywheel;
using measure::Samples;

namespace {

FLYWHEEL_TASK std::uint64_t stirred(std::uint64_t x) { return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull + 1; }

/// Arguments of an independent node.
struct Pair {
  std::uint64_t a, b;
};

/// Reads 16 bytes of its own; its result goes into the sum.
template <class Who>
struct Alone {
  using Grain = Who;
  const Pair* pairs;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    const Pair pair = pairs[block.index()];
    return stirred(pair.a) ^ pair.b;
  }
};

/// The calls of the recursive Fibonacci function: two subtrees of different size below each node, and all are counted.
template <class Who>
struct Calls {
  using Grain = Who;
  std::uint32_t n;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    if (n >= 2 && block.rank() == 0) {
      block.spawn(Calls{n - 1});
      block.spawn(Calls{n - 2});
    }
    return 1;
  }
  static std::uint64_t count(std::uint32_t n) {
    std::uint64_t before = 1, now = 1;
    for (std::uint32_t i = 2; i <= n; ++i) now = std::exchange(before, now) + before + 1;
    return now;
  }
};

template <class Node>
Runtime start_for(bool on_gpu, std::size_t heap_bytes) {
  Options options;
  options.target = on_gpu ? Target::gpu : Target::cpu;
  options.mode = Mode::resident;
  options.heap_bytes = heap_bytes;
  return start<TreeTask<Node>>(options);
}

/// M nodes a second, submission and result included.
template <class Node, class Right>
Samples rates(Tree<Node>& tree, const Node& root, std::uint32_t n, std::uint64_t nodes, int samples, Right&& right) {
  const auto search = [&] {
    Run run = tree.submit_n(root, n);
    if (!right(tree.get(run))) throw std::runtime_error("a tree's sum is wrong: a node was lost or ran twice");
  };
  Samples all = measure::time_each(3, samples, search);
  for (double& us : all) us = static_cast<double>(nodes) / us;
  return all;
}

template <class Who>
Samples alone(bool on_gpu, int samples, std::uint32_t count) {
  using Node = Alone<Who>;
  if (!on_gpu) count /= 256;
  Runtime rt = start_for<Node>(on_gpu, std::size_t{count} * sizeof(Pair) + (std::size_t{96} << 20));
  std::vector<Pair> pairs(count);
  std::uint64_t x = 1, sum = 0;
  for (Pair& pair : pairs) {
    pair = {x = stirred(x), x >> 7};
    sum += stirred(pair.a) ^ pair.b;
  }
  const Buffer<Pair> on_device = rt.upload(pairs);
  Tree<Node> tree(rt);
  return rates(tree, Node{on_device.data()}, count, count, samples, [&](std::uint64_t found) { return found == sum; });
}
Samples thread_tasks(bool on_gpu, int samples) { return alone<Thread>(on_gpu, samples, 1u << 25); }
Samples warp_tasks(bool on_gpu, int samples) { return alone<Warp>(on_gpu, samples, 1u << 23); }

template <class Who>
Samples spawned(bool on_gpu, int samples, std::uint32_t n) {
  using Node = Calls<Who>;
  if (!on_gpu) n -= 12;
  Runtime rt = start_for<Node>(on_gpu, std::size_t{96} << 20);
  Tree<Node> tree(rt);
  const std::uint64_t count = Node::count(n);
  return rates(tree, Node{n}, 1, count, samples, [&](std::uint64_t found) { return found == count; });
}
Samples spawn_thread(bool on_gpu, int samples) { return spawned<Thread>(on_gpu, samples, 37); }
Samples spawn_warp(bool on_gpu, int samples) { return spawned<Warp>(on_gpu, samples, 33); }

/// One of the UTS trees.
Samples uts(bool on_gpu, int samples, const char* name) {
  const trees::UtsTree& described = trees::uts_tree(name);
  Runtime rt = start_for<trees::UtsNode>(on_gpu, std::size_t{96} << 20);
  const Buffer<trees::UtsRule> rule = rt.upload(std::vector<trees::UtsRule>{trees::UtsRule(described)});
  Tree<trees::UtsNode> tree(rt);
  const trees::UtsNode root{rule.data(), trees::root_digest(described.seed), 0};
  return rates(tree, root, 1, described.nodes, samples, [&](const trees::UtsCount& found) {
    return found.nodes == described.nodes && found.leaves == described.leaves && found.deepest == described.deepest;
  });
}
// On CPU workers the small tree of the same kind: the large one takes minutes.
Samples uts_t1l(bool on_gpu, int samples) { return uts(on_gpu, samples, on_gpu ? "T1L" : "T1"); }
Samples uts_t3l(bool on_gpu, int samples) { return uts(on_gpu, samples, on_gpu ? "T3L" : "T3"); }

}  // namespace

std::vector<measure::Measurement> grain_rows(const measure::Effort& effort, bool on_gpu) {
  const auto take = [&](const char* name, Samples (*measure)(bool, int), int full) {
    return measure::Measurement{.name = name,
                                .unit = "M/s",
                                .round = [measure, on_gpu, samples = effort.samples(full)] { return measure(on_gpu, samples); },
                                .needs_gpu = false};
  };
  return {take("grain.thread_tasks", thread_tasks, 20), take("grain.warp_tasks", warp_tasks, 20),
          take("grain.spawn_thread", spawn_thread, 20), take("grain.spawn_warp", spawn_warp, 20),
          take("grain.uts_t1l", uts_t1l, 10),           take("grain.uts_t3l", uts_t3l, 10)};
}

}  // namespace bench
