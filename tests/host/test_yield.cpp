// The kernel gives the device back with its work kept: in turns, on demand, and for as long as a Pause lives.
#include "support/small_runtime.hpp"
#include "support/yields.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
#ifdef __SANITIZE_THREAD__
constexpr std::uint32_t kPasses = 300;  // more than 100 s of 1500 where four others want the same two processors
#else
constexpr std::uint32_t kPasses = 1500;
#endif

/// A compiled run without an end, which counts its passes in word 0; cancelled when this object goes.
class EndlessRuns {
 public:
  explicit EndlessRuns(Bench& bench) {
    Graph graph;
    graph.add(Count{bench.at(0)}, after(graph.add(Count{bench.at(1)})));
    run_ = bench.runtime.submit(bench.runtime.load(graph, compiled), repeat_until_stop());
  }
  ~EndlessRuns() { run_.cancel(); }
  Run& run() { return run_; }

 private:
  Run run_;
};
bool moves(Bench& bench) {
  const std::uint32_t before = bench.get(0);
  return eventually([&] { return bench.get(0) > before + 3; });
}
}  // namespace

TEST_CASE("yields: spawned tasks, parameters and streams survive") {
  for (const bool pauses : {false, true}) {
    Bench bench(on_cpu(3));
    check_yields_of_spawns(bench, 60, pauses);
  }
}

TEST_CASE("yields: roots and sinks of repeated runs survive") {
  Bench bench(on_cpu(3));
  check_yields_of_roots(bench, 300, 5);
}

TEST_CASE("yields: a compiled run goes on at its pass") {
  Bench bench(on_cpu(3));
  check_yields_of_compiled(bench, kPasses, 10);
}

TEST_CASE("yields: a phased run goes on at its phase") {
  Bench bench(on_cpu(3));
  check_yields_of_phases(bench, 500, 10);
}

TEST_CASE("yields: runs are cancelled whether the kernel is there or not") {
  Bench bench(on_cpu(3));
  check_cancels_beside_yields(bench, 20);
}

TEST_CASE("the kernel yields every Options::yield_every under work without an end, and not with 0") {
  for (const int every : {5, 0}) {
    Options options = on_cpu(2);
    options.tuning.cpu_yields = true;
    options.yield_every = std::chrono::milliseconds(every);
    Bench bench(options);
    EndlessRuns work(bench);
    REQUIRE(moves(bench));
    if (every) CHECK(eventually([&] { return bench.runtime.stats().yields >= 10; }));
    else std::this_thread::sleep_for(std::chrono::milliseconds(150));
    CHECK((bench.runtime.stats().yields > 0) == (every != 0));
    CHECK(moves(bench));
    work.run().cancel();
    CHECK(work.run().status() == Status::cancelled);
    CHECK(bench.get(0) == bench.get(1));
  }
}

TEST_CASE("CPU workers yield on demand alone") {
  Options options = on_cpu(2);
  options.yield_every = std::chrono::milliseconds(1);
  Bench bench(options);
  EndlessRuns work(bench);
  REQUIRE(moves(bench));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(bench.runtime.stats().yields == 0);
  bench.runtime.yield();
  CHECK(eventually([&] { return bench.runtime.stats().yields == 1; }));
  CHECK(moves(bench));
}

TEST_CASE("while a Pause lives nothing runs, submissions wait, and afterwards all goes on") {
  Bench bench(on_cpu(2));
  const Executable counter = bench.counter(2);
  EndlessRuns work(bench);
  REQUIRE(moves(bench));
  Run later;
  {
    Pause guard(bench.runtime);
    const Stats stats = bench.runtime.stats();
    CHECK(stats.launches == stats.parks);
    const std::uint32_t before = bench.get(0);
    later = bench.runtime.submit(counter);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK(bench.get(0) == before);
    CHECK_FALSE(later.done());
    CHECK(bench.runtime.stats().launches == stats.launches);
  }
  later.wait();
  CHECK(bench.get(2) == 1);
  CHECK(moves(bench));
}

TEST_CASE("more submissions than the inbox has entries wait for the end of a Pause") {
  Bench bench(on_cpu(2));
  const Executable counter = bench.counter(0);
  std::vector<Run> runs;
  {
    Pause guard(bench.runtime);
    for (int i = 0; i < 1000; ++i) runs.push_back(bench.runtime.submit(counter));
  }
  for (Run& run : runs) run.wait();
  CHECK(bench.get(0) == 1000);
}

