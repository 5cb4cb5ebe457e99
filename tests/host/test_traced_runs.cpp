// Traced runs of dynamic and phased graphs and traced batches, on CPU workers.
#include "support/traced_runs.hpp"

#include <thread>

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options tracing(std::uint32_t events = 4096) {
  Options options = on_cpu(3);
  options.trace_events = events;
  return options;
}

struct TracedRunsFixture {
  Bench bench{tracing(), 1024};
};

}  // namespace

TEST_CASE_METHOD(TracedRunsFixture, "traced: random dynamic graphs, one span for each task and pass") {
  check_traced_graphs(bench, 30);
}
TEST_CASE_METHOD(TracedRunsFixture, "traced: runs of a chain") { check_traced_followers(bench, 40); }
TEST_CASE_METHOD(TracedRunsFixture, "traced: spawned tasks have their type") { check_traced_spawns(bench); }
TEST_CASE_METHOD(TracedRunsFixture, "traced: phases and their meetings") { check_traced_phases(bench); }
TEST_CASE_METHOD(TracedRunsFixture, "traced: grid tasks and the meetings in them") { check_traced_grid(bench); }
TEST_CASE_METHOD(TracedRunsFixture, "traced: batches") { check_traced_batches(bench); }
TEST_CASE_METHOD(TracedRunsFixture, "traced: batches of several types") { check_traced_mixed_batches(bench); }
TEST_CASE_METHOD(TracedRunsFixture, "traced: runs that fail or are cancelled") { check_traced_failures(bench); }
TEST_CASE_METHOD(TracedRunsFixture, "traced: stop()") { check_traced_stop(bench); }
TEST_CASE_METHOD(TracedRunsFixture, "traced: one after the other, whatever their kind") { check_traced_in_turn(bench); }
TEST_CASE_METHOD(TracedRunsFixture, "traced: over several launches") { check_traced_over_launches(bench); }
TEST_CASE("traced: events there was no room for, of dynamic runs") {
  Bench bench(tracing(8));
  check_traced_drops(bench);
}

TEST_CASE_METHOD(TracedRunsFixture, "traced: many threads submit, and each sees its own") {
  Graph graph;
  const auto first = graph.add(Count{bench.at(0)});
  for (int i = 0; i < 5; ++i) graph.add(Count{bench.at(0)}, after(first));
  const Executable executable = bench.runtime.load(graph);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 30; ++i) {
        const std::uint32_t passes = 1 + (t + i) % 3;
        Run plain = bench.runtime.submit(executable), run = bench.runtime.submit(executable, traced, repeat(passes));
        wrong += bodies_in(run.trace()).size() != 6 * passes;
        wrong += !plain.trace().spans().empty();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE_METHOD(TracedRunsFixture, "traced: runs that are cancelled in the backlog keep no other from its trace") {
  Graph held, small;
  held.add(Gate{bench.at(0), bench.at(1)});
  small.add(Count{bench.at(2)});
  Run first = bench.runtime.submit(bench.runtime.load(held), traced);
  const Executable counter = bench.runtime.load(small);
  Run second = bench.runtime.submit(counter, traced), third = bench.runtime.submit(counter, traced);
  Batch<std::uint64_t> batch = bench.runtime.submit(squares_from(0, 700), traced);
  second.cancel();
  batch.cancel();
  CHECK(second.status() == Status::cancelled);
  CHECK(batch.status() == Status::cancelled);
  CHECK(second.trace().spans().empty());
  CHECK(batch.trace().spans().empty());
  CHECK_FALSE(third.done());
  Run beside = bench.runtime.submit(bench.counter(2));  // one that is not traced does not wait
  beside.wait();
  bench.put(1, 1);
  CHECK(bodies_in(first.trace()).size() == 1);
  CHECK(bodies_in(third.trace()).size() == 1);
}

TEST_CASE("traced: batches without room for a trace are refused with a remedy") {
  Bench bench(on_cpu());
  check_says(error_of<UsageError>([&] { bench.runtime.submit(squares_from(0, 3), traced); }), {"Options::trace_events"});
}
