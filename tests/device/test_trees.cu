// Trees on a GPU: each node of random trees runs once, on threads and on warps, whatever the forms; with a memory that is too
// small, a node that fails, a tree without an end, and other work in between.
#include <algorithm>

#include "catch.hpp"
#include "support/seed.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

FLYWHEEL_TASK std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

struct Sum {
  std::uint64_t numbers = 0;
  std::uint32_t nodes = 0, deepest = 0;
};

/// A node's number is a hash of its parent's and of its index, and says how many children it has: `bushy` in 16 have nine.
template <class Who>
struct Branch {
  using Grain = Who;
  static constexpr std::uint32_t kMostSpawns = 3;
  std::uint32_t parent, level, most, bushy;

  FLYWHEEL_TASK std::uint32_t own(std::uint32_t index) const { return mixed(parent + 0x9e3779b9u * (index + 1)); }
  template <class Spawn>
  FLYWHEEL_TASK void children(std::uint32_t number, Spawn&& spawn) const {
    if (level == most) return;
    if (number % 16 < bushy) return spawn(Branch{number, level + 1, most, bushy}, 9);
    for (std::uint32_t i = 0; i < (number >> 8) % 3; ++i) spawn(Branch{number + i, level + 1, most, bushy}, 1);
  }
  template <class Block>
  FLYWHEEL_TASK Sum operator()(Block& block) const {
    const std::uint32_t number = own(block.index());
    children(number, [&](const Branch& child, std::uint32_t count) {
      if (block.rank() == 0) block.spawn_n(child, count);
    });
    return {number, 1, level};
  }
  FLYWHEEL_TASK static Sum combine(const Sum& a, const Sum& b) {
    return {a.numbers + b.numbers, a.nodes + b.nodes, a.deepest > b.deepest ? a.deepest : b.deepest};
  }
  void add_up(std::uint32_t count, Sum& sum) const {
    for (std::uint32_t i = 0; i < count; ++i) {
      sum = combine(sum, {own(i), 1, level});
      children(own(i), [&](const Branch& child, std::uint32_t of_it) { child.add_up(of_it, sum); });
    }
  }
};

/// Each spawns three more, down to a level; one of them may fail.
struct Wide {
  using Grain = Thread;
  static constexpr std::uint32_t kMostSpawns = 3;
  std::uint32_t level, fails_at;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (level == fails_at) block.fail(5);
    for (std::uint32_t i = 0; level && i < 3; ++i) block.spawn(Wide{level - 1, fails_at});
  }
};

struct Empty {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

Runtime start_trees() {
  return start<TreeTask<Branch<Thread>>, TreeTask<Branch<Warp>>, TreeTask<Wide>, Empty>(on_gpu("error"));
}

template <class Who>
void search(Runtime& rt, Tree<Branch<Who>>& tree, Random& random, int rounds) {
  Graph graph;
  graph.add(Empty{});
  const Executable other = rt.load(graph);
  for (int round = 0; round < rounds; ++round) {
    const Branch<Who> root{static_cast<std::uint32_t>(random()), 0, static_cast<std::uint32_t>(pick(random, 0, 12)),
                           static_cast<std::uint32_t>(pick(random, 0, 3))};
    const std::uint32_t n = pick(random, 0, 1) ? 1 : pick(random, 1, 3000);
    Sum wanted;
    root.add_up(n, wanted);
    Run beside = rt.submit(other), run = tree.submit_n(root, n);
    const Sum found = tree.get(run);
    beside.wait();
    const bool right = found.numbers == wanted.numbers && found.nodes == wanted.nodes && found.deepest == wanted.deepest;
    REQUIRE(right);
  }
}

}  // namespace

TEST_CASE("each node of random trees runs once") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  Runtime rt = start_trees();
  Tree<Branch<Thread>> threads(rt);
  Tree<Branch<Warp>> warps(rt);
  search(rt, threads, random, 300);
  search(rt, warps, random, 150);
}

TEST_CASE("trees with little memory, that fail, and without an end, in turns") {
  Runtime rt = start_trees();
  Tree<Wide> wide(rt), small(rt, 1);
  for (int round = 0; round < 5; ++round) {
    wide.submit(Wide{12, ~0u}).wait();
    CHECK(small.submit(Wide{16, ~0u}).status() == Status::tree_full);
    CHECK(wide.submit(Wide{16, 5}).status() == Status::task_failed);
    Run endless = wide.submit(Wide{~0u, 0});
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    endless.cancel();
    const Status status = endless.status();
    CHECK((status == Status::cancelled || status == Status::tree_full));
  }
}
