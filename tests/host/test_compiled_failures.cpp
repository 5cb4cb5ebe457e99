// Compiled runs that fail, are cancelled or stall, on CPU workers: nothing that depends on what was lost
// runs, other runs go on, and the next run of the same executable is right.
#include <thread>

#include "support/seed.hpp"
#include "support/small_runtime.hpp"

#include "host/plan/schedule.hpp"
#include "support/internals.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct FailingFixture {
  Bench bench{on_cpu(4), 64};
  Executable load(const Graph& graph) { return bench.runtime.load(graph, compiled); }
};

/// Stops when it is told to, as a well-behaved long body does.
struct Patient {
  std::uint32_t* entered;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    add_to(*entered, 1u);
    while (!block.cancelled()) {}
  }
};

}  // namespace

TEST_CASE_METHOD(FailingFixture, "compiled: what depends on a failed task never runs, and the next run is clean") {
  for (const std::uint32_t failing_pass : {0u, 1u, 2u, 3u}) {
    Graph graph;
    const auto bad = graph.add(Fail{7, failing_pass});
    const auto next = graph.add(Count{bench.at(0)}, after(bad));
    graph.add(Count{bench.at(1)}, after(next));
    bench.put(0, 0), bench.put(1, 0);
    const Executable executable = load(graph);
    std::uint32_t passes = 0;
    for (std::uint32_t i = 1; i <= 10; ++i) {
      Run run = bench.runtime.submit(executable, repeat(4));
      CHECK(run.status() == Status::task_failed);
      CHECK(run.iterations() == failing_pass);
      check_says(error_of<RunError>([&] { run.wait(); }), {"7", "task 0 (flywheel::testing::Fail)"});
      passes += failing_pass;
      if (failing_pass) {
        CHECK(bench.runtime.submit(executable, repeat(failing_pass)).status() == Status::ok);
        passes += failing_pass;
      }
      CHECK(bench.get(0) == passes);
      CHECK(bench.get(1) == passes);
    }
  }
}

TEST_CASE_METHOD(FailingFixture, "compiled: a failing sink, alone and among many") {
  for (const std::uint32_t others : {0u, 1u, 50u}) {
    Graph graph;
    graph.add(Fail{3, 2});
    for (std::uint32_t i = 0; i < others; ++i) graph.add(Count{bench.at(0)});
    const Executable executable = load(graph);
    for (int i = 0; i < 10; ++i) {
      Run run = bench.runtime.submit(executable, repeat_until_stop());
      CHECK(run.status() == Status::task_failed);
      CHECK(run.iterations() == 2);
    }
  }
}

// Which tasks share a worker, and which waits were left out because of that, must not matter.
TEST_CASE_METHOD(FailingFixture, "compiled: a failure reaches what depends on it through every placement") {
  constexpr std::uint32_t kTasks = 8, kWorkers = 4;
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 150; ++round) {
    Graph graph;
    std::vector<TaskRef<>> tasks;
    std::vector<bool> dead;
    const std::uint32_t bad = pick(random, 0, kTasks / 2);
    for (std::uint32_t i = 0; i < kTasks; ++i) {
      tasks.push_back(i == bad ? graph.add(Fail{1, 1}) : graph.add(Count{bench.at(i)}));
      dead.push_back(i == bad);
      graph.place(tasks.back(), pick(random, 0, kWorkers - 1));
      for (std::uint32_t before = 0; before < i; ++before) {
        if (pick(random, 0, 2)) continue;
        graph.edge(tasks[before], tasks[i]);
        if (dead[before]) dead[i] = true;
      }
      bench.put(i, 0);
    }
    const Executable executable = load(graph);
    CHECK(bench.runtime.submit(executable, repeat(3)).status() == Status::task_failed);
    for (std::uint32_t i = 0; i < kTasks; ++i)
      if (i != bad) CHECK(bench.get(i) <= (dead[i] ? 1u : 2u));
    CHECK(bench.runtime.submit(executable).status() == Status::ok);
  }
}

