#include "host/api/runtime.hpp"
#include "support/internals.hpp"

#include <atomic>
#include <functional>

#include "support/child.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options quiet(std::uint32_t workers = 2) {
  Options options = on_cpu(workers);
  options.log_level = "off";
  options.shutdown_timeout = std::chrono::milliseconds(200);
  return options;
}

}  // namespace

TEST_CASE("what a program cannot use says so") {
  Bench bench(on_cpu()), other(on_cpu());
  const Executable foreign = other.counter(0);
  check_says(error_of<UsageError>([&] { bench.runtime.submit(foreign); }), {"another runtime", "load the graph here"});
  check_says(error_of<UsageError>([&] { bench.runtime.submit(Executable()); }), {"Executable is empty", "Runtime::load()"});
  check_says(error_of<UsageError>([&] { bench.runtime.try_submit(Executable()); }), {"Executable is empty"});
  Run empty;
  check_says(error_of<UsageError>([&] { empty.wait(); }), {"Run is empty", "Runtime::submit()"});
  check_says(error_of<UsageError>([&] { empty.done(); }), {"Run is empty"});
  check_says(error_of<UsageError>([&] { empty.cancel(); }), {"Run is empty"});
  check_says(error_of<UsageError>([&] { empty.status(); }), {"Run is empty"});
  check_says(error_of<UsageError>([&] { empty.iterations(); }), {"Run is empty"});
  check_says(error_of<UsageError>([&] { empty.next<int>(); }), {"Run is empty"});
  check_says(error_of<UsageError>([&] { empty.wait_for(std::chrono::seconds(1)); }), {"Run is empty"});
  check_says(error_of<UsageError>([&] { bench.runtime.submit_after(nullptr, bench.counter(0)); }),
             {"CUDA streams", "Target::gpu"});
  Run run = bench.runtime.submit(bench.counter(0));
  check_says(error_of<UsageError>([&] { run.let_stream_wait(nullptr); }), {"CUDA streams", "Target::gpu"});
}

TEST_CASE("after shutdown() nothing more is accepted, and what there was can still be read") {
  Bench bench(on_cpu());
  Graph graph;
  const auto square = graph.add(Square{9});
  const Executable executable = bench.runtime.load(graph);
  Run run = bench.runtime.submit(executable);
  bench.runtime.shutdown();
  CHECK(run.get(square) == 81);
  check_says(error_of<UsageError>([&] { bench.runtime.submit(executable); }), {"cannot submit", "shut down"});
  check_says(error_of<UsageError>([&] { bench.runtime.try_submit(executable); }), {"cannot submit", "shut down"});
  bench.runtime.shutdown();
  CHECK(bench.get(0) == 0);
}

TEST_CASE("shutdown() waits for runs in flight and in line") {
  Options options = on_cpu();
  options.overlap = 1;
  Bench bench(options);
  const Executable counter = bench.counter(0);
  std::vector<Run> runs;
  for (int i = 0; i < 200; ++i) runs.push_back(bench.runtime.submit(counter));
  bench.runtime.shutdown();
  CHECK(bench.get(0) == 200);
  for (Run& run : runs) CHECK(run.status() == Status::ok);
}

TEST_CASE("shutdown() cancels what does not end in time") {
  Options options = quiet();
  options.overlap = 1;
  Bench bench(options);
  Executable held;
  Run live = bench.hold(0, held);
  Run waiting = bench.runtime.submit(held);
  const auto begin = std::chrono::steady_clock::now();
  bench.runtime.shutdown();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  CHECK(live.status() != Status::ok);
  CHECK(waiting.status() == Status::aborted);
  check_says(error_of<RunError>([&] { waiting.wait(); }), {"shut down", "wait for runs before shutdown()"});
  CHECK(bench.get(0) == 1);
}

TEST_CASE("child: a task that ignores cancellation", "[.child]") {
  {
    Bench bench(quiet());
    Graph graph;
    graph.add(Deaf{bench.at(0), bench.at(1)});
    Run run = bench.runtime.submit(bench.runtime.load(graph));
    REQUIRE(eventually([&] { return bench.get(0) == 1; }));
    bench.runtime.shutdown();
    CHECK(run.status() == Status::aborted);
  }
  std::puts("the runtime is gone");
}

TEST_CASE("a task that ignores cancellation holds up neither shutdown() nor the end of the process") {
  const ChildResult result = run_child("child: a task that ignores cancellation", std::chrono::seconds(30));
  check_child(result);
  check_says(result.output, {"the runtime is gone"});
  CHECK(result.seconds < 10);
}

