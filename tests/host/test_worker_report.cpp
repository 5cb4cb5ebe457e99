// The report of runs that are not compiled: the numbers in it, from traces made by hand.
#include "host/trace/worker_report.hpp"

#include "support/expect.hpp"
#include "support/internals.hpp"
#include "support/made_trace.hpp"

using namespace flywheel;
using namespace flywheel::testing;
using Kind = TraceKind;

namespace {

Trace trace_of(const MadeTrace& made, TracedGraph graph) {
  return {made.workers, made.capacity, made.tracks, made.events, made.names, made.types, {}, std::move(graph)};
}
void meeting(MadeTrace& made, std::uint32_t worker, std::uint32_t task, std::uint64_t begin, std::uint32_t ns) {
  made.add(worker, TraceRole::compute, Kind::meeting, task, 0, begin, ns);
}

}  // namespace

TEST_CASE("a dynamic run: idle time by cause, the queue, and the critical path") {
  MadeTrace made(2);
  made.body(0, 0, 0, 0, 4000);
  made.body(1, 1, 0, 1000, 1000);  // ready at 0: 1 us in queues on worker 1
  made.body(0, 2, 0, 6000, 4000);  // ready at 4000
  const Trace trace = trace_of(made, {GraphKind::dynamic, {}, {0, 1, 2, 2}, {2, 2}, {}});
  check_says(trace.report(),
             {"span 0.010 ms\n passes 1\n bodies 3\n workers 2 of 2 ran tasks\n in bodies 45.0 %",
              "bodies 45.0 %\n no task ready 30.0 %\n queues, while a task was ready 25.0 %",
              "ready tasks that had not begun mean 0.30, most 1", "0 2 8.00 0.00 2.00\n 1 1 1.00 6.00 3.00\n imbalance 1.78",
              "longest tasks:\n 4.00 us worker 0, pass 0, task 0 (Load)",
              "critical path 2 tasks, 8.00 us in bodies, 2.00 us in gaps between them",
              "begin:\n 2.00 us worker 0, pass 0, task 2 (Mul)"});
}

TEST_CASE("a phased run: meetings, also those in a body") {
  MadeTrace made(2);
  made.body(0, 0, 0, 0, 4000);
  meeting(made, 0, 0, 1000, 1000);  // a grid_sync()
  meeting(made, 0, kNoTaskOfProgram, 4000, 5000);
  made.body(1, 1, 0, 0, 8000);
  meeting(made, 1, kNoTaskOfProgram, 8500, 500);
  made.body(0, 2, 0, 9000, 1000);
  const std::string text = trace_of(made, {GraphKind::phased, {}, {}, {}, {}}).report();
  check_says(text, {"bodies 3", "in bodies 60.0 %", "waiting for the others at meetings 32.5 %",
                    "between bodies and meetings 7.5 %", "0 2 4.00 6.00 0.00"});
  CHECK(text.find("critical") == std::string::npos);
}

TEST_CASE("the last meeting ends when the last worker comes") {
  MadeTrace made(2);
  made.body(0, 0, 0, 100, 400);
  made.body(1, 1, 0, 100, 900);
  made.track(0, TraceRole::compute).meeting_since = 500;
  made.track(1, TraceRole::compute).meeting_since = 1000;
  const Trace trace = trace_of(made, {GraphKind::phased, {}, {}, {}, {}});
  REQUIRE(trace.spans().size() == 4);
  for (const TraceSpan& span : trace.spans())
    if (span.kind == Kind::meeting) CHECK(span.end_ns == 900);
}

TEST_CASE("what another launch of the kernel wrote has a clock of its own") {
  MadeTrace made(1);
  made.body(0, 0, 0, 5'000'100, 400);
  made.add(0, TraceRole::compute, Kind::none, 0, 2'000'000, 5'000'000, 0).kind = kClockEvent;  // at 2 ms
  made.body(0, 1, 0, 700, 100);
  made.moments(0, TraceRole::compute, {600, 3'000'000}, {600 + 200'000, 3'200'000});
  const Trace trace = trace_of(made, {GraphKind::dynamic, {}, {0, 0, 0}, {}, {}});
  REQUIRE(trace.spans().size() == 2);
  CHECK(trace.ignored() == 0);
  CHECK(trace.spans()[0].task == 0);
  CHECK(trace.spans()[0].end_ns == 400);
  CHECK(trace.spans()[1].begin_ns == 1'000'000);
}

TEST_CASE("many workers: the busiest and the least busy") {
  MadeTrace made(40);
  for (std::uint32_t w = 0; w < 40; ++w) made.body(w, 0, 0, 0, 1000 + w);
  const std::string text = trace_of(made, {GraphKind::dynamic, {}, {0, 0}, {}, {}}).report();
  check_says(text, {"... 24 more"});
}
