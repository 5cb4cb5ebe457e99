// Traces: ticks to time, what is left out, costs.
#include "host/trace/trace.hpp"

#include "host/base/error.hpp"
#include "support/expect.hpp"
#include "support/internals.hpp"
#include "support/made_trace.hpp"

using namespace flywheel;
using namespace flywheel::testing;
using Role = TraceRole;
using Kind = TraceKind;

namespace {

// A moment of the shared clock as a GPU gives it: ns since 1970.
constexpr std::uint64_t kToday = 1'753'000'000'000'000'001;

void check_times(const TraceSpan& span, double begin_ns, double end_ns) {
  CHECK(span.begin_ns == Approx(begin_ns).margin(1e-6));
  CHECK(span.end_ns == Approx(end_ns).margin(1e-6));
}

}  // namespace

TEST_CASE("an empty trace is empty in every form") {
  for (const Trace& trace : {Trace(), MadeTrace(2).trace(), MadeTrace(0).trace(), MadeTrace(2, 0).trace()}) {
    CHECK(trace.spans().empty());
    CHECK(trace.dropped() == 0);
    CHECK(trace.ignored() == 0);
  }
  CHECK(Trace().costs().empty());
  CHECK(MadeTrace(2).trace().costs() == std::vector<double>{0, 0, 0});
}

TEST_CASE("spans say what the events said, in order, from 0 on") {
  MadeTrace made(2);
  made.body(1, 2, 5, 1500, 300, 12);
  made.wait(0, 1, 4, 1000, 50);
  const Trace trace = made.trace();
  REQUIRE(trace.spans().size() == 2);
  const TraceSpan &wait = trace.spans()[0], &body = trace.spans()[1];
  CHECK((wait.worker == 0 && wait.role == Role::control && wait.kind == Kind::wait));
  CHECK((body.worker == 1 && body.role == Role::compute && body.kind == Kind::body));
  CHECK((wait.task == 1 && wait.pass == 4 && body.task == 2 && body.pass == 5));
  CHECK((wait.bytes_kib == 0 && body.bytes_kib == 12));
  check_times(wait, 0, 50);
  check_times(body, 500, 800);
}

TEST_CASE("what lies within a body comes after it, also when both begin at once") {
  MadeTrace made(1);
  made.inputs(0, 0, 0, 100, 10);
  made.body(0, 0, 0, 100, 50);
  made.inputs(0, 1, 0, 200, 30);
  made.body(0, 1, 0, 200, 30);
  const Trace trace = made.trace();
  std::vector<Kind> kinds;
  for (const TraceSpan& span : trace.spans()) kinds.push_back(span.kind);
  CHECK(kinds == std::vector<Kind>{Kind::body, Kind::inputs, Kind::body, Kind::inputs});
}

TEST_CASE("each worker's clock has its own rate and offset") {
  MadeTrace made(2);
  made.moments(0, Role::compute, {1'000'000, kToday}, {5'000'000, kToday + 2'000'000});  // 0.5 ns a tick
  made.moments(1, Role::compute, {70, kToday + 1000}, {1'000'070, kToday + 4'001'000});  // 4 ns a tick
  made.body(0, 0, 0, 1'000'200, 100);
  made.body(1, 1, 0, 1070, 100);
  const Trace trace = made.trace();
  REQUIRE(trace.spans().size() == 2);
  check_times(trace.spans()[0], 0, 50);
  check_times(trace.spans()[1], 1000 + 4000 - 100, 1000 + 4400 - 100);
}

