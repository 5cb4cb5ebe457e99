// Compiled graphs on CPU workers: order, repeats, parameters, results, streams, placement, and what has
// nothing to do with the graph: other runs, parking, drain mode, memory. Failures are in
// test_compiled_failures.cpp.
#include <numeric>

#include "support/compiled_soak.hpp"
#include "support/small_runtime.hpp"

#include "host/plan/schedule.hpp"
#include "support/internals.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr std::uint32_t kWorkers = 4;

struct Fixture {
  Bench bench{on_cpu(kWorkers), 4096};
  Executable load(const Graph& graph) { return bench.runtime.load(graph, compiled); }
  template <class... Options>
  Run submit(const Graph& graph, const Options&... options) {
    return bench.runtime.submit(load(graph), options...);
  }
};

/// Stages of `width` tasks; each task of a stage waits for all of the one before and logs its stage.
Graph stages(Bench& bench, std::uint32_t count, std::uint32_t width) {
  Graph graph;
  After before;
  for (std::uint32_t s = 0; s < count; ++s) {
    After stage;
    for (std::uint32_t i = 0; i < width; ++i) {
      const auto task = graph.add(Log{bench.at(0), bench.at(1), s}, before);
      stage.add(task);
    }
    before = stage;
  }
  return graph;
}

/// Counts, some of them late.
struct Late {
  std::uint32_t* word;
  std::uint32_t us;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    if (us) std::this_thread::sleep_for(std::chrono::microseconds(us));
    add_to(*word, 1u);
  }
};

/// `count` tasks with pairwise different successors, the `late`-th of them late, and one task after all of
/// them.
TaskRef<std::uint32_t> add_wide_wait(Graph& graph, std::uint32_t* words, std::uint32_t count, std::uint32_t late) {
  const auto last = graph.add(Load{words});
  graph.place(last, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto before = graph.add(Late{words, i == late ? 500u : 0u}), other = graph.add(Late{words + 1, 0});
    graph.place(before, 1 + i % (kWorkers - 1));
    graph.edge(before, last);
    graph.edge(before, other);
  }
  return last;
}

/// Every worker's number, as a body sees it.
struct WhoRuns {
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block& block) const {
    return block.worker();
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "compiled: stages follow one another, pass after pass, run after run") {
  constexpr std::uint32_t kStages = 6, kWidth = 9, kPasses = 5;
  const Executable executable = load(stages(bench, kStages, kWidth));
  for (int run = 0; run < 20; ++run) {
    bench.put(0, 0);
    CHECK(bench.runtime.submit(executable, repeat(kPasses)).iterations() == kPasses);
    REQUIRE(bench.get(0) == kStages * kWidth * kPasses);
    for (std::uint32_t i = 0; i < kStages * kWidth * kPasses; ++i) REQUIRE(bench.get(1 + i) == i / kWidth % kStages);
  }
}

TEST_CASE_METHOD(Fixture, "compiled: stop() ends a repeated run at the end of the pass") {
  Graph graph;
  const auto stop = graph.add(StopAt{5});
  graph.add(Count{bench.at(0)}, after(stop));
  graph.add(Count{bench.at(1)});
  const Executable executable = load(graph);
  for (std::uint32_t i = 1; i <= 30; ++i) {
    CHECK(bench.runtime.submit(executable, repeat_until_stop()).iterations() == 6);
    CHECK(bench.get(0) == 6 * i);
    CHECK(bench.get(1) == 6 * i);
  }
}

TEST_CASE_METHOD(Fixture, "compiled: stop() by every one of more sinks than 16 bits count") {
  constexpr std::uint32_t kSinks = 65'536;
  Graph graph;
  for (std::uint32_t i = 0; i < kSinks; ++i) graph.add(StopAt{1});
  CHECK(submit(graph, repeat(3)).iterations() == 2);
}

TEST_CASE_METHOD(Fixture, "compiled: parameters and results are those of the run") {
  Graph graph;
  const auto param = graph.param<std::uint64_t>(5);
  std::vector<TaskRef<std::uint64_t>> squares;
  for (std::uint32_t i = 0; i < 40; ++i) squares.push_back(graph.add(Square{i}));
  const auto read = graph.add(Read{param}, after(squares[3], squares[20]));
  const Executable executable = load(graph);
  std::vector<Run> runs;
  for (std::uint32_t i = 0; i < 50; ++i) runs.push_back(bench.runtime.submit(executable, set(param, i), repeat(1 + i % 3)));
  Run plain = bench.runtime.submit(executable);
  for (std::uint64_t i = 0; i < runs.size(); ++i) {
    CHECK(runs[i].get(read) == i);
    for (std::uint32_t k = 0; k < 40; ++k) REQUIRE(runs[i].get(squares[k]) == std::uint64_t{k} * k);
  }
  CHECK(plain.get(read) == 5);
}

TEST_CASE_METHOD(Fixture, "compiled: streamed values come in order, more than their ring holds") {
  Graph graph;
  graph.add(EmitRange{0, 1000}, after(graph.add(Count{bench.at(0)})));
  const Executable executable = load(graph);
  for (int i = 0; i < 3; ++i) {
    Run run = bench.runtime.submit(executable, repeat(4));
    std::uint32_t next = 0;
    while (const auto value = run.next<std::uint32_t>()) REQUIRE(*value == next++);
    CHECK(next == 4000);
    CHECK(run.status() == Status::ok);
  }
}

TEST_CASE_METHOD(Fixture, "compiled: one task, and workers without any") {
  Graph graph;
  const auto task = graph.add(Square{12});
  const Executable executable = load(graph);
  for (int i = 0; i < 200; ++i) CHECK(bench.runtime.submit(executable).get(task) == 144);
  CHECK(bench.runtime.submit(executable, repeat(500)).iterations() == 500);
}

