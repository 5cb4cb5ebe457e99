// Phased graphs: phases in order, grid tasks, and the ways in which they end.
#include "support/small_runtime.hpp"
#include "support/unequal_meetings.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr std::uint32_t kPhaseWorkers = 4;

struct PhasedFixture {
  Bench bench{on_cpu(kPhaseWorkers), 4096};
  Run submit(const Graph& graph, Repeat times = repeat(1)) { return bench.runtime.submit(bench.runtime.load(graph), times); }
};

}  // namespace

TEST_CASE_METHOD(PhasedFixture, "all tasks of a phase end before the next begins, pass after pass") {
  constexpr std::uint32_t kPhases = 7, kWidth = 30, kPasses = 5;
  Graph graph;
  for (std::uint32_t p = 0; p < kPhases; ++p) {
    for (std::uint32_t i = 0; i < kWidth; ++i) graph.add(Log{bench.at(0), bench.at(1), p});
    graph.phase();
  }
  CHECK(submit(graph, repeat(kPasses)).iterations() == kPasses);
  REQUIRE(bench.get(0) == kPhases * kWidth * kPasses);
  for (std::uint32_t i = 0; i < kPhases * kWidth * kPasses; ++i) REQUIRE(bench.get(1 + i) == i / kWidth % kPhases);
}

TEST_CASE_METHOD(PhasedFixture, "grid_sync() keeps all workers in step") {
  Graph graph;
  graph.add(Count{bench.at(10)});
  graph.add_grid(Rounds{bench.at(0), bench.at(8), 50});
  graph.add(Count{bench.at(10)});
  CHECK(submit(graph, repeat(4)).iterations() == 4);
  CHECK(bench.get(8) == 0);
  CHECK(bench.get(9) == 200);
  CHECK(bench.get(10) == 8);
}

TEST_CASE_METHOD(PhasedFixture, "a worker that misses a meeting is found out") {
  check_unequal_meetings(bench.runtime, bench.words);
}

TEST_CASE_METHOD(PhasedFixture, "stop() ends a repeated run at the end of the pass") {
  Graph graph;
  graph.add(StopAt{5});
  graph.phase();
  graph.add(Count{bench.at(0)});
  for (int i = 0; i < 30; ++i) CHECK(submit(graph, repeat_until_stop()).iterations() == 6);
  CHECK(bench.get(0) == 180);
}

TEST_CASE_METHOD(PhasedFixture, "a failure ends the run at the next boundary, whichever it is") {
  for (std::uint32_t failing = 0; failing < 3; ++failing) {
    Graph graph;
    for (std::uint32_t p = 0; p < 3; ++p) {
      for (int i = 0; i < 6; ++i) graph.add(Count{bench.at(failing * 3 + p)});
      if (p == failing) graph.add(Fail{40 + p, 2});
      graph.phase();
    }
    Run run = submit(graph, repeat(10));
    check_says(error_of<RunError>([&] { run.wait(); }),
               {std::to_string(40 + failing), "task " + std::to_string(failing * 6 + 6) + " (flywheel::testing::Fail)"});
    CHECK(run.iterations() == 2);
    for (std::uint32_t p = 0; p < 3; ++p) CHECK(bench.get(failing * 3 + p) == (p <= failing ? 18u : 12u));
  }
}

TEST_CASE_METHOD(PhasedFixture, "a failure inside a grid task ends it for all workers") {
  Graph graph;
  graph.add(Fail{3, 1});
  graph.add_grid(Rounds{bench.at(0), bench.at(8), 10});
  Run run = submit(graph, repeat(5));
  CHECK(run.status() == Status::task_failed);
  CHECK(bench.get(8) == 0);
  CHECK(bench.get(9) == 10);
}

TEST_CASE_METHOD(PhasedFixture, "results and streamed values come from phased runs as well") {
  Graph graph;
  const auto square = graph.add(Square{12});
  graph.add(EmitRange{0, 300});
  graph.phase();
  const auto loaded = graph.add(Load{bench.at(0)});
  bench.put(0, 99);
  Run run = submit(graph, repeat(2));
  std::uint32_t next = 0;
  while (const auto value = run.next<std::uint32_t>()) REQUIRE(*value == next++);
  CHECK(next == 600);
  CHECK(run.get(square) == 144);
  CHECK(run.get(loaded) == 99);
}

TEST_CASE_METHOD(PhasedFixture, "phased and dynamic runs share the workers") {
  Graph phased;
  for (int p = 0; p < 5; ++p) {
    for (int i = 0; i < 8; ++i) phased.add(Count{bench.at(0)});
    phased.phase();
  }
  const Executable phases = bench.runtime.load(phased), counter = bench.counter(1);
  std::vector<Run> runs;
  for (int i = 0; i < 100; ++i) {
    runs.push_back(bench.runtime.submit(phases));
    for (int k = 0; k < 5; ++k) runs.push_back(bench.runtime.submit(counter));
  }
  for (Run& run : runs) run.wait();
  CHECK(bench.get(0) == 4000);
  CHECK(bench.get(1) == 500);
}

TEST_CASE("a phased run gets its turn while others keep the queue full") {
  Options options = on_cpu(2);
  options.spin_budget = std::chrono::seconds(5);
  Bench bench(options);
  Graph wide;
  for (int i = 0; i < 500; ++i) wide.add(Count{bench.at(0)});
  const Executable busy = bench.runtime.load(wide);
  Graph phased;
  phased.add_grid(Rounds{bench.at(8), bench.at(4), 20});
  const Executable phases = bench.runtime.load(phased);
  std::atomic<bool> over{false};
  std::thread feeder([&] {
    std::vector<Run> last(4);
    for (std::size_t i = 0; !over; ++i) {
      if (i >= 4) last[i % 4].wait();
      last[i % 4] = bench.runtime.submit(busy);
    }
  });
  for (int i = 0; i < 20; ++i) {
    Run run = bench.runtime.submit(phases);
    CHECK(run.wait_for(std::chrono::seconds(20)));
    CHECK(run.status() == Status::ok);
  }
  over = true;
  feeder.join();
  CHECK(bench.get(4) == 0);
  CHECK(bench.get(5) == 400);
}

TEST_CASE("a collective run that fails at once does not reach back into the one before it") {
  constexpr int kRounds = 1500;
  Runtime runtime = small_runtime(on_cpu(4));
  Graph phased, failing, failing_phased;
  phased.phase();
  phased.add(Square{1});
  failing.add(Fail{5, 0});
  failing_phased.phase();
  failing_phased.add(Fail{6, 0});
  const Executable first = runtime.load(phased), fails = runtime.load(failing, compiled), ends = runtime.load(failing_phased);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Run> runs;
    for (const Executable* each : {&first, &fails, &first, &ends}) runs.push_back(runtime.submit(*each));
    for (Run& run : runs) REQUIRE(run.wait_for(std::chrono::seconds(20)));
    CHECK(runs[0].status() == Status::ok);
    CHECK(runs[1].status() == Status::task_failed);
    CHECK(runs[2].status() == Status::ok);
    CHECK(runs[3].status() == Status::task_failed);
  }
}