TEST_CASE("the rate is that of the worker's longest track, for all its roles") {
  MadeTrace made(1);
  made.moments(0, Role::control, {0, kToday}, {10'000, kToday + 20'000});
  made.moments(0, Role::load, {0, kToday}, {1'000'000, kToday + 500'000});
  made.moments(0, Role::compute, {500'000, 0}, {500'000, 0});
  made.wait(0, 0, 0, 100, 20);
  made.body(0, 0, 0, 1100, 200);
  const Trace trace = made.trace();
  check_times(trace.spans()[0], 0, 10);
  check_times(trace.spans()[1], 500, 600);
}

TEST_CASE("workers of one clock domain get the mean rate of those measured for long") {
  MadeTrace made(4);
  // 0.5 ns a tick, seen through a clock that ticks once in 1000 ns.
  made.moments(0, Role::compute, {0, kToday}, {400'000, kToday + 201'000});
  made.moments(1, Role::compute, {0, kToday}, {400'000, kToday + 199'000});
  made.moments(2, Role::compute, {0, kToday}, {20'000, kToday + 11'000});  // too short to count
  made.moments(3, Role::compute, {0, kToday}, {1'000, kToday});            // not a step long
  for (std::uint32_t w = 0; w < 4; ++w) made.body(w, w % 3, 0, 0, 1000);
  std::uint32_t found = 0;
  for (const TraceSpan& span : made.trace().spans()) CHECK((++found, span.end_ns - span.begin_ns == Approx(500).margin(1e-6)));
  CHECK(found == 4);
}

TEST_CASE("a line through the middle of both moments shares out the error of the clock's steps") {
  MadeTrace made(2);
  made.moments(0, Role::compute, {0, kToday}, {400'000, kToday + 201'000});
  made.moments(1, Role::compute, {0, kToday}, {400'000, kToday + 199'000});
  made.body(0, 0, 0, 0, 0);
  made.body(1, 1, 0, 0, 0);
  const Trace trace = made.trace();
  CHECK(trace.spans()[0].worker == 1);  // from 199'000 - 200'000, halved
  check_times(trace.spans()[0], 0, 0);
  check_times(trace.spans()[1], 1000, 1000);
}

TEST_CASE("a worker with a clock of another kind keeps its own rate") {
  MadeTrace made(3);
  made.moments(0, Role::compute, {0, kToday}, {400'000, kToday + 200'000});
  made.moments(1, Role::compute, {0, kToday}, {400'000, kToday + 200'000});
  made.moments(2, Role::compute, {0, kToday}, {10'000, kToday + 10'000});  // short, but 5 us off the others' rate
  made.body(2, 0, 0, 0, 300);
  check_times(made.trace().spans()[0], 0, 300);
}

TEST_CASE("a worker that took no part does not blur the others' times") {
  MadeTrace made(2);
  made.moments(1, Role::compute, {0, kToday}, {1'000'000, kToday + 1'000'000});
  made.body(1, 0, 0, 7, 1);
  made.body(1, 1, 0, 10, 3);
  const Trace trace = made.trace();
  check_times(trace.spans()[0], 0, 1);
  check_times(trace.spans()[1], 3, 6);
}

TEST_CASE("moments that tell nothing count a tick as a ns") {
  const TraceMoment now{500, kToday};
  const TraceMoment ends[] = {now, {499, kToday + 9}, {900, kToday}, {900, kToday - 1}};
  for (const TraceMoment& end : ends) {
    MadeTrace made(1);
    made.moments(0, Role::compute, now, end);
    made.body(0, 0, 0, 600, 40);
    made.body(0, 0, 1, 400, 10);  // before the first moment
    const Trace trace = made.trace();
    check_times(trace.spans()[0], 0, 10);
    check_times(trace.spans()[1], 200, 240);
  }
}

TEST_CASE("what cannot have been written is ignored and counted") {
  MadeTrace made(2, 5);
  for (std::uint32_t i = 0; i < 5; ++i) made.body(0, 0, i, 10 * i, 5);
  made.events[made.capacity * 2 + 0].kind = 0;
  made.events[made.capacity * 2 + 1].kind = 8;
  made.events[made.capacity * 2 + 2].kind = 255;
  made.events[made.capacity * 2 + 3].role = 1;
  made.track(0, Role::compute).dropped = 3;
  made.track(1, Role::load).dropped = 4;
  made.track(1, Role::store).count = 6;       // one more than there is room for
  made.track(1, Role::store).dropped = 1000;  // and so not believed either
  const Trace trace = made.trace();
  REQUIRE(trace.spans().size() == 1);
  CHECK(trace.spans()[0].pass == 4);
  CHECK(trace.ignored() == 4 + 5);
  CHECK(trace.dropped() == 3 + 4);
}

TEST_CASE("what other tasks wrote counts among a body's operands") {
  MadeTrace made(1);
  made.dependent_bytes = {0, 1025, 0xffff * 1024};
  for (std::uint32_t task = 0; task < 4; ++task) made.body(0, task, 0, 100 * task, 50, 7);  // the last one is no task's
  made.add(0, TraceRole::store, TraceKind::store, 1, 0, 500, 10);
  std::vector<std::uint32_t> kib;
  for (const TraceSpan& span : made.trace().spans()) kib.push_back(span.bytes_kib);
  CHECK(kib == std::vector<std::uint32_t>{7, 9, kManyKib, 7, 0});
}

TEST_CASE("sizes that do not fit together are refused") {
  const MadeTrace made(2);
  const auto error = [&](std::size_t tracks, std::size_t events, std::size_t types, std::size_t dependents = 0) {
    return error_of<UsageError>([&] {
      Trace(2, 64, std::vector<TraceTrack>(tracks), std::vector<TraceEvent>(events), made.names,
            std::vector<std::string>(types), std::vector<std::uint32_t>(dependents));
    });
  };
  CHECK(error(8, 512, 3).empty());
  check_says(error(7, 512, 3), {"7 tracks given and 8 needed", "copy all"});
  check_says(error(8, 511, 3), {"511 events given and 512 needed"});
  check_says(error(8, 512, 2), {"2 task types given and 3 needed"});
  CHECK(error(8, 512, 3, 3).empty());
  check_says(error(8, 512, 3, 4), {"4 tasks' dependent bytes given and 3 needed"});
}

TEST_CASE("costs are mean bodies without their waits for inputs") {
  MadeTrace made(2);
  made.inputs(0, 0, 0, 110, 20);
  made.inputs(0, 0, 0, 140, 30);
  made.body(0, 0, 0, 100, 100);  // 50 of its own
  made.body(0, 2, 0, 200, 40);
  made.inputs(1, 0, 1, 1000, 10);
  made.body(1, 0, 1, 1000, 80);  // 70 of its own
  made.inputs(1, 1, 1, 1100, 30);
  made.body(1, 1, 1, 1100, 30);    // waited all the time
  made.inputs(1, 2, 1, 1200, 25);  // its body was dropped
  made.body(1, 77, 1, 1300, 5);    // of no task there is
  made.wait(1, 2, 1, 1050, 500);
  CHECK(made.trace().costs() == std::vector<double>{60, 0, 40});
}

TEST_CASE("a body that begins before the tasks before it were seen waits for its inputs until then") {
  MadeTrace made(2);
  made.wait(0, 1, 0, 50, 90);
  made.body(0, 1, 0, 100, 100);  // early: 40 of it waiting
  made.wait(0, 2, 0, 210, 30);
  made.body(0, 2, 0, 240, 10);  // after its wait
  made.wait(1, 1, 0, 0, 1000);  // another worker's
  made.wait(0, 0, 1, 300, 500);
  made.body(0, 0, 1, 310, 20);  // waited to its end, and for something else
  const Trace trace = made.trace();
  std::vector<TraceSpan> inputs;
  for (const TraceSpan& span : trace.spans())
    if (span.kind == Kind::inputs) inputs.push_back(span);
  REQUIRE(inputs.size() == 2);
  CHECK((inputs[0].task == 1 && inputs[0].worker == 0 && inputs[0].role == Role::compute));
  check_times(inputs[0], 100, 140);
  check_times(inputs[1], 310, 330);
  CHECK(trace.costs() == std::vector<double>{0, 60, 10});
  check_says(trace.report(), {"for them, inside its body"});
}

TEST_CASE("costs do not mix workers, passes and tasks") {
  MadeTrace made(2);
  made.body(0, 0, 0, 100, 100);
  made.inputs(1, 0, 0, 120, 10);  // another worker
  made.inputs(0, 0, 1, 120, 10);  // another pass
  made.inputs(0, 1, 0, 120, 10);  // another task
  made.inputs(0, 0, 0, 190, 11);  // beyond the end
  made.body(0, 1, 0, 300, 50);
  made.body(1, 0, 1, 300, 100);
  CHECK(made.trace().costs() == std::vector<double>{100, 50, 0});
}

TEST_CASE("a task without a name is called by its number") {
  MadeTrace made(1);
  made.body(0, 9, 0, 0, 10);
  const Trace trace = made.trace();
  CHECK(trace.task_name(9) == "task 9");
  CHECK(trace.task_name(1) == "task 1 (Mul)");
  CHECK(trace.task_type(9) == "unknown");
  CHECK(trace.task_type(1) == "Mul");
}
