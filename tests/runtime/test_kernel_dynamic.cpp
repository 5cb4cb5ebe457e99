// The GPU's kernel on an emulated GPU: dynamic and phased runs. What can go wrong at one moment only has many here:
// warps and lanes go at random paces.
#include "support/emulated_bench.hpp"
#include "support/graph_driver.hpp"
#include "support/unequal_meetings.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE_METHOD(EmulatedBench, "kernel: results and parameters") {
  Graph graph;
  const auto param = graph.param<std::uint64_t>(5);
  std::vector<TaskRef<std::uint64_t>> squares;
  for (std::uint32_t i = 0; i < 100; ++i) squares.push_back(graph.add(Square{i}));
  const auto read = graph.add(Read{param}, after(squares[7]));
  const Executable executable = dynamic(graph);
  Run plain = runtime.submit(executable), given = runtime.submit(executable, set(param, 77));
  for (std::uint32_t i = 0; i < 100; ++i) CHECK(plain.get(squares[i]) == std::uint64_t{i} * i);
  CHECK(plain.get(read) == 5);
  CHECK(given.get(read) == 77);
}

TEST_CASE_METHOD(EmulatedBench, "kernel: diamonds, many runs at once, reduce() and scratch in each") {
  Graph graph;
  const auto top = graph.add(Count{at(0)});
  std::vector<TaskRef<std::uint64_t>> middle;
  const auto bottom = graph.add(Count{at(1)});
  for (std::uint32_t i = 0; i < 7; ++i) {
    middle.push_back(graph.add(Reduce{300 + i}, after(top)));
    graph.edge(middle.back(), bottom);
  }
  const Executable executable = dynamic(graph);
  std::vector<Run> runs;
  for (int i = 0; i < 150; ++i) runs.push_back(runtime.submit(executable, repeat(1 + static_cast<unsigned>(i) % 3)));
  for (Run& run : runs)
    for (std::uint32_t i = 0; i < 7; ++i) REQUIRE(run.get(middle[i]) == std::uint64_t{300 + i} * (299 + i) / 2);
  CHECK(get(0) == 300);
  CHECK(get(1) == 300);
}

TEST_CASE_METHOD(EmulatedBench, "kernel: one run after the other, over the direct slot") {
  Graph graph;
  const auto first = graph.add(Count{at(0)});
  const auto square = graph.add(Square{12}, after(first));
  const Executable executable = dynamic(graph);
  for (std::uint32_t i = 1; i <= 150; ++i) {
    REQUIRE(runtime.submit(executable).get(square) == 144);
    REQUIRE(get(0) == i);
  }
}

TEST_CASE("kernel: a stream longer than its ring arrives complete and in order") {
  Options options = emulated_options();
  options.stream_capacity = 32;
  EmulatedBench bench(options);
  Graph graph;
  graph.add(EmitRange{0, 500});
  Run run = bench.runtime.submit(bench.dynamic(graph), repeat(2));
  std::uint32_t next = 0;
  while (const auto value = run.next<std::uint32_t>()) REQUIRE(*value == next++);
  CHECK(next == 1000);
}

TEST_CASE_METHOD(EmulatedBench, "kernel: repeats end when they should") {
  Graph graph;
  graph.add(StopAt{11}, after(graph.add(Count{at(0)})));
  const Executable executable = dynamic(graph);
  CHECK(runtime.submit(executable, repeat(8)).iterations() == 8);
  CHECK(runtime.submit(executable, repeat_until_stop()).iterations() == 12);
  CHECK(get(0) == 20);
}

TEST_CASE_METHOD(EmulatedBench, "kernel: tasks that spawn tasks") {
  Buffer<std::uint64_t> sum = runtime.allocate<std::uint64_t>(1);
  Graph graph;
  const auto root = graph.add(Fibonacci{12, sum.data(), at(0)});
  const auto seen = graph.add(Load{at(0)}, after(root));
  Run run = runtime.submit(dynamic(graph));
  const std::uint32_t calls = run.get(seen);
  CHECK(calls == get(0));
  CHECK(sum.read()[0] == 144);
}

TEST_CASE_METHOD(EmulatedBench, "kernel: phases, and what ends them early") {
  constexpr std::uint32_t kPhases = 8, kWidth = 10;
  Graph graph, failing;
  for (std::uint32_t p = 0; p < kPhases; ++p) {
    for (std::uint32_t i = 0; i < kWidth; ++i) graph.add(Log{at(0), at(1), p});
    graph.phase();
  }
  runtime.submit(dynamic(graph), repeat(2)).wait();
  REQUIRE(get(0) == 2 * kPhases * kWidth);
  for (std::uint32_t i = 0; i < 2 * kPhases * kWidth; ++i) REQUIRE(get(1 + i) == i / kWidth % kPhases);

  failing.add(Count{at(1000)});
  failing.add(Fail{9, 3});
  failing.phase();
  failing.add(Count{at(1000)});
  Run failed = runtime.submit(dynamic(failing), repeat(10));
  check_says(error_of<RunError>([&] { failed.wait(); }), {"9", "task 1 (flywheel::testing::Fail)"});
  CHECK(failed.iterations() == 3);
  CHECK(get(1000) == 7);
}

TEST_CASE_METHOD(EmulatedBench, "kernel: grid_sync() keeps all workers in step, also in repeats that stop") {
  Graph graph, stopping;
  graph.add_grid(Rounds{at(0), at(8), 10});
  CHECK(runtime.submit(dynamic(graph), repeat(4)).iterations() == 4);
  CHECK(get(8) == 0);
  CHECK(get(9) == 40);
  stopping.add_grid(Rounds{at(0), at(8), 5});
  stopping.add(StopAt{2});
  CHECK(runtime.submit(dynamic(stopping), repeat_until_stop()).iterations() == 3);
  CHECK(get(8) == 0);
}

