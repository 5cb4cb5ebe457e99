// Compiled graphs on the GPU: what a run can do and what it shows, failures, stalls, and long runs in which a
// missed dependency would show. Operands are in test_compiled_operands.cu.
#include <algorithm>
#include <cstdio>

#include "support/compiled_mixes.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Each case runs with bare runs and with all warp roles.
Options on_gpu_either_way() {
  Options options = on_gpu("off");
  options.tuning.bare_runs = GENERATE(true, false);
  return options;
}

struct EitherWay {
  Bench bench{on_gpu_either_way(), 4096};
  Executable load(const Graph& graph) { return bench.runtime.load(graph, compiled); }
  template <class... More>
  Run submit(const Graph& graph, const More&... options) {
    return bench.runtime.submit(load(graph), options...);
  }
};

}  // namespace

TEST_CASE_METHOD(EitherWay, "compiled: results, parameters, streams, scratch") {
  Graph graph;
  const auto param = graph.param<std::uint64_t>(5);
  std::vector<TaskRef<std::uint64_t>> squares;
  for (std::uint32_t i = 0; i < 300; ++i) squares.push_back(graph.add(Square{i}));
  const auto read = graph.add(Read{param}, after(squares[7]));
  const auto sum = graph.add(Reduce{5000}, after(read));
  graph.add(EmitRange{0, 500}, after(sum));
  const Executable executable = load(graph);
  Run plain = bench.runtime.submit(executable), given = bench.runtime.submit(executable, set(param, 77), repeat(2));
  for (std::uint32_t i = 0; i < 300; ++i) CHECK(plain.get(squares[i]) == std::uint64_t{i} * i);
  CHECK(plain.get(read) == 5);
  CHECK(plain.get(sum) == std::uint64_t{5000} * 4999 / 2);
  CHECK(given.get(read) == 77);
  std::uint32_t next = 0;
  while (const auto value = given.next<std::uint32_t>()) REQUIRE(*value == next++);
  CHECK(next == 1000);
}

TEST_CASE_METHOD(EitherWay, "compiled: stop() and cancel() end a run within a pass, and the next is right") {
  Graph stops, endless;
  stops.add(Count{bench.at(0)}, after(stops.add(StopAt{5})));
  for (int i = 0; i < 400; ++i) stops.add(Count{bench.at(1)});
  endless.add(Count{bench.at(2)}, after(endless.add(Count{bench.at(3)})));
  const Executable stopping = load(stops), cancelled = load(endless);
  std::uint32_t before = 0;
  for (std::uint32_t i = 1; i <= 20; ++i) {
    CHECK(bench.runtime.submit(stopping, repeat_until_stop()).iterations() == 6);
    CHECK(bench.get(0) == 6 * i);
    CHECK(bench.get(1) == 2400 * i);
    Run run = bench.runtime.submit(cancelled, repeat_until_stop());
    REQUIRE(eventually([&] { return bench.get(2) > before + 10; }));
    run.cancel();
    CHECK(run.status() == Status::cancelled);
    CHECK(bench.runtime.submit(cancelled, repeat(3)).status() == Status::ok);
    before = bench.get(2);
    CHECK(bench.get(3) == before);
  }
}

// A worker's next task may have its predecessor's failure behind a wait that the task before it made.
TEST_CASE_METHOD(EitherWay, "compiled: nothing that depends on a failed task runs, on any worker, pruned waits or not") {
  Graph graph;
  const auto bad = graph.add(Fail{7, 2});
  std::vector<TaskRef<>> wide;
  for (int i = 0; i < 600; ++i) wide.push_back(graph.add(Count{bench.at(0)}, after(bad)));
  for (const TaskRef<>& task : wide) graph.add(Count{bench.at(1)}, after(task));
  const Executable executable = load(graph);
  for (std::uint32_t i = 1; i <= 50; ++i) {
    Run run = bench.runtime.submit(executable, repeat(4));
    CHECK(run.status() == Status::task_failed);
    CHECK(run.iterations() == 2);
    REQUIRE(bench.get(0) == 1200 * (2 * i - 1));
    REQUIRE(bench.get(1) == 1200 * (2 * i - 1));
    CHECK(bench.runtime.submit(executable, repeat(2)).status() == Status::ok);
  }
}