TEST_CASE_METHOD(FailingFixture, "compiled: a failure behind more waits than an instruction holds") {
  constexpr std::uint32_t kBefore = 30;
  for (const std::uint32_t bad : {0u, 11u, 12u, 20u, 29u}) {
    Graph graph;
    const auto last = graph.add(Count{bench.at(2)});
    for (std::uint32_t i = 0; i < kBefore; ++i) {
      const auto before = i == bad ? graph.add(Fail{9, 1}) : graph.add(Count{bench.at(0)});
      graph.edge(before, last);
      graph.edge(before, graph.add(Count{bench.at(1)}));  // so that no two have the same successors
    }
    bench.put(2, 0);
    const Executable executable = load(graph);
    for (std::uint32_t i = 1; i <= 5; ++i) {
      CHECK(bench.runtime.submit(executable, repeat(3)).status() == Status::task_failed);
      CHECK(bench.get(2) == i);
    }
  }
}

TEST_CASE_METHOD(FailingFixture, "compiled: more failures at once than a counter's field of them holds") {
  constexpr std::uint32_t kBefore = 66'000;
  Graph graph;
  const auto last = graph.add(Count{bench.at(0)});
  for (std::uint32_t i = 0; i < kBefore; ++i) graph.edge(graph.add(Fail{1, 1}), last);
  const Executable executable = load(graph);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    CHECK(bench.runtime.submit(executable, repeat(3)).status() == Status::task_failed);
    CHECK(bench.runtime.submit(executable).status() == Status::ok);
    CHECK(bench.get(0) == 2 * i);
  }
}

TEST_CASE_METHOD(FailingFixture, "compiled: other runs go on while one fails") {
  Graph graph, dynamic;
  const auto bad = graph.add(Fail{7, 1});
  for (int i = 0; i < 20; ++i) graph.add(Count{bench.at(0)}, after(bad));
  const auto first = dynamic.add(Count{bench.at(1)});
  dynamic.add(Count{bench.at(1)}, after(first));
  const Executable failing = load(graph), good = load(dynamic), fine = bench.runtime.load(dynamic);
  std::vector<Run> failed, well;
  for (int i = 0; i < 40; ++i) {
    failed.push_back(bench.runtime.submit(failing, repeat(3)));
    well.push_back(bench.runtime.submit(i % 2 ? good : fine));
  }
  for (Run& run : failed) CHECK(run.status() == Status::task_failed);
  for (Run& run : well) CHECK(run.status() == Status::ok);
  CHECK(bench.get(0) == 40 * 20);
  CHECK(bench.get(1) == 40 * 2);
}

TEST_CASE_METHOD(FailingFixture, "compiled: a cancelled repeat ends within a pass, and the next run is right") {
  Graph graph;
  const auto first = graph.add(Count{bench.at(0)});
  for (int i = 0; i < 7; ++i) graph.add(Count{bench.at(1)}, after(first));
  const Executable executable = load(graph);
  for (int i = 0; i < 30; ++i) {
    bench.put(0, 0), bench.put(1, 0);
    Run run = bench.runtime.submit(executable, repeat_until_stop());
    REQUIRE(eventually([&] { return bench.get(0) > 50; }));
    run.cancel();
    CHECK(run.status() == Status::cancelled);
    const std::uint32_t passes = bench.get(0);
    CHECK(bench.get(1) == 7 * passes);  // a pass that has begun is ended
    CHECK(passes == run.iterations() + 1);
    CHECK(bench.runtime.submit(executable, repeat(3)).iterations() == 3);
    CHECK(bench.get(1) == 7 * (passes + 3));
  }
}

TEST_CASE("compiled: a body that looks at block.cancelled() is let go, and what depends on it is skipped") {
  Runtime runtime = start<Patient, Count>(on_cpu(3));
  Buffer<std::uint32_t> words = runtime.allocate<std::uint32_t>(4);
  Graph graph;
  const auto patient = graph.add(Patient{words.data()});
  graph.add(Count{words.data() + 1}, after(patient));
  const Executable executable = runtime.load(graph, compiled);
  for (std::uint32_t i = 1; i <= 20; ++i) {
    Run run = runtime.submit(executable, repeat(5));
    REQUIRE(eventually([&] { return peek_at(*words.data()) == i; }));
    run.cancel();
    CHECK(run.status() == Status::cancelled);
    CHECK(run.iterations() == 0);
  }
  CHECK(words.read()[1] == 0);
}

