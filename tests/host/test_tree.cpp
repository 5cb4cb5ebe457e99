// Trees that grow while they are worked off, as a program has them, on CPU workers: what nodes return and how it is summed up,
// indices, failures, cancelling, a memory that is full.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <atomic>
#include <thread>

#include "catch.hpp"

using namespace flywheel;

namespace {

template <class Who>
struct Fib {
  using Grain = Who;
  std::uint32_t n;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    if (n < 2) return n;
    block.spawn(Fib{n - 1});
    block.spawn(Fib{n - 2});
    return 0;
  }
};

/// A tree of three levels. Each node notes what it is.
struct Noted {
  struct Sum {
    std::uint32_t nodes = 0, greatest = 0;
  };
  using Grain = Thread;
  std::atomic<std::uint32_t>* counts;
  std::uint32_t base, level;
  template <class Block>
  FLYWHEEL_TASK Sum operator()(Block& block) const {
    const std::uint32_t number = base + block.index();
    ++counts[number];
    block.spawn_n(Noted{counts, 10 * (number + 1), level + 1}, level < 2 ? 10 : 0);
    return {1, number};
  }
  static Sum combine(const Sum& a, const Sum& b) { return {a.nodes + b.nodes, std::max(a.greatest, b.greatest)}; }
};

struct Failing {
  using Grain = Thread;
  std::uint32_t level;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (level == 5) block.fail(7);
    block.spawn_n(Failing{level + 1}, 4);
  }
};

/// Has no end.
struct Endless {
  using Grain = Thread;
  std::atomic<std::uint64_t>* nodes;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    ++*nodes;
    block.spawn(*this);
  }
};

/// Spawns more often than it says.
struct Unsaid {
  using Grain = Thread;
  std::uint64_t fill[7];
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (int i = 0; i < 200; ++i) block.spawn(*this);
  }
};

Runtime start_on_cpu() {
  Options o;
  o.target = Target::cpu;
  o.workers = 3;
  return start<TreeTask<Fib<Thread>>, TreeTask<Fib<Warp>>, TreeTask<Noted>, TreeTask<Failing>, TreeTask<Endless>,
               TreeTask<Unsaid>>(o);
}

}  // namespace

TEMPLATE_TEST_CASE("a tree returns the sum of what its nodes return, each time", "", Thread, Warp) {
  Runtime rt = start_on_cpu();
  Tree<Fib<TestType>> fib(rt);
  CHECK(fib({1}) == 1);
  CHECK(fib({20}) == 6765);
  Run first = fib.submit({15}), second = fib.submit({16});
  CHECK(fib.get(second) == 987);
  CHECK(fib.get(first) == 610);
  CHECK_THROWS_AS(fib.submit_n({3}, 0), UsageError);
}

TEST_CASE("children of spawn_n() differ in their index, and each runs once") {
  Runtime rt = start_on_cpu();
  Tree<Noted> tree(rt);
  std::vector<std::atomic<std::uint32_t>> counts(1120);
  Run run = tree.submit_n(Noted{counts.data(), 0, 0}, 10);
  const Noted::Sum sum = tree.get(run);
  CHECK(sum.nodes == 10 + 100 + 1000);
  CHECK(sum.greatest == 1109);
  for (std::uint32_t i = 0; i < counts.size(); ++i) CHECK(counts[i] == (i < 1110));
}

TEST_CASE("a node that fails fails the run, and the next one is not disturbed") {
  Runtime rt = start_on_cpu();
  Tree<Failing> failing(rt);
  Tree<Fib<Thread>> fib(rt);
  Run run = failing.submit(Failing{0});
  CHECK_THROWS_AS(failing.get(run), RunError);
  CHECK(run.status() == Status::task_failed);
  CHECK(fib({12}) == 144);
}

TEST_CASE("a tree without an end is cancelled") {
  Runtime rt = start_on_cpu();
  Tree<Endless> endless(rt);
  std::atomic<std::uint64_t> nodes{0};
  Run run = endless.submit_n(Endless{&nodes}, 100);
  while (nodes < 1000) std::this_thread::yield();
  run.cancel();
  CHECK(run.status() == Status::cancelled);
}

TEST_CASE("a node that spawns more than there is room for fails, with the remedy") {
  Runtime rt = start_on_cpu();
  Tree<Unsaid> unsaid(rt);
  Run run = unsaid.submit(Unsaid{});
  CHECK_THROWS_WITH(unsaid.get(run), Catch::Contains("kMostSpawns"));
  CHECK(run.status() == Status::tree_full);
}
