// Programs whose kernel is suspended again and again while they run, for CPU workers and for the emulated GPU. `Bench` has a
// runtime and words, as in small_runtime.hpp.
#pragma once

#include <atomic>
#include <thread>

#include "support/expect.hpp"
#include "support/small_tasks.hpp"

namespace flywheel::testing {

/// Yields, or pauses, again and again, as long as it lives.
class Yielder {
 public:
  explicit Yielder(Runtime& runtime, bool pauses = false, std::chrono::microseconds every = std::chrono::microseconds(300))
      : runtime_(runtime),
        before_(runtime.stats().yields),
        thread_([&runtime, pauses, every](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            if (pauses) Pause guard(runtime);
            else runtime.yield();
            std::this_thread::sleep_for(every);
          }
        }) {}
  /// Runs the graph until the kernel has yielded `count` times since the begin.
  bool wait_for(std::uint64_t count, const Executable& executable) {
    return eventually([&] {
      runtime_.submit(executable).status();
      return runtime_.stats().yields >= before_ + count;
    });
  }

 private:
  Runtime& runtime_;
  std::uint64_t before_;
  std::jthread thread_;
};

/// Tasks that spawn tasks, and values that they stream: none is lost, none comes twice.
template <class Bench>
void check_yields_of_spawns(Bench& bench, std::uint32_t rounds, bool pauses) {
  const Buffer<std::uint64_t> sum = bench.runtime.template allocate<std::uint64_t>(1);
  Graph graph;
  const auto param = graph.param<std::uint64_t>(5);
  const auto read = graph.add(Read{param}, after(graph.add(Fibonacci{11, sum.data(), bench.at(0)})));
  graph.add(EmitRange{0, 10}, after(read));
  const Executable executable = bench.runtime.load(graph);
  Yielder yielder(bench.runtime, pauses);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    Run run = bench.runtime.submit(executable, set(param, round));
    for (std::uint32_t i = 0; i < 10; ++i) REQUIRE(run.template next<std::uint32_t>() == i);
    CHECK(run.get(read) == round);
    CHECK(sum.read()[0] == round * Fibonacci::value(11));
  }
  CHECK(yielder.wait_for(5, executable));
}

/// Many roots and many sinks, repeated: the counts of what is left survive.
template <class Bench>
void check_yields_of_roots(Bench& bench, std::uint32_t passes, std::uint32_t yields) {
  constexpr std::uint32_t kTasks = 200;
  Graph graph;
  for (std::uint32_t i = 0; i < kTasks; ++i) graph.add(Count{bench.at(0)});
  const Executable executable = bench.runtime.load(graph);
  Run runs[] = {bench.runtime.submit(executable, repeat(passes)), bench.runtime.submit(executable, repeat(passes))};
  Yielder yielder(bench.runtime);
  for (Run& run : runs) CHECK(run.iterations() == passes);
  CHECK(bench.get(0) == 2 * kTasks * passes);
  CHECK(yielder.wait_for(yields, executable));
}

/// A compiled run over many suspensions: every task runs once in each pass, streams keep their order, stop() is heard.
template <class Bench>
void check_yields_of_compiled(Bench& bench, std::uint32_t passes, std::uint32_t yields) {
  constexpr std::uint32_t kWidth = 7;
  Graph graph;
  const auto first = graph.add(EmitRange{0, 1});
  std::vector<TaskRef<>> middle;
  for (std::uint32_t i = 0; i < kWidth; ++i) middle.push_back(graph.add(Count{bench.at(i)}, after(first)));
  const auto last = graph.add(Count{bench.at(kWidth)});
  for (const TaskRef<>& task : middle) graph.edge(task, last);
  graph.add(StopAt{passes - 1});
  const Executable executable = bench.runtime.load(graph, compiled);
  Yielder yielder(bench.runtime);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    Run run = bench.runtime.submit(executable, repeat_until_stop());
    for (std::uint32_t i = 0; i < passes; ++i) REQUIRE(run.template next<std::uint32_t>() == i);
    CHECK(run.iterations() == passes);
    for (std::uint32_t i = 0; i <= kWidth; ++i) CHECK(bench.get(i) == passes * round);
    CHECK(bench.runtime.submit(executable, repeat(5)).iterations() == 5);
    for (std::uint32_t i = 0; i <= kWidth; ++i) bench.put(i, passes * round);
  }
  CHECK(yielder.wait_for(yields, executable));
}

/// A phased run: tasks of a phase see those of the phase before, grid tasks meet, stop() is heard after its pass.
template <class Bench>
void check_yields_of_phases(Bench& bench, std::uint32_t passes, std::uint32_t yields) {
  const std::uint32_t workers = bench.runtime.workers();
  Graph graph;
  for (std::uint32_t i = 0; i < 5; ++i) graph.add(Count{bench.at(0)});
  graph.add(StopAt{passes - 1});
  graph.phase();
  graph.add_grid(Rounds{bench.at(8), bench.at(1), 2});
  graph.phase();
  for (std::uint32_t i = 0; i < 2 * workers; ++i) graph.add(Count{bench.at(3)});
  const Executable executable = bench.runtime.load(graph);
  Yielder yielder(bench.runtime);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    CHECK(bench.runtime.submit(executable, repeat_until_stop()).iterations() == passes);
    CHECK(bench.get(0) == 5 * passes * round);
    CHECK(bench.get(1) == 0);
    CHECK(bench.get(2) == 2 * passes * round);
    CHECK(bench.get(3) == 2 * workers * passes * round);
  }
  CHECK(yielder.wait_for(yields, executable));
}

/// Endless runs that are cancelled while the kernel comes and goes.
template <class Bench>
void check_cancels_beside_yields(Bench& bench, std::uint32_t rounds) {
  Graph dynamic, in_phases, planned;
  dynamic.add(Count{bench.at(0)}, after(dynamic.add(Count{bench.at(0)})));
  in_phases.add(Count{bench.at(1)});
  in_phases.phase();
  in_phases.add(Count{bench.at(1)});
  planned.add(Count{bench.at(2)}, after(planned.add(Count{bench.at(2)})));
  const Executable executables[] = {bench.runtime.load(dynamic), bench.runtime.load(in_phases),
                                    bench.runtime.load(planned, compiled)};
  Yielder yielder(bench.runtime);
  for (std::uint32_t round = 0; round < rounds; ++round)
    for (std::uint32_t i = 0; i < 3; ++i) {
      const std::uint32_t before = bench.get(i);
      Run run = bench.runtime.submit(executables[i], repeat_until_stop());
      REQUIRE(eventually([&] { return bench.get(i) > before + 10; }));
      run.cancel();
      CHECK(run.status() == Status::cancelled);
    }
}

}  // namespace flywheel::testing