TEST_CASE("pauses nest, and may come from several threads") {
  Bench bench(on_cpu(2));
  EndlessRuns work(bench);
  REQUIRE(moves(bench));
  std::vector<std::jthread> threads;
  std::atomic<std::uint32_t> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        Pause outer(bench.runtime);
        const std::uint32_t before = bench.get(0);
        { Pause inner(bench.runtime); }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        wrong += bench.get(0) != before;
      }
    });
  threads.clear();
  CHECK(wrong == 0);
  CHECK(moves(bench));
}

TEST_CASE("beside a task that does not end, the others go on: the suspension is called off") {
  Options options = on_cpu(3);
  options.tuning.yield_patience = std::chrono::milliseconds(5);
  Bench bench(options);
  Executable held;
  Run run = bench.hold(4, held);
  bench.runtime.yield();
  const Executable counter = bench.counter(0);
  for (std::uint32_t i = 1; i <= 200; ++i) {
    REQUIRE(bench.runtime.submit(counter).wait_for(std::chrono::seconds(20)));
    if (i % 10 == 0) bench.runtime.yield();
  }
  CHECK(bench.get(0) == 200);
  CHECK(bench.runtime.stats().yields == 0);
  bench.put(5, 1);
  run.wait();
  CHECK(eventually([&] {
    bench.runtime.submit(counter).wait();
    return bench.runtime.stats().yields > 0;
  }));
}

TEST_CASE("a Pause waits for a task, and says so if that takes too long") {
  Options options = on_cpu(2);
  options.shutdown_timeout = std::chrono::milliseconds(500);
  Bench bench(options);
  Executable held;
  Run run = bench.hold(0, held);
  check_says(error_of<DeviceError>([&] { Pause guard(bench.runtime); }),
             {"did not end within Options::shutdown_timeout, 500 ms"});
  bench.put(1, 1);
  run.wait();
  { Pause guard(bench.runtime); }
  bench.runtime.submit(bench.counter(2)).wait();
  CHECK(bench.get(2) == 1);
}

TEST_CASE("memory is taken from the device beside a run without an end") {
  Bench bench(on_cpu(2));
  EndlessRuns work(bench);
  REQUIRE(moves(bench));
  CHECK(bench.runtime.allocate<std::uint32_t>(std::size_t{64} << 20).size() == std::size_t{64} << 20);
  CHECK(moves(bench));
}

TEST_CASE("memory is taken and graphs are loaded while a Pause lives") {
  Bench bench(on_cpu(2));
  EndlessRuns work(bench);
  REQUIRE(moves(bench));
  Pause guard(bench.runtime);
  const Buffer<std::uint32_t> much = bench.runtime.allocate<std::uint32_t>(std::size_t{64} << 20);
  CHECK(much.size() == std::size_t{64} << 20);
  bench.counter(3);
}

TEST_CASE("a runtime ends while it yields, and while a Pause lives") {
  for (const bool paused : {false, true}) {
    Options options = on_cpu(2);
    options.shutdown_timeout = std::chrono::milliseconds(200);
    auto bench = std::make_unique<Bench>(options);
    EndlessRuns work(*bench);
    REQUIRE(moves(*bench));
    std::optional<Pause> guard;
    std::optional<Yielder> yielder;
    if (paused) guard.emplace(bench->runtime);
    else yielder.emplace(bench->runtime);
    bench->runtime.shutdown();
    CHECK((work.run().status() == Status::aborted || work.run().status() == Status::cancelled));
    check_says(error_of<UsageError>([&] { EndlessRuns again(*bench); }), {"shut down"});
    yielder.reset();
  }
}

TEST_CASE("drain mode knows pauses, and yields nothing") {
  Options options = on_cpu(2);
  options.mode = Mode::drain;
  Bench bench(options);
  const Executable counter = bench.counter(0);
  bench.runtime.yield();
  Run run;
  {
    Pause guard(bench.runtime);
    run = bench.runtime.submit(counter);
    CHECK_FALSE(run.wait_for(std::chrono::milliseconds(20)));
  }
  run.wait();
  bench.runtime.submit(counter).wait();
  CHECK(bench.get(0) == 2);
  CHECK(bench.runtime.stats().yields == 0);
}