TEST_CASE("child: a fork that ends by itself", "[.child]") {
  auto runtime = std::make_unique<Runtime>(small_runtime(quiet()));
  auto gone = std::make_unique<Runtime>(small_runtime(quiet()));
  auto buffer = std::make_unique<Buffer<std::uint32_t>>(gone->allocate<std::uint32_t>(1));
  gone.reset();
  {
    Graph graph;
    graph.add(Square{2});
    runtime->submit(runtime->load(graph)).wait();
  }
  const pid_t child = fork();
  runtime.reset();
  buffer.reset();
  if (child == 0) _exit(7);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WEXITSTATUS(status) == 7);
  std::puts("both are gone");
}

TEST_CASE("a child of fork() leaves the parent's runtimes alone") {
  const ChildResult result = run_child("child: a fork that ends by itself", std::chrono::seconds(30));
  check_child(result);
  check_says(result.output, {"both are gone"});
}

TEST_CASE("handles may outlive their runtime") {
  Run run;
  TaskRef<std::uint64_t> square{};
  Executable executable;
  Buffer<std::uint32_t> buffer;
  {
    Runtime runtime = small_runtime(on_cpu());
    Graph graph;
    square = graph.add(Square{4});
    executable = runtime.load(graph);
    run = runtime.submit(executable);
    buffer = runtime.upload(std::vector<std::uint32_t>{1, 2, 3});
  }
  CHECK(run.get(square) == 16);
  CHECK(buffer.read()[2] == 3);
  CHECK(executable.size() == 1);
}

TEST_CASE("a moved runtime goes on where it was") {
  Bench bench(on_cpu());
  const Executable counter = bench.counter(0);
  Runtime moved = std::move(bench.runtime);
  moved.submit(counter).wait();
  CHECK(moved.stats().completed == 1);
  for (const auto& use : std::vector<std::function<void(Runtime&)>>{
           [&](Runtime& r) { r.submit(counter); }, [](Runtime& r) { r.load(Graph()); }, [](Runtime& r) { r.allocate<int>(1); },
           [](Runtime& r) { r.upload(std::vector<int>{1}); }, [](Runtime& r) { r.stats(); }, [](Runtime& r) { r.workers(); },
           [](Runtime& r) { r.device(); }, [](Runtime& r) { r.on_gpu(); }, [](Runtime& r) { r.shutdown(); }})
    check_says(error_of<UsageError>([&] { use(bench.runtime); }), {"moved from", "moved to"});
}

TEST_CASE("many threads submit, load and wait at once") {
  Options options = on_cpu(3);
  options.max_runs = 8;
  Bench bench(options);
  const Executable shared = bench.counter(0);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint32_t t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 150; ++i) {
        Graph graph;
        const auto square = graph.add(Square{t * 1000 + i});
        Run own = bench.runtime.submit(bench.runtime.load(graph));
        Run common = bench.runtime.submit(shared);
        wrong += own.get(square) != std::uint64_t{t * 1000 + i} * (t * 1000 + i);
        if (i % 3 == 0) common.wait();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(eventually([&] { return bench.runtime.stats().completed == 1800; }));
  CHECK(bench.get(0) == 900);
}

TEST_CASE("the counters add up") {
  Options options = on_cpu(2);
  options.park_after = std::chrono::milliseconds(1);
  Bench bench(options);
  Graph graph;
  const auto fail = graph.add(Fail{1, 0});
  std::vector<TaskRef<>> skipped;
  for (int i = 0; i < 5; ++i) graph.add(Count{bench.at(0)}, after(fail));
  for (int i = 0; i < 14; ++i) graph.add(Count{bench.at(1)});
  const Executable executable = bench.runtime.load(graph);
  for (int i = 0; i < 10; ++i) bench.runtime.submit(executable).wait_for(std::chrono::seconds(20));
  REQUIRE(eventually([&] { return bench.runtime.stats().parks == bench.runtime.stats().launches; }));
  REQUIRE(eventually([&] { return bench.runtime.stats().tasks == 150; }));  // written when a worker is idle
  const Stats stats = bench.runtime.stats();
  CHECK(stats.tasks == 150);
  CHECK(stats.skipped == 50);
  CHECK(stats.submitted == 10);
  CHECK(stats.completed == 10);
  CHECK(stats.direct <= 10);
  CHECK(stats.peak_live >= 1);
  CHECK(stats.workers == 2);
  CHECK(stats.device == "CPU, 2 workers");
  CHECK(stats.idle_polls > 0);
  CHECK(stats.kept + stats.handed + stats.queued > 0);
  CHECK(bench.get(1) == 140);
}

TEST_CASE("stats() may be read at any time") {
  Bench bench(on_cpu(2));
  Run run = bench.runtime.submit(bench.counter(0), repeat(20'000));
  std::uint64_t before = 0;
  while (!run.done()) {
    const std::uint64_t now = bench.runtime.stats().tasks;
    CHECK(now >= before);
    before = now;
  }
  CHECK(run.status() == Status::ok);
}
