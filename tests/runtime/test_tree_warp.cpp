// Warps that work a tree off together, their lanes threads: each node runs once, wherever it came from. Trees of random forms;
// rings that overflow into lists, chunks that others take; a memory that is too small, and a tree that is stopped.
#include "runtime/tree/tree_warp.hpp"
#include "support/internals.hpp"

#include <atomic>
#include <vector>

#include "catch.hpp"
#include "support/device_state_fixture.hpp"
#include "support/seed.hpp"
#include "support/thread_warp.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/// Its number is a hash of its parent's and of its index, and says how it spawns.
template <class Who>
struct HashNode {
  using Grain = Who;
  static constexpr std::uint32_t kMostSpawns = 3;
  std::uint32_t parent, level;

  std::uint32_t own(std::uint32_t index) const { return mixed(parent + 0x9e3779b9u * (index + 1)); }
  /// Calls spawn(node, count) for its children.
  template <class Spawn>
  void children(std::uint32_t index, Spawn&& spawn) const {
    const std::uint32_t number = own(index);
    if (level == 0) return;
    const HashNode below{number, level - 1};
    if (number % 8 == 0) return spawn(below, 9);
    for (std::uint32_t i = 0; i < number % 3; ++i) spawn(HashNode{number + i, level - 1}, 1);
  }
  template <class Block>
  std::uint64_t operator()(Block&) const {
    return 0;
  }
};

/// The sum of the numbers of all nodes, and how many there are.
struct NodeSum {
  std::uint64_t numbers = 0, nodes = 0;
  bool operator==(const NodeSum&) const = default;
};
template <class N>
void add_up(const N& node, std::uint32_t count, NodeSum& sum) {
  for (std::uint32_t i = 0; i < count; ++i) {
    sum.numbers += node.own(i);
    ++sum.nodes;
    node.children(i, [&](const N& child, std::uint32_t of_it) { add_up(child, of_it, sum); });
  }
}

/// Each of its nodes spawns three.
struct WideNode {
  using Grain = Thread;
  static constexpr std::uint32_t kMostSpawns = 3;
  std::uint32_t number, level;

  std::uint32_t own(std::uint32_t) const { return number; }
  template <class Spawn>
  void children(std::uint32_t, Spawn&& spawn) const {
    for (std::uint32_t i = 0; level && i < 3; ++i) spawn(WideNode{3 * number + i, level - 1}, 1);
  }
  template <class Block>
  std::uint64_t operator()(Block&) const {
    return 0;
  }
};

/// `workers` workers of two warps, and the memory of their tree, of `count` chunks.
template <std::uint32_t kLanes, class N>
struct Search {
  using W = std::conditional_t<kLanes == 1, CpuPlatform, ThreadWarp<kLanes>>;
  using Shape = TreeShape<N>;
  static constexpr std::uint32_t kWarps = 2;
  using Mail = TreeMail<N, kWarps>;
  TestDeviceState device;
  const std::uint32_t workers;
  TreeWords words{};
  std::vector<std::uint64_t> slots, rings;
  std::vector<Mail> mails;
  std::vector<std::uint32_t> chunks;
  TreeMemory memory;
  std::atomic<std::uint64_t> numbers{0}, nodes{0};
  std::atomic<std::uint32_t> full{0};
  std::atomic<bool> cancelled{false};

  Search(std::uint32_t of_workers, std::uint32_t count)
      : workers(of_workers),
        slots(2 * std::size_t{count}),
        rings(of_workers * kWarps * (Shape::kRingBytes / 8)),
        mails(of_workers),
        chunks(std::size_t{count} * Shape::kChunkWords),
        memory{&words, slots.data(), chunks.data(), nullptr, count} {}

  NodeSum operator()(const N& root, std::uint32_t n = 1) {
    memory.reset(0, 1);
    numbers = nodes = 0;
    for (Mail& mail : mails) mail.reset(&mail == mails.data());
    const TreeEntry<N> first{root, 0, n};
    const auto work = [&](std::uint32_t warp) { work_off(warp, warp == 0 ? &first : nullptr); };
    if constexpr (kLanes == 1) run_together(workers * kWarps, work);
    else run_warps<kLanes>(workers * kWarps, work);
    return {numbers, nodes};
  }

 private:
  void work_off(std::uint32_t number, const TreeEntry<N>* root) {
    auto* const ring = reinterpret_cast<unsigned char*>(rings.data()) + number * Shape::kRingBytes;
    TreeWarp<W, N, kWarps> warp(device.dev, memory, 0, mails[number / kWarps], ring);
    const auto run = [&](const N& node, std::uint32_t index) {
      if (!is_thread_node<N>() && W::lane() != 0) return;  // the first lane speaks for its warp
      numbers += node.own(index);
      ++nodes;
      node.children(index, [&](const N& child, std::uint32_t count) {
        if (!warp.push(child, count)) warp.stop();
      });
    };
    warp(root, run, [&] { return cancelled.load(); });
    full += warp.is_full();
  }
};

/// Random trees of at most some thousand nodes.
template <std::uint32_t kLanes, class Who>
void search_random_trees(std::uint64_t seed, int rounds) {
  Random random(seed);
  for (int round = 0; round < rounds; ++round) {
    Search<kLanes, HashNode<Who>> search(pick(random, 1, 2), 1u << pick(random, 4, 8));
    const HashNode<Who> root{static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(pick(random, 0, 5))};
    const std::uint32_t n = pick(random, 1, 40);
    NodeSum wanted;
    add_up(root, n, wanted);
    CHECK(search(root, n) == wanted);
    CHECK(search.words.pending.value == 0);
    CHECK(search.full == 0);
  }
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("each node of a random tree runs once, on a lane", "", ((std::uint32_t kLanes), kLanes), 1, 8, 32) {
  FLYWHEEL_TEST_SEED(seed);
  search_random_trees<kLanes, Thread>(seed, kLanes == 1 ? 60 : 64 / kLanes);
}

TEMPLATE_TEST_CASE_SIG("each node of a random tree runs once, on a warp", "", ((std::uint32_t kLanes), kLanes), 1, 8) {
  FLYWHEEL_TEST_SEED(seed);
  search_random_trees<kLanes, Warp>(seed, kLanes == 1 ? 60 : 4);
}

TEMPLATE_TEST_CASE_SIG("many independent nodes are shared out", "", ((std::uint32_t kLanes), kLanes), 1, 8) {
  Search<kLanes, HashNode<Thread>> search(2, 64);
  const HashNode<Thread> root{7, 0};
  NodeSum wanted;
  add_up(root, 2'000, wanted);
  CHECK(search(root, 2'000) == wanted);
}

TEST_CASE("a tree that is wider than a ring goes into lists") {
  std::uint64_t nodes = 0;
  for (std::uint32_t level = 0, wide = 1; level <= 7; ++level, wide *= 3) nodes += wide;
  Search<32, WideNode> search(2, 256);
  CHECK(search(WideNode{1, 7}).nodes == nodes);
  CHECK(search.full == 0);
}

TEST_CASE("a tree that is too wide for its memory fails") {
  Search<32, WideNode> search(1, 1);
  search(WideNode{1, 12});
  CHECK(search.full >= 32);
}

TEST_CASE("a tree that is cancelled stops") {
  Search<8, WideNode> search(3, 256);
  search.cancelled = true;
  CHECK(search(WideNode{1, 30}).nodes > 0);
}
