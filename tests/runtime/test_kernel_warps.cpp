// The GPU's kernel on an emulated GPU: warp tasks, side by side in compiled runs and one at a time elsewhere.
#include "support/collective_tasks.hpp"
#include "support/emulated_bench.hpp"
#include "support/warp_tasks.hpp"
#include "support/yields.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using WarpCount = OnWarp<Count>;
using WarpFail = OnWarp<Fail>;
using WarpGate = OnWarp<Gate>;
using WarpStopAt = OnWarp<StopAt>;
using WarpEmitRange = OnWarp<EmitRange>;
using WarpSquare = OnWarp<Square>;
using WarpCollectives = OnWarp<Collectives>;

/// Takes more scratch memory than a warp has, or as much.
struct TakeScratch {
  using Grain = flywheel::Warp;
  std::uint32_t* right;
  int bytes;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    auto* const memory = block.template scratch<unsigned char>(bytes);
    if (!memory) return;
    block.for_each(bytes, [&](int i) { memory[i] = static_cast<unsigned char>(i); });
    block.sync();
    const bool all = memory[bytes - 1] == static_cast<unsigned char>(bytes - 1);
    if (block.all(all) && block.leader()) add_to(*right, 1u);
  }
};

static_assert(WarpBlock<TaskList<Count>>::size() == 32 && WarpBlock<TaskList<Count>>::kWarps == 1);

struct WarpBench {
  explicit WarpBench(Options options = emulated_options(), std::size_t count = 4096)
      : runtime(
            start_emulated<Count, WarpCount, WarpFail, WarpGate, WarpStopAt, WarpEmitRange, WarpSquare, TakeScratch>(options)),
        words(runtime.allocate<std::uint32_t>(count)) {}
  std::uint32_t* at(std::size_t i) const { return words.data() + i; }
  std::uint32_t get(std::size_t i) const { return words.read()[i]; }
  Executable load(const Graph& graph) { return runtime.load(graph, compiled); }
  WarpCount count(std::size_t i) const { return {{at(i)}}; }

  Runtime runtime;
  Buffer<std::uint32_t> words;
};
}  // namespace

TEST_CASE("kernel, warps: random graphs against the serial oracle") {
  FLYWHEEL_TEST_SEED(seed);
  for (const std::uint32_t workers : {1u, 2u, 3u}) {
    Runtime runtime = start_emulated<WarpDerive>(emulated_options(workers), seed);
    check_derived_graphs(runtime, seed + workers, 10, 60);
  }
}

TEST_CASE("kernel, warps: the same where they do not run side by side") {
  FLYWHEEL_TEST_SEED(seed);
  Options options = emulated_options();
  options.tuning.bare_runs = false;
  Runtime runtime = start_emulated<WarpDerive>(options, seed);
  check_derived_graphs(runtime, seed, 12, 40);
}

TEST_CASE("kernel, warps: side by side on one worker, in a compiled run") {
  Options options = emulated_options(1);
  WarpBench bench(options);
  Graph graph;
  for (int i = 0; i < 8; ++i) graph.add(WarpGate{{bench.at(0), bench.at(1)}});
  Run run = bench.runtime.submit(bench.load(graph));
  CHECK(eventually([&] { return bench.get(0) == 8; }));  // the one worker has all of them at once
  bench.words.write(std::vector<std::uint32_t>{8, 1});
  run.wait();
}