TEST_CASE_METHOD(EitherWay, "compiled: more waits than an instruction holds, one of them for a task that fails") {
  constexpr std::uint32_t kBefore = 30;
  Graph graph;
  std::vector<TaskRef<>> before;
  for (std::uint32_t i = 0; i < kBefore; ++i) {
    before.push_back(i == 3 ? graph.add(Fail{9, 1}) : graph.add(Count{bench.at(0)}));
    graph.place(before.back(), i + 1);
  }
  for (std::uint32_t i = 0; i < kBefore; ++i) {  // so that no two have the same successors
    const auto other = graph.add(Count{bench.at(1)}, after(before[i]));
    graph.place(other, i + 1);
  }
  const auto last = graph.add(Count{bench.at(2)});
  graph.place(last, 0);
  for (const TaskRef<>& task : before) graph.edge(task, last);
  const Executable executable = load(graph);
  for (std::uint32_t i = 1; i <= 30; ++i) {
    CHECK(bench.runtime.submit(executable, repeat(3)).status() == Status::task_failed);
    CHECK(bench.get(2) == i);
  }
}

TEST_CASE("compiled: a stalled task is named, its run fails, and others go on") {
  Options options = on_gpu_either_way();
  options.stall_limit = std::chrono::milliseconds(300);
  Bench bench(options, 64);
  Graph alone, last, chain;
  alone.add(Gate{bench.at(0), bench.at(1)});
  last.add(Gate{bench.at(0), bench.at(1)}, after(last.add(Count{bench.at(2)})));
  const auto first = chain.add(Gate{bench.at(0), bench.at(1)});
  const auto away = chain.add(Count{bench.at(2)}, after(first)), back = chain.add(Count{bench.at(2)}, after(away));
  chain.place(first, 0), chain.place(away, 1), chain.place(back, 0);
  const Executable counter = bench.counter(3);
  std::uint32_t number = 0;
  for (const Graph* graph : {&alone, &last, &chain}) {
    const auto begin = std::chrono::steady_clock::now();
    Run run = bench.runtime.submit(bench.runtime.load(*graph, compiled), repeat(2));
    REQUIRE(run.wait_for(std::chrono::seconds(15)));
    CHECK(run.status() == Status::worker_stalled);
    check_says(error_of<RunError>([&] { run.wait(); }), {"(flywheel::testing::Gate)", "Options::stall_limit"});
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
    bench.runtime.submit(counter).wait();
    CHECK(bench.get(3) == ++number);
  }
}

TEST_CASE("compiled: all-to-all stages of 132, 1000 passes, random delays") {
  Runtime runtime = start<Mixer>(on_gpu_either_way());
  const std::uint32_t width = std::min(runtime.workers(), 132u);
  std::printf("stages of %u on %s\n", width, runtime.device().c_str());
  for (const std::uint32_t delay : {0u, 300u, 3000u}) {
    StageRuns stages(runtime, 3, width, delay);
    const auto begin = std::chrono::steady_clock::now();
    stages.submit(1000).wait();
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    std::printf("delay up to %4u turns: 1000 passes of 3 stages, %.2f us a stage\n", delay, us / 3000);
    for (int i = 0; i < 20; ++i) stages.submit(1 + i % 7).wait();
    CHECK(stages.differences() == 0);
  }
}

TEST_CASE("compiled: 1000 runs, dynamic and phased ones in turn with them, from two threads") {
  Runtime runtime = start<Mixer, Count, Rounds, Packed>(on_gpu_either_way());
  MixedRuns(runtime, 4, {40, 17, 60, 21}, 200).run(350, 300);
  std::printf("350 rounds of 2 compiled, 1 dynamic, 1 phased run; 300 compiled ones beside\n");
}

TEST_CASE("compiled: a traced run shows one body a task and pass, in order") {
  Options options = on_gpu_either_way();
  options.trace_events = 4096;
  Bench bench(options, 64);
  Graph graph;
  const auto a = graph.add(Count{bench.at(0)});
  const auto b = graph.add(Reduce{1000}, after(a));
  graph.add(Count{bench.at(1)}, after(b));
  const Executable executable = bench.runtime.load(graph, compiled);
  Run run = bench.runtime.submit(executable, traced, repeat(5));
  std::vector<double> ends(3 * 5), begins(3 * 5);
  std::uint32_t bodies = 0;
  for (const TraceSpan& span : run.trace().spans()) {
    double& end = ends[span.pass * 3 + span.task];  // a bare run has no store parts
    if (span.kind == TraceKind::store || span.kind == TraceKind::body) end = std::max(end, span.end_ns);
    if (span.kind != TraceKind::body) continue;
    begins[span.pass * 3 + span.task] = span.begin_ns;
    ++bodies;
  }
  CHECK(bodies == 15);
  constexpr double kClocksNs = 2000;  // the clock the SMs share ticks in steps of a microsecond
  for (std::size_t i = 1; i < ends.size(); ++i) CHECK(begins[i] + kClocksNs > ends[i - 1]);
  CHECK(run.trace().task_name(1) == "task 1 (flywheel::testing::Reduce)");
  CHECK(run.trace().costs().size() == 3);
  std::fputs(run.trace().report().c_str(), stdout);
}
