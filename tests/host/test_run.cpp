#include "host/futures/run.hpp"
#include "support/internals.hpp"

#include <thread>

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
Bench& run_bench() {
  static Bench shared(on_cpu());
  return shared;
}
}  // namespace

TEST_CASE("wait_for() gives up in time and does not disturb the run") {
  Executable held;
  Run run = run_bench().hold(0, held);
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(run.wait_for(std::chrono::milliseconds(30)));
  const auto waited = std::chrono::steady_clock::now() - begin;
  CHECK(waited >= std::chrono::milliseconds(30));
  CHECK(waited < std::chrono::seconds(5));
  CHECK_FALSE(run.wait_for(std::chrono::nanoseconds(0)));
  CHECK_FALSE(run.done());
  run_bench().put(1, 1);
  CHECK(run.wait_for(std::chrono::seconds(20)));
  CHECK(run.done());
  CHECK(run.status() == Status::ok);
  CHECK(run.iterations() == 1);
}

TEST_CASE("wait_for() with the longest time waits for the end") {
  Executable held;
  Run run = run_bench().hold(2, held);
  std::thread opens([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    run_bench().put(3, 1);
  });
  CHECK(run.wait_for(std::chrono::nanoseconds::max()));
  opens.join();
  CHECK(run.status() == Status::ok);
}

TEST_CASE("a result of another graph is refused") {
  Graph one, other;
  const auto mine = one.add(Square{5});
  const auto theirs = other.add(Square{6});
  Run run = run_bench().runtime.submit(run_bench().runtime.load(one));
  CHECK(run.get(mine) == 25);
  check_says(error_of<UsageError>([&] { run.get(theirs); }), {"another graph", "the run of that graph"});
}

TEST_CASE("results of many types and sizes do not overlap") {
  Graph graph;
  std::vector<TaskRef<std::uint64_t>> wide;
  std::vector<TaskRef<std::uint32_t>> narrow;
  run_bench().put(10, 4711);
  for (std::uint32_t i = 0; i < 100; ++i) {
    narrow.push_back(graph.add(Load{run_bench().at(10)}));
    wide.push_back(graph.add(Square{i}));
  }
  Run run = run_bench().runtime.submit(run_bench().runtime.load(graph));
  for (std::uint32_t i = 0; i < 100; ++i) {
    CHECK(run.get(wide[i]) == std::uint64_t{i} * i);
    CHECK(run.get(narrow[i]) == 4711);
  }
}

TEST_CASE("a task's own code comes back with the task's name") {
  Graph graph;
  graph.add(Square{1});
  const auto fail = graph.add(Fail{77, 0});
  const auto after_it = graph.add(Square{2}, after(fail));
  Run run = run_bench().runtime.submit(run_bench().runtime.load(graph));
  CHECK(run.status() == Status::task_failed);
  try {
    run.wait();
    FAIL("wait() must throw");
  } catch (const RunError& error) {
    CHECK(error.status() == Status::task_failed);
    CHECK(error.user_code() == 77);
    check_says(error.what(), {"77", "task 1 (flywheel::testing::Fail)", "Remedy: "});
  }
  CHECK(error_of<RunError>([&] { run.get(after_it); }) != "");
  CHECK(run.wait_for(std::chrono::seconds(1)));  // does not throw
}

TEST_CASE("code 0 and the largest code are codes like others") {
  for (const std::uint32_t code : {0u, kMostUserCode}) {
    Graph graph;
    graph.add(Fail{code, 0});
    Run run = run_bench().runtime.submit(run_bench().runtime.load(graph));
    try {
      run.wait();
      FAIL("wait() must throw");
    } catch (const RunError& error) {
      CHECK(error.status() == Status::task_failed);
      CHECK(error.user_code() == code);
    }
  }
}

TEST_CASE("codes beyond the largest, as negative ones are, read as that, and not as the library's own") {
  for (const int code : {-1, -22, -57, -64}) {
    Graph graph;
    graph.add(Fail{static_cast<std::uint32_t>(code), 0});
    Run run = run_bench().runtime.submit(run_bench().runtime.load(graph));
    CHECK(run.status() == Status::task_failed);
    check_says(error_of<RunError>([&] { run.wait(); }), {"its own code, " + std::to_string(kMostUserCode), "task 0"});
  }
}