TEST_CASE_METHOD(FailingFixture, "compiled: runs that wait in line are cancelled without starting") {
  Graph held, other;
  held.add(Gate{bench.at(0), bench.at(1)});
  other.add(Count{bench.at(2)});
  Run first = bench.runtime.submit(load(held));
  REQUIRE(eventually([&] { return bench.get(0) == 1; }));
  Run second = bench.runtime.submit(load(other)), third = bench.runtime.submit(load(other));
  second.cancel();
  CHECK(second.status() == Status::cancelled);
  CHECK_FALSE(third.done());
  bench.put(1, 1);
  first.wait();
  third.wait();
  CHECK(bench.get(2) == 1);
}

TEST_CASE_METHOD(FailingFixture, "compiled: a task that spawns fails, and says why") {
  Graph graph;
  graph.add(Count{bench.at(0)}, after(graph.add(TrySpawn{bench.at(1)})));
  Run run = bench.runtime.submit(load(graph));
  CHECK(run.status() == Status::spawn_in_phase);
  CHECK(bench.get(0) == 0);
  CHECK(bench.get(1) == 0);
}

TEST_CASE("compiled: a stalled task is named, its run fails, and other runs go on") {
  Options options = on_cpu(3);
  options.stall_limit = std::chrono::milliseconds(100);
  options.log_level = "off";
  Bench bench(options);
  const Executable counter = bench.counter(3);
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    Graph graph;
    graph.add(Square{1});
    const auto gate = graph.add(Gate{bench.at(0), bench.at(1)});
    graph.place(gate, worker);
    graph.place(graph.add(Count{bench.at(2)}, after(gate)), 0);
    Run run = bench.runtime.submit(bench.runtime.load(graph, compiled), repeat(2));
    CHECK(run.status() == Status::worker_stalled);
    check_says(error_of<RunError>([&] { run.wait(); }),
               {"Options::stall_limit", "task 1 (flywheel::testing::Gate)", "worker " + std::to_string(worker)});
    for (int i = 0; i < 5; ++i) bench.runtime.submit(counter).wait();
  }
  CHECK(bench.get(2) == 0);
  CHECK(bench.get(3) == 15);
}

namespace {
struct Rest {
  std::uint32_t* done;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    ++*done;
  }
};
}  // namespace

TEST_CASE("compiled: one wait may outlast every time limit, as long as others get on") {
  Options options = on_cpu(2);
  options.stall_limit = options.spin_budget = std::chrono::milliseconds(300);
  Runtime runtime = start<Rest>(options);
  const auto words = runtime.allocate<std::uint32_t>(2);
  Graph graph;
  auto last = graph.add(Rest{words.data()});
  graph.place(last, 0);
  for (int i = 0; i < 9; ++i) graph.place(last = graph.add(Rest{words.data()}, after(last)), 0);
  graph.place(graph.add(Rest{words.data() + 1}, after(last)), 1);
  runtime.submit(runtime.load(graph, compiled), repeat(2)).wait();
  CHECK(words.read() == std::vector<std::uint32_t>{20, 2});
}

TEST_CASE("compiled: shutdown ends a run that would go on for ever") {
  Options options = on_cpu(3);
  options.shutdown_timeout = std::chrono::milliseconds(200);
  Bench bench(options);
  Graph graph;
  graph.add(Count{bench.at(1)}, after(graph.add(Count{bench.at(0)})));
  Run run = bench.runtime.submit(bench.runtime.load(graph, compiled), repeat_until_stop());
  REQUIRE(eventually([&] { return bench.get(0) > 10; }));
  bench.runtime.shutdown();
  CHECK(run.done());
  CHECK(run.status() != Status::ok);
}
