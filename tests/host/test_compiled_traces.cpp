// Traced runs of compiled graphs on CPU workers.
#include <algorithm>
#include <set>

#include "support/compiled_mixes.hpp"
#include "support/small_runtime.hpp"

#include "host/plan/schedule.hpp"
#include "host/trace/trace.hpp"
#include "support/internals.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options tracing() {
  Options options = on_cpu(3);
  options.trace_events = 4096;
  return options;
}

/// Takes a while.
struct Slow {
  std::uint32_t us;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
    while (std::chrono::steady_clock::now() < end) {}
  }
};

struct TracedFixture {
  Bench bench{tracing(), 64};
};

std::vector<TraceSpan> bodies_of(const Trace& trace) {
  std::vector<TraceSpan> bodies;
  for (const TraceSpan& span : trace.spans())
    if (span.kind == TraceKind::body) bodies.push_back(span);
  return bodies;
}

}  // namespace

TEST_CASE_METHOD(TracedFixture, "traced: one body a task and pass, after those it depends on, where its plan says") {
  constexpr std::uint32_t kTasks = 12, kPasses = 7;
  Graph graph;
  std::vector<TaskRef<>> tasks;
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    tasks.push_back(graph.add(Count{bench.at(0)}, i >= 3 ? after(tasks[i - 3], tasks[i / 2]) : After{}));
    graph.place(tasks.back(), i % 3);
  }
  const Executable executable = bench.runtime.load(graph, compiled);
  for (int round = 0; round < 5; ++round) {
    Run run = bench.runtime.submit(executable, traced, repeat(kPasses));
    const Trace& trace = run.trace();
    CHECK(trace.workers() == 3);
    CHECK(trace.dropped() == 0);
    CHECK(trace.ignored() == 0);
    CHECK(trace.task_name(4) == "task 4 (flywheel::testing::Count)");
    CHECK(trace.task_type(4) == "flywheel::testing::Count");
    const std::vector<TraceSpan> bodies = bodies_of(trace);
    REQUIRE(bodies.size() == kTasks * kPasses);
    std::vector<const TraceSpan*> at(kTasks * kPasses);
    for (const TraceSpan& body : bodies) at[body.pass * kTasks + body.task] = &body;
    REQUIRE(std::count(at.begin(), at.end(), nullptr) == 0);
    for (std::uint32_t i = 0; i < at.size(); ++i) {
      const std::uint32_t task = i % kTasks, pass = i / kTasks;
      CHECK(at[i]->worker == task % 3);
      CHECK(at[i]->role == TraceRole::compute);
      if (pass) CHECK(at[i]->begin_ns >= at[(pass - 1) * kTasks + kTasks - 1]->end_ns);
      if (task < 3) continue;
      CHECK(at[i]->begin_ns >= at[i - 3]->end_ns);
      CHECK(at[i]->begin_ns >= at[pass * kTasks + task / 2]->end_ns);
    }
  }
}

TEST_CASE_METHOD(TracedFixture,
                 "traced: a run that is not traced has no trace, and one beside it does not show in one that is") {
  Graph graph;
  graph.add(Count{bench.at(0)});
  const Executable executable = bench.runtime.load(graph, compiled);
  for (int i = 0; i < 20; ++i) {
    Run plain = bench.runtime.submit(executable, repeat(3)), shown = bench.runtime.submit(executable, traced);
    CHECK(plain.trace().spans().empty());
    CHECK(bodies_of(shown.trace()).size() == 1);
  }
}

TEST_CASE_METHOD(TracedFixture, "traced: only what ran shows of a run that fails") {
  Graph graph;
  const auto bad = graph.add(Fail{5, 1});
  graph.add(Count{bench.at(0)}, after(bad));
  Run run = bench.runtime.submit(bench.runtime.load(graph, compiled), traced, repeat(4));
  CHECK(run.status() == Status::task_failed);
  CHECK(bodies_of(run.trace()).size() == 3);
}

TEST_CASE("traced: how many bytes of operands each body took") {
  Runtime runtime = start<Packed>(tracing());
  check_traced_bytes(runtime);
}

TEST_CASE("traced: costs for another compilation") {
  Runtime runtime = start<Slow>(tracing());
  Graph graph;
  const auto a = graph.add(Slow{3000}), b = graph.add(Slow{300}), c = graph.add(Slow{300}, after(a, b));
  graph.add(Slow{300}, after(c));
  Run run = runtime.submit(runtime.load(graph, compiled), traced, repeat(3));
  const std::vector<double> costs = run.trace().costs();
  REQUIRE(costs.size() == 4);
  CHECK(costs[0] > 2.9e6);
  for (std::size_t i = 1; i < 4; ++i) CHECK(costs[i] > 0.29e6);
  Run again = runtime.submit(runtime.load(graph, Compiled{.costs = costs}), repeat(2));
  CHECK(again.iterations() == 2);
  CHECK(make_schedule(graph, 3, {.costs = costs}).critical_ns > 3.4e6);
  CHECK_FALSE(run.trace().report().empty());
  check_says(run.trace().chrome_json(), {"Slow"});
}

TEST_CASE("traced: events there was no room for are counted") {
  Options options = on_cpu(2);
  options.trace_events = 10;
  Bench bench(options);
  Graph graph;
  graph.place(graph.add(Count{bench.at(0)}), 0);
  Run run = bench.runtime.submit(bench.runtime.load(graph, compiled), traced, repeat(25));
  CHECK(bodies_of(run.trace()).size() == 10);
  CHECK(run.trace().dropped() >= 15);
  CHECK(bodies_of(bench.runtime.submit(bench.runtime.load(graph, compiled), traced).trace()).size() == 1);
}

TEST_CASE("traced: the trace of a run that stalled stays empty, for the program may be reading it") {
  Options options = tracing();
  options.stall_limit = std::chrono::milliseconds(50);
  options.log_level = "off";
  Bench bench(options);
  Graph graph;
  graph.add(Deaf{bench.at(0), bench.at(1)});
  const Executable executable = bench.runtime.load(graph, compiled);
  Run run = bench.runtime.submit(executable, traced);
  CHECK(run.status() == Status::worker_stalled);
  const Trace* const trace = &run.trace();
  bench.put(1, 1);
  REQUIRE(eventually([&] { return bench.runtime.stats().completed == 1; }));
  CHECK(&run.trace() == trace);
  CHECK(trace->spans().empty());
  CHECK(bodies_of(bench.runtime.submit(executable, traced).trace()).size() == 1);  // of this run alone
}

TEST_CASE("traced: runtimes without room for a trace refuse with a remedy") {
  Bench without(on_cpu());
  Graph graph;
  graph.add(Count{without.at(0)});
  for (const Executable& executable : {without.runtime.load(graph, compiled), without.runtime.load(graph)})
    check_says(error_of<UsageError>([&] { without.runtime.submit(executable, traced); }), {"Options::trace_events"});
}
