// The GPU's kernel on an emulated GPU: compiled runs, without operands. The roles of a worker go at random paces.
#include "support/compiled_mixes.hpp"
#include "support/emulated_bench.hpp"
#include "support/graph_driver.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
/// Each case runs with bare runs and with all warp roles.
struct CompiledBench : EmulatedBench {
  static Options options() {
    Options options = emulated_options();
    options.tuning.bare_runs = GENERATE(true, false);
    return options;
  }
  CompiledBench() : EmulatedBench(options()) {}
};
}  // namespace

TEST_CASE_METHOD(CompiledBench, "kernel, compiled: results, parameters, streams, scratch") {
  Graph graph;
  const auto param = graph.param<std::uint64_t>(5);
  std::vector<TaskRef<std::uint64_t>> squares;
  for (std::uint32_t i = 0; i < 40; ++i) squares.push_back(graph.add(Square{i}));
  const auto read = graph.add(Read{param}, after(squares[7]));
  const auto sum = graph.add(Reduce{5000}, after(read));
  graph.add(EmitRange{0, 100}, after(sum));
  const Executable executable = load(graph);
  for (std::uint64_t i = 0; i < 5; ++i) {
    Run plain = runtime.submit(executable), given = runtime.submit(executable, set(param, 77 + i), repeat(2));
    for (std::uint32_t s = 0; s < 40; ++s) REQUIRE(plain.get(squares[s]) == std::uint64_t{s} * s);
    CHECK(plain.get(read) == 5);
    CHECK(plain.get(sum) == std::uint64_t{5000} * 4999 / 2);
    CHECK(given.get(read) == 77 + i);
    std::uint32_t next = 0;
    while (const auto value = given.next<std::uint32_t>()) REQUIRE(*value == next++);
    CHECK(next == 200);
  }
}

TEST_CASE_METHOD(CompiledBench, "kernel, compiled: one task, and workers without any") {
  Graph graph;
  const auto task = graph.add(Square{12});
  const Executable executable = load(graph);
  for (int i = 0; i < 60; ++i) REQUIRE(runtime.submit(executable).get(task) == 144);
  CHECK(runtime.submit(executable, repeat(60)).iterations() == 60);
}

TEST_CASE_METHOD(CompiledBench, "kernel, compiled: stop() and cancel() end a run within a pass, and the next is right") {
  Graph stops, endless;
  stops.add(Count{at(0)}, after(stops.add(StopAt{5})));
  for (int i = 0; i < 20; ++i) stops.add(Count{at(1)});
  endless.add(Count{at(2)}, after(endless.add(Count{at(3)})));
  const Executable stopping = load(stops), cancelled = load(endless);
  std::uint32_t before = 0;
  for (std::uint32_t i = 1; i <= 8; ++i) {
    CHECK(runtime.submit(stopping, repeat_until_stop()).iterations() == 6);
    CHECK(get(0) == 6 * i);
    CHECK(get(1) == 120 * i);
    Run run = runtime.submit(cancelled, repeat_until_stop());
    REQUIRE(eventually([&] { return get(2) > before + 10; }));
    run.cancel();
    CHECK(run.status() == Status::cancelled);
    CHECK(runtime.submit(cancelled, repeat(3)).status() == Status::ok);
    before = get(2);
    CHECK(get(3) == before);
  }
}

