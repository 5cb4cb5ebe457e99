// Dependent operands on CPU workers: what other tasks write, taken page by page after the constants.
#include <numeric>

#include "support/small_runtime.hpp"

#include "host/plan/schedule.hpp"
#include "support/internals.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Fill {
  std::uint32_t* to;
  std::uint32_t count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(static_cast<int>(count), [&](int i) { to[i] += static_cast<std::uint32_t>(i) + 1; });
  }
};

/// Sums `constants` words that are all 3, then two pieces that other tasks wrote.
struct Sum {
  const std::uint32_t* first;
  const std::uint32_t* second;
  std::uint32_t count, constants;
  std::uint64_t* sum;

  std::uint32_t operand_bytes() const { return constants * 4; }
  std::uint32_t dependent_pages() const { return 2 * pages_of(count * 4); }
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) const {
    fetch(first, count * 4);
    fetch(second, count * 4);
  }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    block.for_each(static_cast<int>(constants), [&](int i) { reinterpret_cast<std::uint32_t*>(to)[i] = 3; });
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block&, Operands& operands) const {
    for (const std::uint32_t words : {constants, count, count})
      for (std::uint32_t at = 0; at < words; at += kPageBytes / 4) {
        const auto* page = reinterpret_cast<const std::uint32_t*>(operands.consumer_wait());
        for (std::uint32_t i = 0; i < std::min(words - at, kPageBytes / 4); ++i) *sum += page[i];
        operands.consumer_release();
      }
    if (operands.consumer_wait()) *sum = 0;
  }
};

/// Says how many pages it has when it is added, and names more once a word says so.
struct Shifty {
  const std::uint32_t* piece;
  const std::uint32_t* more;
  std::uint32_t dependent_pages() const { return 1; }
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) const {
    for (std::uint32_t i = 0; i < 1 + *more; ++i) fetch(piece, 16u);
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

struct Memory {
  Runtime runtime = start<Fill, Sum, Shifty>(on_cpu(3));
  Buffer<std::uint32_t> first, second;
  Buffer<std::uint64_t> sum = runtime.allocate<std::uint64_t>(1);

  Graph graph(std::uint32_t count, std::uint32_t constants) {
    first = runtime.allocate<std::uint32_t>(count);
    second = runtime.allocate<std::uint32_t>(count);
    Graph graph;
    const auto a = graph.add(Fill{first.data(), count}), b = graph.add(Fill{second.data(), count});
    graph.add(Sum{first.data(), second.data(), count, constants, sum.data()}, after(a, b));
    return graph;
  }
};

}  // namespace

TEST_CASE("dependent operands hold what the predecessors of this pass wrote") {
  for (const std::uint32_t count : {4u, 4096u, 4100u, 20000u}) {
    for (const std::uint32_t constants : {0u, 1u, 5000u}) {
      Memory memory;
      const Executable executable = memory.runtime.load(memory.graph(count, constants), compiled);
      memory.runtime.submit(executable, repeat(3)).wait();
      const std::uint64_t once = std::uint64_t{count} * (count + 1);  // of both pieces
      CHECK(memory.sum.read()[0] == 6 * once + 9u * constants);
    }
  }
}

TEST_CASE("a task that names other pages in a run than it said fails by name, and other runs go on") {
  Memory memory;
  auto more = memory.runtime.allocate<std::uint32_t>(1);
  Graph graph = memory.graph(100, 7);
  graph.add(Shifty{memory.first.data(), more.data()});
  const Executable executable = memory.runtime.load(graph, compiled);
  CHECK(memory.runtime.submit(executable).status() == Status::ok);
  more.write({1});
  Run run = memory.runtime.submit(executable);
  CHECK(run.status() == Status::operands_misnamed);
  check_says(error_of<RunError>([&] { run.wait(); }), {"dependents()", "dependent_pages()", "task 3", "Shifty"});
  more.write({0});
  CHECK(memory.runtime.submit(executable).status() == Status::ok);
}
