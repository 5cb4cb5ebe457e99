// When tasks of a dynamic graph or batch became ready, and the queue lengths that follow, from traces made by hand.
#include "host/trace/ready_times.hpp"

#include "support/expect.hpp"
#include "support/internals.hpp"
#include "support/made_trace.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Trace dynamic_trace(const MadeTrace& made, TracedGraph graph) {
  graph.kind = GraphKind::dynamic;
  return {made.workers, made.capacity, made.tracks, made.events, made.names, made.types, {}, std::move(graph)};
}
/// 0 -> 2, 1 -> 2.
TracedGraph join() { return {GraphKind::dynamic, {"Load", "Mul"}, {0, 1, 2, 2}, {2, 2}, {}}; }

void check_lengths(const Trace& trace, const std::vector<std::pair<double, std::uint32_t>>& wanted) {
  const std::vector<QueueLength> lengths = trace.queue_lengths();
  REQUIRE(lengths.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(lengths[i].at_ns == wanted[i].first);
    CHECK(lengths[i].tasks == wanted[i].second);
  }
}

}  // namespace

TEST_CASE("a task is ready when the last of its predecessors has ended, a root at the begin of its pass") {
  MadeTrace made(2);
  made.body(0, 0, 0, 0, 1000);
  made.body(1, 1, 0, 500, 2000);   // it was ready at 0
  made.body(0, 2, 0, 3000, 1000);  // ready at 2500
  made.body(1, 0, 1, 4500, 500);   // ready at 4000, when pass 0 had ended
  made.body(0, 1, 1, 4000, 500);
  made.body(0, 2, 1, 5000, 100);
  const Trace trace = dynamic_trace(made, join());
  const ReadyTimes times(trace);
  REQUIRE(times.tasks().size() == 6);
  CHECK(times.tasks()[1].ready_ns == 0);
  CHECK(times.tasks()[2].ready_ns == 2500);
  REQUIRE(times.tasks()[2].before != nullptr);
  CHECK(times.tasks()[2].before->task == 1);
  CHECK(times.tasks()[3].ready_ns == 4000);
  check_lengths(trace, {{0, 1}, {500, 0}, {2500, 1}, {3000, 0}, {4000, 1}, {4500, 0}});
}

TEST_CASE("a predecessor that was passed over does not count, and of one in a loop the last time before") {
  MadeTrace made(1);
  made.body(0, 1, 0, 0, 1000);
  made.body(0, 1, 0, 4000, 1000);
  made.body(0, 2, 0, 9000, 1000);
  made.body(0, 1, 0, 20'000, 1000);
  const Trace trace = dynamic_trace(made, join());
  const ReadyTimes times(trace);
  REQUIRE(times.tasks().size() == 4);
  CHECK(times.tasks()[2].ready_ns == 5000);
}

TEST_CASE("a task of a batch is ready when its part has come; spawned tasks have no such time") {
  MadeTrace made(2);
  made.body(0, kNoTaskOfProgram, 0, 0, 1000);
  made.body(1, kNoTaskOfProgram, 0, 0, 2000);
  made.body(0, 0, 0, 1000, 3000);
  made.body(1, 1, 0, 2500, 1000);
  made.body(1, 2, 0, 3500, 1000);
  made.body(0, kSpawnedTask | 1, 0, 5000, 1000);
  TracedGraph graph{GraphKind::dynamic, {"Load", "Mul"}, {}, {}, {0, 2}};  // tasks 0 and 1, and task 2
  const Trace trace = dynamic_trace(made, graph);
  check_lengths(trace, {{1000, 1}, {2000, 2}, {2500, 1}, {3500, 0}});
  CHECK(trace.task_name(kSpawnedTask | 1) == "a spawned task (Mul)");
  CHECK(trace.task_type(kSpawnedTask | 7) == "unknown");
  CHECK(trace.task_type(kNoTaskOfProgram) == "(library)");
}

TEST_CASE("runs of other kinds have no queue") {
  MadeTrace made(1);
  made.body(0, 0, 0, 0, 1000);
  CHECK(made.trace().queue_lengths().empty());
  CHECK(made.trace().chrome_json().find("\"C\"") == std::string::npos);
}