TEST_CASE_METHOD(CompiledBench, "kernel, compiled: a failure reaches what depends on it through every placement") {
  constexpr std::uint32_t kTasks = 8;
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    Graph graph;
    std::vector<TaskRef<>> tasks;
    std::vector<bool> dead;
    const std::uint32_t bad = pick(random, 0, kTasks - 1);
    for (std::uint32_t i = 0; i < kTasks; ++i) {
      tasks.push_back(i == bad ? graph.add(Fail{1, 1}) : graph.add(Count{at(i)}));
      dead.push_back(i == bad);
      graph.place(tasks.back(), pick(random, 0, 2));
      for (std::uint32_t before = 0; before < i; ++before) {
        if (pick(random, 0, 2)) continue;
        graph.edge(tasks[before], tasks[i]);
        if (dead[before]) dead[i] = true;
      }
      put(i, 0);
    }
    const Executable executable = load(graph);
    CHECK(runtime.submit(executable, repeat(3)).status() == Status::task_failed);
    for (std::uint32_t i = 0; i < kTasks; ++i)
      if (i != bad) CHECK(get(i) <= (dead[i] ? 1u : 2u));
    CHECK(runtime.submit(executable).status() == Status::ok);
  }
}

TEST_CASE_METHOD(CompiledBench, "kernel, compiled: more waits than an instruction holds, one of them for a failure") {
  constexpr std::uint32_t kBefore = 30;
  for (const std::uint32_t bad : {0u, 11u, 12u, 29u}) {
    Graph graph;
    const auto last = graph.add(Count{at(2)});
    for (std::uint32_t i = 0; i < kBefore; ++i) {
      const auto before = i == bad ? graph.add(Fail{9, 1}) : graph.add(Count{at(0)});
      graph.edge(before, last);
      graph.edge(before, graph.add(Count{at(1)}));  // so that no two have the same successors
    }
    put(2, 0);
    const Executable executable = load(graph);
    for (std::uint32_t i = 1; i <= 4; ++i) {
      CHECK(runtime.submit(executable, repeat(3)).status() == Status::task_failed);
      CHECK(get(2) == i);
    }
  }
}

TEST_CASE_METHOD(CompiledBench, "kernel, compiled: a failing sink, alone and among many; a task that spawns") {
  for (const std::uint32_t others : {0u, 1u, 20u}) {
    Graph graph;
    graph.add(Fail{3, 2});
    for (std::uint32_t i = 0; i < others; ++i) graph.add(Count{at(0)});
    const Executable executable = load(graph);
    for (int i = 0; i < 4; ++i) {
      Run run = runtime.submit(executable, repeat_until_stop());
      CHECK(run.status() == Status::task_failed);
      CHECK(run.iterations() == 2);
    }
  }
  Graph spawning;
  spawning.add(Count{at(1)}, after(spawning.add(TrySpawn{at(1)})));
  CHECK(runtime.submit(load(spawning)).status() == Status::spawn_in_phase);
  CHECK(get(1) == 0);
}

TEST_CASE("kernel, compiled: a stalled task is named wherever it is, and others go on") {
  Options options = CompiledBench::options();
  options.stall_limit = std::chrono::milliseconds(300);
  options.log_level = "off";
  EmulatedBench bench(options);
  Graph counts;
  counts.add(Count{bench.at(3)});
  const Executable counter = bench.dynamic(counts);
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    Graph graph;
    graph.add(Square{1});
    const auto gate = graph.add(Gate{bench.at(0), bench.at(1)});
    graph.place(gate, worker);
    graph.place(graph.add(Count{bench.at(2)}, after(gate)), 0);
    Run run = bench.runtime.submit(bench.load(graph), repeat(2));
    CHECK(run.status() == Status::worker_stalled);
    check_says(error_of<RunError>([&] { run.wait(); }), {"task 1 (flywheel::testing::Gate)"});
    bench.runtime.submit(counter).wait();
  }
  CHECK(bench.get(2) == 0);
  CHECK(bench.get(3) == 3);
}

TEST_CASE_METHOD(CompiledBench, "kernel, compiled: tasks that wait for each other while they run, pass after pass") {
  Graph graph;
  TaskRef<void> last = graph.add(Count{at(0)});
  for (std::uint32_t gang = 1; gang <= 4; ++gang) {
    std::vector<TaskRef<void>> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(graph.add(Meet{at(gang), 3}, after(last)));
    graph.together(tasks);
    last = graph.add(Count{at(0)}, after(tasks[0], tasks[1], tasks[2]));
  }
  CHECK(runtime.submit(load(graph), repeat(5)).status() == Status::ok);
  for (std::uint32_t gang = 1; gang <= 4; ++gang) CHECK(get(gang) == 15);
}