TEST_CASE("scratch that does not fit fails the task and names the option") {
  Graph graph;
  const auto fits = graph.add(Reduce{100});
  const auto too_much = graph.add(Reduce{1 << 20});
  Run run = run_bench().runtime.submit(run_bench().runtime.load(graph));
  check_says(error_of<RunError>([&] { run.get(fits); }), {"Options::scratch_bytes", "task 1 (flywheel::testing::Reduce)"});
  CHECK(run.status() == Status::scratch_exhausted);
  (void)too_much;
}

TEST_CASE("copies of a Run share it, and dropping all of them does not stop it") {
  const std::uint32_t before = run_bench().get(20);
  {
    Executable counter = run_bench().counter(20);
    Run run = run_bench().runtime.submit(counter, repeat(100));
    Run copy = run;
    copy.wait();
    CHECK(run.done());
    run_bench().runtime.submit(counter, repeat(100));
  }
  CHECK(eventually([&] { return run_bench().get(20) == before + 200; }));
}

TEST_CASE("parameters: the default, a value for one run, and none of another graph") {
  Graph graph;
  const auto first = graph.param<std::uint64_t>(5), second = graph.param<std::uint64_t>(6);
  const auto a = graph.add(Read{first}), b = graph.add(Read{second});
  const Executable executable = run_bench().runtime.load(graph);
  Run plain = run_bench().runtime.submit(executable), given = run_bench().runtime.submit(executable, set(second, 60));
  CHECK(plain.get(a) == 5);
  CHECK(plain.get(b) == 6);
  CHECK(given.get(a) == 5);
  CHECK(given.get(b) == 60);
  Graph other;
  const auto stranger = other.param<std::uint64_t>(7), late = graph.param<std::uint64_t>(8);
  check_says(error_of<UsageError>([&] { run_bench().runtime.submit(executable, set(stranger, 1)); }),
             {"set()", "another graph", "Graph::param()"});
  check_says(error_of<UsageError>([&] { run_bench().runtime.submit(executable, set(late, 1)); }),
             {"set()", "added after load()", "load the graph again"});
}

TEST_CASE("the result of a task that the executable has not") {
  Graph graph, other;
  graph.add(Square{2});
  const auto stranger = other.add(Square{3});
  const Executable executable = run_bench().runtime.load(graph);
  const auto late = graph.add(Square{4});
  Run run = run_bench().runtime.submit(executable);
  check_says(error_of<UsageError>([&] { run.get(stranger); }), {"another graph", "ask the run of that graph"});
  check_says(error_of<UsageError>([&] { run.get(late); }), {"added after load()", "load the graph again"});
}

TEST_CASE("repeat(n) and repeat_until_stop() count the passes") {
  Graph graph;
  const auto first = graph.add(Count{run_bench().at(21)});
  graph.add(StopAt{6}, after(first));
  const Executable executable = run_bench().runtime.load(graph);
  CHECK(run_bench().runtime.submit(executable, repeat(5)).iterations() == 5);
  CHECK(run_bench().runtime.submit(executable, repeat_until_stop()).iterations() == 7);
  CHECK(run_bench().runtime.submit(executable, repeat_until_stop(3)).iterations() == 3);
  CHECK(run_bench().get(21) == 15);
  Graph failing;
  failing.add(Fail{1, 4});
  Run run = run_bench().runtime.submit(run_bench().runtime.load(failing), repeat(100));
  CHECK(run.status() == Status::task_failed);
  CHECK(run.iterations() == 4);
  check_says(error_of<UsageError>([&] { run_bench().runtime.submit(executable, repeat(0)); }), {"repeat(0)"});
}

TEST_CASE("of several threads that wait for a run one takes its outcome, all see it, and its slot is free once") {
  Options options = on_cpu();
  options.max_runs = 2;
  Bench narrow(options);
  Graph graph;
  const TaskRef<std::uint64_t> square = graph.add(Square{7});
  const Executable executable = narrow.runtime.load(graph);
  for (int round = 0; round < 300; ++round) {
    Run run = narrow.runtime.submit(executable);
    std::uint64_t got[3] = {};
    const auto wait = [&](int t, Run mine) { got[t] = mine.get(square); };
    std::thread others[] = {std::thread(wait, 1, run), std::thread(wait, 2, run)};
    wait(0, run);
    for (std::thread& other : others) other.join();
    for (const std::uint64_t value : got) REQUIRE(value == 49);
  }
  const auto all_done = [&] {
    const Stats stats = narrow.runtime.stats();
    return stats.submitted == 300 && stats.completed == 300;
  };
  CHECK(eventually(all_done));
}