TEST_CASE_METHOD(EmulatedBench, "kernel: a worker that misses a meeting is found out") {
  check_unequal_meetings(runtime, words);
}

TEST_CASE_METHOD(EmulatedBench, "kernel: a failing task skips what depends on it, and nothing else") {
  Graph graph, other;
  const auto bad = graph.add(Fail{123, 0});
  graph.add(Count{at(0)}, after(graph.add(Count{at(0)}, after(bad))));
  for (int i = 0; i < 30; ++i) graph.add(Count{at(1)});
  other.add(Count{at(2)});
  const Executable failing = dynamic(graph), fine = dynamic(other);
  std::vector<Run> failed, well;
  for (int i = 0; i < 10; ++i) {
    failed.push_back(runtime.submit(failing));
    well.push_back(runtime.submit(fine));
  }
  for (Run& run : well) run.wait();
  for (Run& run : failed) CHECK(run.status() == Status::task_failed);
  CHECK(get(0) == 0);
  CHECK(get(1) == 300);
  CHECK(get(2) == 10);
}

TEST_CASE_METHOD(EmulatedBench, "kernel: scratch that does not fit, and a cancelled run") {
  Graph large, held;
  large.add(Reduce{1 << 20});
  CHECK(runtime.submit(dynamic(large)).status() == Status::scratch_exhausted);
  held.add(Count{at(2)}, after(held.add(Gate{at(0), at(1)})));
  Run run = runtime.submit(dynamic(held));
  REQUIRE(eventually([&] { return get(0) == 1; }));
  run.cancel();
  CHECK(run.status() == Status::cancelled);
  CHECK(get(2) == 0);
}

TEST_CASE("kernel: launches, parks and drain mode") {
  for (const Mode mode : {Mode::resident, Mode::drain}) {
    Options options = emulated_options();
    options.mode = mode;
    options.park_after = std::chrono::milliseconds(0);
    EmulatedBench bench(options);
    Graph graph, phased;
    graph.add(Count{bench.at(0)}, after(graph.add(Count{bench.at(0)})));
    phased.add_grid(Rounds{bench.at(8), bench.at(1), 2});
    const Executable executable = bench.dynamic(graph), meeting = bench.dynamic(phased);
    for (std::uint32_t i = 1; i <= 25; ++i) {
      bench.runtime.submit(executable).wait();
      bench.runtime.submit(meeting).wait();
      REQUIRE(bench.get(0) == 2 * i);
      if (i % 5 || mode == Mode::drain) continue;
      REQUIRE(eventually([&] { return bench.runtime.stats().parks == bench.runtime.stats().launches; }));
    }
    CHECK(bench.get(1) == 0);
    if (mode == Mode::resident) CHECK(bench.runtime.stats().launches > 1);
  }
}

TEST_CASE("kernel: a stalled task is named, and others go on") {
  Options options = emulated_options();
  options.stall_limit = std::chrono::milliseconds(200);
  options.log_level = "off";
  EmulatedBench bench(options);
  Graph graph, other;
  graph.add(Gate{bench.at(0), bench.at(1)});
  other.add(Count{bench.at(2)});
  Run run = bench.runtime.submit(bench.dynamic(graph));
  CHECK(run.status() == Status::worker_stalled);
  check_says(error_of<RunError>([&] { run.wait(); }), {"task 0 (flywheel::testing::Gate)"});
  bench.runtime.submit(bench.dynamic(other)).wait();
  CHECK(bench.get(2) == 1);
}

TEST_CASE("kernel: a stalled task of a phased run is named, and a long run of short tasks is left alone") {
  Options options = emulated_options();
  options.stall_limit = std::chrono::milliseconds(200);
  options.log_level = "off";
  EmulatedBench bench(options);
  Graph stalls, lasts;
  stalls.phase();
  stalls.add(Count{bench.at(0)});
  stalls.add(Gate{bench.at(1), bench.at(2)});
  lasts.phase();
  lasts.add(Count{bench.at(3)});
  Run run = bench.runtime.submit(bench.dynamic(stalls));
  CHECK(run.status() == Status::worker_stalled);
  check_says(error_of<RunError>([&] { run.wait(); }), {"task 1 (flywheel::testing::Gate)"});
  Run lasting = bench.runtime.submit(bench.dynamic(lasts), repeat_until_stop());
  CHECK_FALSE(lasting.wait_for(std::chrono::milliseconds(700)));
  lasting.cancel();
  CHECK(lasting.status() == Status::cancelled);
}

TEST_CASE("kernel: random graphs against the serial oracle") {
  FLYWHEEL_TEST_SEED(seed);
  std::uint32_t part = 0;
  for (const bool parks : {false, true}) {
    Options options = emulated_options(parks ? 2 : 3);
    options.tuning.keep_successor = !parks;
    if (parks) options.park_after = std::chrono::milliseconds(0), options.spawn_capacity = 8;
    Runtime runtime = start_emulated<Node, ReturningNode, Sprout>(options, seed);
    Tally tally;
    run_campaign(runtime, {seed + 1000 * part++, 100, 80, 2}, tally);
    INFO(tally.problem);
    CHECK_FALSE(tally.bad);
    CHECK(tally.graphs == 100);
  }
}