TEST_CASE("kernel, compiled: what each stage derives from all of the one before, against an oracle") {
  for (const std::uint32_t workers : {1u, 2u, 3u}) {
    Options options = CompiledBench::options();
    options.workers = workers;
    Runtime runtime = start_emulated<Mixer>(options);
    for (const std::uint32_t width : {1u, 3u, 7u}) {
      StageRuns runs(runtime, 4, width, 200);
      for (std::uint32_t i = 1; i < 5; ++i) runs.submit(i * i).wait();
      CHECK(runs.differences() == 0);
    }
  }
}

TEST_CASE("kernel, compiled: dynamic, phased and compiled runs in turn, from two threads, with parks and launches") {
  for (const Mode mode : {Mode::resident, Mode::drain}) {
    Options options = CompiledBench::options();
    options.mode = mode;
    options.park_after = std::chrono::milliseconds(0);
    Runtime runtime = start_emulated<Mixer, Count, Rounds, Packed>(options);
    MixedRuns(runtime, 3, {4, 5, 12, 7}, 50).run(25, 25);
  }
}

TEST_CASE("kernel, compiled: a traced run shows one body a task and pass, in order, and one store unless it is bare") {
  Options options = CompiledBench::options();
  options.trace_events = 4096;
  EmulatedBench bench(options);
  constexpr std::uint32_t kTasks = 9, kPasses = 5;
  Graph graph;
  std::vector<TaskRef<>> tasks;
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    tasks.push_back(graph.add(Count{bench.at(0)}, i >= 3 ? after(tasks[i - 3], tasks[i / 2]) : After{}));
    graph.place(tasks.back(), i % 3);
  }
  const Executable executable = bench.load(graph);
  for (int round = 0; round < 3; ++round) {
    Run run = bench.runtime.submit(executable, traced, repeat(kPasses));
    std::vector<double> begins(kTasks * kPasses, -1);
    std::uint32_t bodies = 0, stores = 0;
    CHECK(run.trace().dropped() == 0);
    for (const TraceSpan& span : run.trace().spans()) {
      const std::uint32_t at = span.pass * kTasks + span.task;
      stores += span.kind == TraceKind::store;
      if (span.kind != TraceKind::body) continue;
      begins[at] = span.begin_ns, ++bodies;
      CHECK(span.worker == span.task % 3);
    }
    CHECK(bodies == kTasks * kPasses);
    CHECK(stores == (options.tuning.bare_runs ? 0 : kTasks * kPasses));
    for (std::uint32_t at = 0; at < kTasks * kPasses; ++at) {
      const std::uint32_t task = at % kTasks;
      if (task < 3) continue;
      CHECK(begins[at] >= begins[at - 3]);
      CHECK(begins[at] >= begins[at - task + task / 2]);
    }
    Run plain = bench.runtime.submit(executable);
    CHECK(plain.trace().spans().empty());
  }
}

TEST_CASE("kernel, compiled: random graphs against the serial oracle") {
  FLYWHEEL_TEST_SEED(seed);
  std::uint32_t part = 0;
  for (const auto& [workers, bare] : {std::pair{3u, true}, {3u, false}, {1u, true}}) {
    Options options = emulated_options(workers);
    options.tuning.bare_runs = bare;
    options.stream_capacity = 4;
    Runtime runtime = start_emulated<Node, ReturningNode, Sprout>(options, seed);
    Tally tally;
    run_campaign(runtime, {seed + 1000 * part++, 60, 80, 2, true}, tally);
    INFO(tally.problem);
    CHECK_FALSE(tally.bad);
    CHECK(tally.graphs == 60);
  }
}
