// The report of a trace: every number in it, from traces made by hand.
#include <algorithm>

#include "host/trace/trace.hpp"
#include "support/expect.hpp"
#include "support/internals.hpp"
#include "support/made_trace.hpp"

using namespace flywheel;
using namespace flywheel::testing;
using Role = TraceRole;
using Kind = TraceKind;

namespace {

// Two workers, two passes, 10 us. Some spans of a worker overlap, on purpose.
MadeTrace two_passes() {
  MadeTrace made(2);
  made.body(0, 0, 0, 0, 2000, 4000);
  made.add(0, Role::store, Kind::store, 0, 0, 2000, 500);
  made.wait(0, 1, 0, 1500, 1500);  // 500 ns in a body, 500 in a store part
  made.inputs(0, 1, 0, 3000, 500);
  made.body(0, 1, 0, 3000, 2000, 8000);
  made.gate(0, 1, 4500, 1000);  // 500 ns in a body
  made.body(0, 0, 1, 5500, 1000, 4000);
  made.body(0, 1, 1, 6500, 1000);
  made.gate(0, 2, 7500, 2500);
  made.body(1, 2, 0, 0, 4000, 16000);
  made.gate(1, 1, 4000, 1600);
  made.body(1, 2, 1, 5600, 4000, 16000);
  made.gate(1, 2, 9600, 300);
  made.add(1, Role::store, Kind::store, 2, 1, 9900, 60);
  made.add(1, Role::load, Kind::page, 2, 0, 1000, 1000);
  made.add(1, Role::load, Kind::landing, 2, 0, 3000, 500);
  return made;
}

bool says(const std::string& text, const std::string& part) {
  return without_blanks(text).find(without_blanks(part)) != std::string::npos;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

void check_is_sane(const std::string& text) {
  INFO(text);
  CHECK_FALSE(text.empty());
  CHECK(text.back() == '\n');
  for (const char* word : {"nan", "inf", "-0", "e+"}) CHECK(count_of(text, word) == 0);
}

}  // namespace

TEST_CASE("Macro: the run as a whole") {
  check_says(two_passes().trace().report(), {"Macro: the run as a whole", "span 0.010 ms",
                                             "passes 2\n"
                                             "time a pass mean 4.40 us, p50 4.30 us, p99 4.50 us (2 gate-to-gate intervals)",
                                             "workers 2 of 2 ran tasks", "in bodies 70.0 % of worker-time (2 x the span)",
                                             "operands 0.046 GiB into bodies, 4915.2 GB/s over the span"});
}

TEST_CASE("Meso: task types, the one that took most first") {
  check_says(two_passes().trace().report(), {"Meso: task types",
                                             "type count total us mean us p50 us p99 us share GB/s a worker\n"
                                             "Mul 4 11.00 2.75 2.00 4.00 78.6 % 3723.64\n"
                                             "Load 2 3.00 1.50 1.00 2.00 21.4 % 2730.67\n"});
}

TEST_CASE("Meso: every moment of a worker has one cause, and the shares make 100 %") {
  check_says(two_passes().trace().report(),
             {"bodies 70.0 %\n of it, inputs not there yet 2.5 %\n store part 2.8 %\n"
              "waiting for tasks before it 2.5 %\n gate between passes 24.5 %\n none of these 0.2 %"});
}

TEST_CASE("Meso: what the loader waited for, and what that means") {
  check_says(two_passes().trace().report(), {"waiting for a free page 5.0 % it is ahead and compute is behind: good",
                                             "waiting for pages to land 2.5 % memory is the limit: good"});
}

TEST_CASE("Micro: waits, slow tasks and balance") {
  check_says(two_passes().trace().report(),
             {"Micro: single waits",
              "worst waits, without time in which the worker ran a body before:\n"
              "1.00 us worker 0, pass 0, task 1 (Mul) (for tasks before it)\n"
              "0.50 us worker 0, pass 0, task 1 (Mul) (for them, inside its body)\n slowest",
              "beyond the median of their type:\n"
              "4.00 us worker 1, pass 0, task 2 (Mul) (median 2.00 us, 2.0 times that)\n"
              "4.00 us worker 1, pass 1, task 2 (Mul) (median 2.00 us, 2.0 times that)\n"
              "2.00 us worker 0, pass 0, task 0 (Load) (median 1.00 us, 2.0 times that)\n most",
              "most body time worker 1, 8.00 us", "least body time worker 0, 6.00 us", "imbalance 1.14 (most over mean)"});
}

TEST_CASE("the three levels come in order, and a trace without loss says nothing of loss") {
  const std::string text = two_passes().trace().report();
  check_is_sane(text);
  CHECK(text.find("Macro") < text.find("Meso"));
  CHECK(text.find("Meso") < text.find("Micro"));
  CHECK_FALSE(says(text, "dropped"));
  CHECK_FALSE(says(text, "ignored"));
  CHECK_FALSE(says(text, "at least"));
}

TEST_CASE("an empty trace says why it may be empty") {
  for (const Trace& trace : {Trace(), MadeTrace(3).trace()}) {
    const std::string text = trace.report();
    check_is_sane(text);
    check_says(text, {"trace is empty", "Options::trace_events above 0"});
  }
}

TEST_CASE("dropped events are told last, with the remedy") {
  MadeTrace made = two_passes();
  made.track(0, Role::compute).dropped = 40;
  made.track(1, Role::load).dropped = 2;
  const std::string text = made.trace().report();
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  CHECK(says(last, "42 events dropped"));
  CHECK(says(last, "raise Options::trace_events"));
  MadeTrace full(1, 0);
  full.track(0, Role::compute).dropped = 7;
  check_says(full.trace().report(), {"trace is empty", "7 events dropped"});
}

TEST_CASE("ignored events are told") {
  MadeTrace made = two_passes();
  made.body(0, 0, 5, 0, 1'000'000);
  made.add(0, Role::compute, Kind::none, 0, 0, 0, 1'000'000);
  made.events[(&made.track(0, Role::compute) - made.tracks.data()) * made.capacity + 5].kind = 99;
  check_says(made.trace().report(), {"2 events ignored", "span 0.010 ms\n passes 2\n time"});
}

TEST_CASE("events without length, or of one kind alone, make no nonsense") {
  MadeTrace still(2);
  still.body(0, 0, 0, 500, 0, 10);
  still.wait(0, 0, 0, 500, 0);
  check_is_sane(still.trace().report());
  check_says(still.trace().report(), {"span 0.000 ms", "in bodies 0.0 %", "imbalance 0.00", "nothing waited",
                                      "no task took longer", "0.0 GB/s", "Load 1 0.00 0.00 0.00 0.00 0.0 %"});
  for (const Kind kind : {Kind::wait, Kind::gate, Kind::body, Kind::inputs, Kind::page, Kind::landing, Kind::store}) {
    MadeTrace alone(1);
    alone.add(0, Role::control, kind, 0, 0, 500, 100);
    check_is_sane(alone.trace().report());
    CHECK(says(alone.trace().report(), "no task ran") == (kind != Kind::body));
    CHECK(says(alone.trace().report(), "workers 0 of 1 ran tasks") == (kind != Kind::body));
  }
}

TEST_CASE("workers that are never idle have no negative share of idle time") {
  for (std::uint32_t bodies = 1; bodies < 60; ++bodies) {
    MadeTrace made(3);
    for (std::uint32_t w = 0; w < 3; ++w) {
      made.moments(w, Role::compute, {0, 0}, {3'000'000, 1'700'000});  // no whole ns: sums are rounded
      const auto at = [&](std::uint32_t i) { return 100'003 * i / (bodies + w); };
      for (std::uint32_t i = 0; i < bodies + w; ++i) made.body(w, 0, i, at(i), at(i + 1) - at(i));
    }
    check_is_sane(made.trace().report());
    check_says(made.trace().report(), {"none of these 0.0 %"});
  }
}

TEST_CASE("a run without gates has the mean time of a pass") {
  MadeTrace made(1);
  made.body(0, 0, 3, 0, 1000);
  made.body(0, 0, 4, 1000, 2000);
  made.body(0, 0, 5, 3000, 4500);
  check_says(made.trace().report(), {"passes 3\n time a pass 2.50 us (the span over the passes)"});
}

TEST_CASE("only neighbouring gates of one worker make a pass time") {
  MadeTrace made(2);
  made.gate(0, 1, 0, 1000);
  made.gate(0, 2, 2000, 1000);  // 2 us after the first
  made.gate(0, 4, 9000, 1000);  // one was dropped
  made.gate(1, 3, 3000, 500);
  check_says(made.trace().report(), {"mean 2.00 us, p50 2.00 us, p99 2.00 us (1 gate-to-gate intervals)"});
}

TEST_CASE("percentiles are nearest ranks") {
  MadeTrace made(1, 200);
  for (std::uint32_t i = 0; i < 200; ++i) made.body(0, 0, i, i * 1'000'000, 1000 * ((i * 77) % 200 + 1));
  check_says(made.trace().report(), {"Load 200 20100.00 100.50 100.00 198.00 100.0 %"});
}

TEST_CASE("only the ten worst are listed, worst first") {
  MadeTrace made(1);
  for (std::uint32_t i = 0; i < 12; ++i) {
    made.wait(0, 0, i, 100'000 * i, 1000 * (i + 1));
    made.body(0, 1, i, 100'000 * i + 50'000, 1000 * (i < 1 ? 50 : 1) + i);
  }
  const std::string text = made.trace().report();
  CHECK(count_of(text, "(for tasks before it)") == 10);
  CHECK(says(text, "body before:\n 12.00 us worker 0, pass 11, task 0 (Load)"));
  CHECK(says(text, "3.00 us worker 0, pass 2, task 0 (Load)"));
  CHECK_FALSE(says(text, "2.00 us worker 0, pass 1, task 0 (Load)"));
  CHECK(says(text, "type:\n 50.00 us worker 0, pass 0, task 1 (Mul) (median 1.01 us, 49.7 times that)"));
  CHECK(count_of(text, "times that)") == 6);  // the others are no slower than the median
}

TEST_CASE("a wait is as long as the worker had nothing else to do") {
  MadeTrace made(2);
  for (std::uint32_t i = 0; i < 5; ++i) made.body(0, 0, i, 1000 * i, 600);
  made.wait(0, 1, 0, 500, 3700);   // 100 + 600 x 3 + 200 of it in bodies
  made.wait(0, 2, 0, 1600, 5000);  // 600 x 3
  made.wait(0, 0, 7, 2000, 600);   // all of it: not listed
  made.wait(1, 0, 8, 2000, 600);   // another worker's bodies are no excuse
  check_says(made.trace().report(), {"before:\n 3.20 us worker 0, pass 0, task 2 (Mul) (for tasks before it)\n"
                                     "1.60 us worker 0, pass 0, task 1 (Mul) (for tasks before it)\n"
                                     "0.60 us worker 1, pass 8, task 0 (Load) (for tasks before it)\n no task"});
}

TEST_CASE("idle workers count as worker-time and as imbalance") {
  MadeTrace made(4);
  made.body(2, 0, 0, 0, 1000);
  check_says(made.trace().report(), {"workers 1 of 4", "in bodies 25.0 %", "none of these 75.0 %", "most body time worker 2",
                                     "least body time worker 0, 0.00 us", "imbalance 4.00"});
}

TEST_CASE("a body with more bytes than an event can hold makes the sum a lower bound") {
  MadeTrace made(1);
  made.body(0, 0, 0, 0, 1000, 0xffff);
  check_says(made.trace().report(), {"operands at least 0.062 GiB"});
}

TEST_CASE("long names of types keep the columns apart") {
  MadeTrace made(1);
  made.types[0] = std::string(100, 'x');
  made.body(0, 0, 0, 0, 1000);
  CHECK(made.trace().report().find(std::string(100, 'x') + "         1  ") != std::string::npos);
}

TEST_CASE("a moment that lies in two spans inside a longer one counts once") {
  MadeTrace made(1);
  made.body(0, 0, 0, 0, 10000);
  made.body(0, 1, 0, 2000, 1000);
  made.body(0, 1, 0, 6000, 4000);
  check_says(made.trace().report(), {"in bodies 100.0 % of worker-time"});
}