TEST_CASE_METHOD(WarpBench, "kernel, warps: among other tasks, in dynamic, phased and compiled graphs") {
  for (const bool phased : {false, true}) {
    Graph graph;
    TaskRef<> last = graph.add(count(0));
    for (std::uint32_t i = 1; i < 30; ++i) {
      if (phased && i % 5 == 0) graph.phase();
      const TaskRef<> next = i % 2 ? graph.add(Count{at(i % 4)}) : graph.add(count(i % 4));
      if (!phased && i % 3) graph.edge(last, next);
      last = next;
    }
    words.write(std::vector<std::uint32_t>(4096));
    runtime.submit(runtime.load(graph), repeat(3)).wait();
    if (!phased) runtime.submit(load(graph), repeat(3)).wait();
    const std::uint32_t runs = phased ? 3 : 6;
    for (std::uint32_t k = 0; k < 4; ++k) CHECK(get(k) == (k < 2 ? 8 : 7) * runs);
  }
  Graph graph;
  const auto square = graph.add(WarpSquare{{12}});
  CHECK(runtime.submit(load(graph)).get(square) == 144);
  CHECK(runtime.submit(runtime.load(graph)).get(square) == 144);
}

TEST_CASE_METHOD(WarpBench, "kernel, warps: stop() and cancel() end a run within a pass, and the next is right") {
  Graph stops, endless;
  stops.add(count(0), after(stops.add(WarpStopAt{{5}})));
  for (int i = 0; i < 20; ++i) stops.add(count(1));
  endless.add(count(2), after(endless.add(count(3))));
  for (int i = 0; i < 30; ++i) endless.add(WarpSquare{{3}});
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

TEST_CASE_METHOD(WarpBench, "kernel, warps: a failure reaches what depends on it, and the next run is right") {
  FLYWHEEL_TEST_SEED(seed);
  Dice dice(seed);
  for (int round = 0; round < 40; ++round) {
    const std::uint32_t tasks = 4 + dice.below(40), bad = dice.below(tasks);
    Graph graph;
    std::vector<TaskRef<>> all;
    std::vector<bool> dead;
    for (std::uint32_t i = 0; i < tasks; ++i) {
      all.push_back(i == bad ? graph.add(WarpFail{{7, 1}}) : graph.add(count(i)));
      dead.push_back(i == bad);
      for (std::uint32_t before = i > 12 ? i - 12 : 0; before < i; ++before) {
        if (!dice.one_in(4)) continue;
        graph.edge(all[before], all[i]);
        if (dead[before]) dead[i] = true;
      }
    }
    words.write(std::vector<std::uint32_t>(4096));
    const Executable executable = load(graph);
    Run run = runtime.submit(executable, repeat(3));
    CHECK(run.status() == Status::task_failed);
    for (std::uint32_t i = 0; i < tasks; ++i)
      if (i != bad) CHECK(get(i) <= (dead[i] ? 1u : 2u));
    CHECK(runtime.submit(executable).status() == Status::ok);
  }
}

TEST_CASE_METHOD(WarpBench, "kernel, warps: more waits than an instruction holds") {
  Graph graph;
  const auto last = graph.add(count(0));
  for (std::uint32_t i = 0; i < 30; ++i) {
    const auto before = graph.add(count(1));
    graph.edge(before, last);
    graph.edge(before, graph.add(count(2)));  // so that no two have the same successors
  }
  runtime.submit(load(graph), repeat(20)).wait();
  CHECK(get(0) == 20);
  CHECK(get(2) == 600);
}

TEST_CASE("kernel, warps: a stalled task is named, and others go on") {
  Options options = emulated_options();
  options.stall_limit = std::chrono::milliseconds(300);
  options.log_level = "off";
  WarpBench bench(options);
  Graph graph;
  for (int i = 0; i < 12; ++i) graph.add(bench.count(3));
  const auto gate = graph.add(WarpGate{{bench.at(0), bench.at(1)}});
  graph.add(bench.count(2), after(gate));
  Run run = bench.runtime.submit(bench.load(graph), repeat(2));
  CHECK(run.status() == Status::worker_stalled);
  check_says(error_of<RunError>([&] { run.wait(); }), {"task 12 (", "Gate"});
  Graph counts;
  counts.add(bench.count(4));
  bench.runtime.submit(bench.load(counts)).wait();
  CHECK(bench.get(2) == 0);
  CHECK(bench.get(4) == 1);
}

TEST_CASE("kernel, warps: a traced run shows each body once in each pass") {
  constexpr std::uint32_t kTasks = 40, kPasses = 5;
  Options options = emulated_options();
  options.trace_events = 4096;
  WarpBench bench(options);
  Graph graph;
  std::vector<TaskRef<>> tasks;
  for (std::uint32_t i = 0; i < kTasks; ++i)
    tasks.push_back(graph.add(bench.count(0), i >= 10 ? after(tasks[i - 10]) : After{}));
  const Executable executable = bench.load(graph);
  Run run = bench.runtime.submit(executable, traced, repeat(kPasses));
  std::vector<std::uint32_t> bodies(kTasks * kPasses);
  for (const TraceSpan& span : run.trace().spans()) {
    REQUIRE(span.kind == TraceKind::body);
    ++bodies[span.pass * kTasks + span.task];
  }
  CHECK(run.trace().dropped() == 0);
  CHECK(std::ranges::all_of(bodies, [](std::uint32_t count) { return count == 1; }));
}

TEST_CASE_METHOD(WarpBench, "kernel, warps: scratch memory is an eighth of a worker's") {
  const int most = static_cast<int>(Options{}.scratch_bytes / 8);
  for (const bool plan : {true, false}) {
    Graph fits, does_not;
    for (int i = 0; i < 50; ++i) fits.add(TakeScratch{at(0), most});
    does_not.add(TakeScratch{at(1), most + 1});
    words.write(std::vector<std::uint32_t>(4096));
    runtime.submit(plan ? load(fits) : runtime.load(fits)).wait();
    CHECK(get(0) == 50);
    CHECK(runtime.submit(plan ? load(does_not) : runtime.load(does_not)).status() == Status::scratch_exhausted);
  }
}

TEST_CASE_METHOD(WarpBench, "kernel, warps: a run goes on at its pass when the kernel has yielded") {
  constexpr std::uint32_t kPasses = 60;
  Graph graph;
  const auto first = graph.add(WarpEmitRange{{0, 1}});
  for (std::uint32_t i = 0; i < 20; ++i) graph.add(count(i), after(first));
  const Executable executable = load(graph);
  Yielder yielder(runtime);
  Run run = runtime.submit(executable, repeat(kPasses));
  for (std::uint32_t i = 0; i < kPasses; ++i) REQUIRE(run.next<std::uint32_t>() == i);
  CHECK(run.iterations() == kPasses);
  for (std::uint32_t i = 0; i < 20; ++i) CHECK(get(i) == kPasses);
  CHECK(yielder.wait_for(3, executable));
}

TEST_CASE("kernel, warps: collective calls tell each lane what plain loops say") {
  FLYWHEEL_TEST_SEED(seed);
  constexpr std::uint32_t kTasks = 40, kPasses = 2;
  Runtime runtime = start_emulated<WarpCollectives>(emulated_options());
  Buffer<std::uint64_t> out = runtime.allocate<std::uint64_t>(kTasks * kPasses * 32);
  Graph graph;
  std::vector<Collectives> calls;
  for (std::uint32_t t = 0; t < kTasks; ++t) {
    const std::uint64_t own = mix(seed, t);
    calls.push_back({out.data() + t * kPasses * 32, own, static_cast<int>(own % 30)});
    graph.add(WarpCollectives{calls.back()});
  }
  for (const bool plan : {true, false}) {
    out.write(std::vector<std::uint64_t>(out.size()));
    runtime.submit(plan ? runtime.load(graph, compiled) : runtime.load(graph), repeat(kPasses)).wait();
    const std::vector<std::uint64_t> told = out.read();
    const CollectiveOracle oracle(32, 32);
    for (std::uint32_t t = 0; t < kTasks; ++t)
      for (std::uint32_t pass = 0; pass < kPasses; ++pass) {
        const auto first = told.begin() + (t * kPasses + pass) * 32;
        REQUIRE(std::vector<std::uint64_t>(first, first + 32) == oracle.calls(mix(calls[t].seed, pass), calls[t].calls));
      }
  }
}
