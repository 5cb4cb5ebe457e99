// Cancelling runs: live, waiting in line, over.
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("a live run: its task sees it, the rest is skipped, other runs go on") {
  Bench bench(on_cpu());
  Graph graph;
  const auto gate = graph.add(Gate{bench.at(0), bench.at(1)});
  graph.add(Count{bench.at(2)}, after(gate));
  Run run = bench.runtime.submit(bench.runtime.load(graph));
  REQUIRE(eventually([&] { return bench.get(0) == 1; }));
  bench.runtime.submit(bench.counter(3)).wait();
  run.cancel();
  CHECK(run.status() == Status::cancelled);
  check_says(error_of<RunError>([&] { run.wait(); }), {"cancelled", "Remedy"});
  CHECK(bench.get(2) == 0);
  CHECK(bench.get(3) == 1);
  CHECK(bench.runtime.stats().skipped == 1);
  bench.runtime.submit(bench.counter(3)).wait();
}

TEST_CASE("a run that waits in line never starts") {
  Options options = on_cpu();
  options.overlap = 1;
  Bench bench(options);
  Executable held;
  Run first = bench.hold(0, held);
  Run second = bench.runtime.submit(held), third = bench.runtime.submit(held);
  second.cancel();
  CHECK(second.status() == Status::cancelled);
  CHECK(second.iterations() == 0);
  check_says(error_of<RunError>([&] { second.wait(); }), {"cancelled", "had not started"});
  bench.put(1, 1);
  first.wait();
  third.wait();
  CHECK(bench.get(0) == 2);
}

TEST_CASE("a repeated run ends within a pass") {
  Bench bench(on_cpu());
  Run run = bench.runtime.submit(bench.counter(0), repeat_until_stop());
  REQUIRE(eventually([&] { return bench.get(0) > 100; }));
  run.cancel();
  CHECK(run.status() == Status::cancelled);
  CHECK(bench.get(0) - run.iterations() <= 1);
}

TEST_CASE("cancelling a run that is over, and twice, changes nothing") {
  Bench bench(on_cpu());
  Run over = bench.runtime.submit(bench.counter(0));
  over.wait();
  over.cancel();
  over.cancel();
  CHECK(over.status() == Status::ok);
  for (int i = 0; i < 300; ++i) {  // a late cancel must not hit the next run in the slot
    Run run = bench.runtime.submit(bench.counter(1));
    over.cancel();
    CHECK(run.status() == Status::ok);
  }
  CHECK(bench.get(1) == 300);
}

TEST_CASE("a cancelled phased run stops at a boundary, the same for all workers") {
  Bench bench(on_cpu(3));
  Graph graph;
  for (std::uint32_t phase = 0; phase < 4; ++phase) {
    for (int i = 0; i < 9; ++i) graph.add(Count{bench.at(phase)});
    graph.phase();
  }
  const Executable executable = bench.runtime.load(graph);
  for (int i = 0; i < 20; ++i) {
    Run run = bench.runtime.submit(executable, repeat_until_stop());
    const std::uint32_t before = bench.get(0);
    REQUIRE(eventually([&] { return bench.get(0) > before + 50; }));
    run.cancel();
    CHECK(run.status() == Status::cancelled);
    for (std::size_t phase = 0; phase < 4; ++phase) CHECK(bench.get(phase) % 9 == 0);
    const std::uint32_t missing = bench.get(0) - bench.get(3);
    CHECK(missing <= 9 * (i + 1u));
  }
}
