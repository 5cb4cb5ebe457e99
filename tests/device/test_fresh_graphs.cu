// New graphs on the GPU beside the resident kernel: each is loaded, run at once and dropped, so that its memory is
// another's next. Then a graph for which arena and queues have to grow.
#include "catch.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// `n` tasks that count in a word, in ten levels.
Graph counts(std::uint32_t* word, std::uint32_t n) {
  Graph graph;
  std::vector<TaskRef<>> tasks;
  const std::uint32_t width = (n + 9) / 10;
  for (std::uint32_t i = 0; i < n; ++i)
    tasks.push_back(i < width ? graph.add(Count{word})
                              : graph.add(Count{word}, after(tasks[i - width], tasks[i - i % width - 1])));
  return graph;
}

}  // namespace

TEST_CASE("new graphs of all sizes run at once, in memory that others have used") {
  Bench bench(on_gpu());
  std::uint32_t expected = 0;
  Executable small = bench.counter(1);
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const std::uint32_t n = i % 100 == 99 ? 20'000 : 1 + i * 7 % 300;
    bench.runtime.submit(bench.runtime.load(counts(bench.at(0), n))).wait();
    bench.runtime.submit(small).wait();
    expected += n;
  }
  CHECK(bench.get(0) == expected);
  CHECK(bench.get(1) == 3000);
}

TEST_CASE("arena and queues grow for a large graph, and graphs that were loaded before still run") {
  constexpr std::uint32_t kMany = 1'000'000;
  Bench bench(on_gpu());
  const Executable small = bench.counter(0);
  bench.runtime.submit(small).wait();
  const Executable large = bench.runtime.load(counts(bench.at(1), kMany));
  for (int i = 0; i < 3; ++i) bench.runtime.submit(large).wait();
  bench.runtime.submit(small).wait();
  CHECK(bench.get(0) == 2);
  CHECK(bench.get(1) == 3 * kMany);
}