TEST_CASE("compiled: tasks run where they are placed") {
  Runtime runtime = start<WhoRuns, Count>(on_cpu(5));
  Graph graph;
  std::vector<TaskRef<std::uint32_t>> tasks;
  for (std::uint32_t i = 0; i < 60; ++i) {
    tasks.push_back(graph.add(WhoRuns{}, i ? after(tasks[i / 2]) : After{}));
    graph.place(tasks.back(), i * 7 % 4);  // worker 4 has none
  }
  Run run = runtime.submit(runtime.load(graph, compiled), repeat(3));
  for (std::uint32_t i = 0; i < 60; ++i) CHECK(run.get(tasks[i]) == i * 7 % 4);
}

TEST_CASE("compiled: a task that waits for more counters than an instruction holds") {
  Runtime runtime = start<Late, Load>(on_cpu(kWorkers));
  Buffer<std::uint32_t> words = runtime.allocate<std::uint32_t>(2);
  for (const std::uint32_t count : {12u, 13u, 24u, 25u, 60u})
    for (std::uint32_t late = 0; late < count; late += 5) {
      Graph graph;
      const auto last = add_wide_wait(graph, words.data(), count, late);
      words.write(std::vector<std::uint32_t>{0, 0});
      Run run = runtime.submit(runtime.load(graph, compiled), repeat(3));
      CHECK(run.get(last) == 3 * count);
    }
}

TEST_CASE("compiled: what each stage derives from all of the one before, with delays, against an oracle") {
  Runtime runtime = start<Mixer>(on_cpu(3));
  for (const std::uint32_t width : {1u, 2u, 3u, 7u}) {
    StageRuns runs(runtime, 4, width, 200);
    for (std::uint32_t i = 1; i < 12; ++i) runs.submit(i * i).wait();
    CHECK(runs.differences() == 0);
  }
}

TEST_CASE("compiled: two compiled executables and a dynamic one, submitted from several threads") {
  Runtime runtime = start<Mixer, Count, Packed>(on_cpu(3));
  StageRuns stages(runtime, 3, 5, 20);
  OperandRuns operands(runtime, 20, Walk::all, 0);
  Buffer<std::uint32_t> words = runtime.allocate<std::uint32_t>(8);
  Graph graph;
  const auto first = graph.add(Count{words.data()});
  for (int i = 0; i < 6; ++i) graph.add(Count{words.data()}, after(first));
  const Executable dynamic = runtime.load(graph);
  constexpr std::uint32_t kRuns = 60, kThreads = 4;
  for (std::uint32_t i = 0; i < kThreads / 2 * kRuns; ++i) stages.expect(2);
  std::atomic<std::uint32_t> bad{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kRuns; ++i) {
        Run a = runtime.submit(dynamic, repeat(2));
        Run b = runtime.submit(t % 2 ? stages.executable() : operands.executable(), repeat(2));
        if (a.status() != Status::ok || b.status() != Status::ok) bad.fetch_add(1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(bad == 0);
  CHECK(stages.differences() == 0);
  CHECK(operands.seen().wrong == 0);
  CHECK(operands.seen().computes == kThreads / 2 * kRuns * 2 * 20);
  CHECK(words.read()[0] == kThreads * kRuns * 2 * 7);
}

TEST_CASE("compiled: in drain mode, and with parks between runs") {
  for (const Mode mode : {Mode::drain, Mode::resident}) {
    Options options = on_cpu(3);
    options.mode = mode;
    options.park_after = std::chrono::milliseconds(0);
    Runtime runtime = start<Mixer, Packed, Rounds>(options);
    StageRuns stages(runtime, 3, 4, 0);
    OperandRuns operands(runtime, 30, Walk::all, 0);
    Buffer<std::uint32_t> words = runtime.allocate<std::uint32_t>(16);
    Graph phased;
    phased.add_grid(Rounds{words.data() + 2, words.data(), 2});
    const Executable meeting = runtime.load(phased);
    for (std::uint32_t i = 0; i < 40; ++i) {
      stages.submit(1 + i % 3).wait();
      operands.submit(2).wait();
      runtime.submit(meeting, repeat(2)).wait();
      if (i % 8 || mode == Mode::drain) continue;
      REQUIRE(eventually([&] {
        const Stats stats = runtime.stats();
        return stats.parks == stats.launches;
      }));
    }
    CHECK(stages.differences() == 0);
    operands.check();
    CHECK(words.read()[0] == 0);
    CHECK(words.read()[1] == 160);
    if (mode == Mode::resident) CHECK(runtime.stats().launches > 1);
  }
}

TEST_CASE("compiled: loaded and dropped 2000 times, memory, records and executables come back") {
  Options options = on_cpu(2);
  options.heap_bytes = 1u << 20;
  options.max_executables = 4;
  options.max_tasks = 64;
  options.max_edges = 64;
  Bench bench(options, 8);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    Graph graph;
    const auto first = graph.add(Count{bench.at(0)});
    for (int k = 0; k < 40; ++k) graph.add(Count{bench.at(0)}, after(first));
    const Executable executable = bench.runtime.load(graph, compiled);
    if (i % 4 == 0) bench.runtime.submit(executable, repeat(2)).wait();
    if (i % 4 == 1) bench.runtime.submit(executable);  // dropped while it runs
  }
  CHECK(eventually([&] { return bench.runtime.stats().completed == 1000; }));
  CHECK(bench.get(0) == 41 * (2 * 500 + 500));
  Buffer<unsigned char> rest = bench.runtime.allocate<unsigned char>(900u << 10);  // no second chunk was needed
}
