// Traced runs that are not compiled: what each kind of run must show, for CPU workers and for the emulated GPU's kernel.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "host/trace/trace.hpp"
#include "support/expect.hpp"
#include "support/internals.hpp"
#include "support/small_tasks.hpp"

namespace flywheel::testing {

inline std::vector<TraceSpan> spans_of(const Trace& trace, TraceKind kind) {
  std::vector<TraceSpan> spans;
  for (const TraceSpan& span : trace.spans())
    if (span.kind == kind) spans.push_back(span);
  return spans;
}
inline std::vector<TraceSpan> bodies_in(const Trace& trace) { return spans_of(trace, TraceKind::body); }

/// Nothing was lost, bodies of one worker do not overlap, and what is made of the trace is whole.
inline void check_sane(const Trace& trace) {
  CHECK(trace.dropped() == 0);
  CHECK(trace.ignored() == 0);
  std::vector<double> until(trace.workers(), 0);
  for (const TraceSpan& span : bodies_in(trace)) {
    REQUIRE(span.role == TraceRole::compute);
    REQUIRE(span.worker < trace.workers());
    REQUIRE(span.begin_ns >= until[span.worker]);
    REQUIRE(span.end_ns >= span.begin_ns);
    until[span.worker] = span.end_ns;
  }
  const std::string report = trace.report();
  for (const char* word : {"nan", "inf", "e+", " -0"}) CHECK(report.find(word) == std::string::npos);
}

// Words that tasks use meanwhile: eight bytes at a time, which every engine copies as a whole. `i` is even.
template <class Bench>
std::uint32_t look_at_word(const Bench& bench, std::size_t i) {
  std::uint32_t both[2] = {};
  bench.words.read(both, 2, i);
  return both[0];
}
template <class Bench>
void open_gate(Bench& bench, std::size_t i) {
  const std::uint32_t both[2] = {1, 0};
  bench.words.write(both, 2, i);
}

/// Clocks of workers on a GPU are known to within some steps of the clock that they share.
inline double clock_step_ns(const Runtime& runtime) { return runtime.on_gpu() ? 4000 : 0; }

/// A random dynamic graph of tasks that count.
struct TracedGraphCase {
  Graph graph;
  std::vector<std::vector<std::uint32_t>> before;

  TracedGraphCase(std::mt19937& random, std::uint32_t tasks, std::uint32_t* word) : before(tasks) {
    std::vector<TaskRef<>> refs;
    for (std::uint32_t i = 0; i < tasks; ++i) {
      refs.push_back(graph.add(Count{word}));
      for (std::uint32_t n = i ? random() % 4 : 0; n; --n) before[i].push_back(random() % i);
      std::ranges::sort(before[i]);
      before[i].erase(std::unique(before[i].begin(), before[i].end()), before[i].end());
      for (const std::uint32_t one : before[i]) graph.edge(refs[one], refs[i]);
    }
  }

  /// One span for each task and pass, none before those of its predecessors have ended.
  void check(const Trace& trace, std::uint32_t passes, double step_ns) const {
    check_sane(trace);
    const std::vector<TraceSpan> bodies = bodies_in(trace);
    REQUIRE(bodies.size() == before.size() * passes);
    std::map<std::pair<std::uint32_t, std::uint32_t>, const TraceSpan*> at;
    for (const TraceSpan& body : bodies) at[{body.pass, body.task}] = &body;
    REQUIRE(at.size() == bodies.size());
    for (const auto& [key, body] : at) {
      REQUIRE(key.second < before.size());
      for (const std::uint32_t one : before[key.second]) {
        REQUIRE(at.contains({key.first, one}));
        REQUIRE(body->begin_ns + step_ns >= at[{key.first, one}]->end_ns);
      }
    }
    check_says(trace.report(), {"Macro", "no task ready", "queues, while a task was ready", "critical path"});
    const std::vector<QueueLength> lengths = trace.queue_lengths();
    for (std::size_t i = 1; i < lengths.size(); ++i) REQUIRE(lengths[i].at_ns > lengths[i - 1].at_ns);
    for (const QueueLength& length : lengths) REQUIRE(length.tasks <= before.size());
    if (!lengths.empty()) CHECK(lengths.back().tasks == 0);
  }
};

/// Random graphs, with runs beside them that are not traced.
template <class Bench>
void check_traced_graphs(Bench& bench, int rounds) {
  std::mt19937 random(7);
  std::uint32_t counted = 0;
  for (int round = 0; round < rounds; ++round) {
    const TracedGraphCase one(random, 1 + random() % 60, bench.at(0));
    const Executable executable = bench.runtime.load(one.graph);
    const std::uint32_t passes = 1 + random() % 3;
    Run beside = bench.runtime.submit(executable, repeat(2));
    Run run = bench.runtime.submit(executable, traced, repeat(passes));
    Run behind = bench.runtime.submit(executable);
    one.check(run.trace(), passes, clock_step_ns(bench.runtime));
    CHECK(beside.trace().spans().empty());
    CHECK(behind.trace().spans().empty());
    counted += static_cast<std::uint32_t>(one.before.size()) * (passes + 3);
    CHECK(bench.get(0) == counted);
  }
}

/// A chain of runs, some of which are traced.
template <class Bench>
void check_traced_followers(Bench& bench, int links) {
  Graph graph;
  graph.add(Count{bench.at(1)});
  const Executable executable = bench.runtime.load(graph);
  std::vector<Run> runs{bench.runtime.submit(executable)};
  for (int i = 1; i < links; ++i)
    runs.push_back(i % 3 == 0 ? bench.runtime.submit(executable, traced, after(runs.back()))
                              : bench.runtime.submit(executable, after(runs.back())));
  for (int i = 0; i < links; ++i) CHECK(bodies_in(runs[static_cast<std::size_t>(i)].trace()).size() == (i && i % 3 == 0));
  CHECK(bench.get(1) == static_cast<std::uint32_t>(links));
}

/// Each call of the recursion shows, by its type: the first one alone has an index.
template <class Bench>
void check_traced_spawns(Bench& bench) {
  Graph graph;
  graph.add(Fibonacci{9, reinterpret_cast<std::uint64_t*>(bench.at(2)), bench.at(4)});
  Run run = bench.runtime.submit(bench.runtime.load(graph), traced);
  const Trace& trace = run.trace();
  check_sane(trace);
  const std::vector<TraceSpan> bodies = bodies_in(trace);
  CHECK(bodies.size() == bench.get(4));
  CHECK(bench.get(2) == Fibonacci::value(9));
  CHECK(std::ranges::count(bodies, 0u, &TraceSpan::task) == 1);
  for (const TraceSpan& body : bodies) {
    REQUIRE((body.task == 0 || body.task & kSpawnedTask));
    CHECK(trace.task_type(body.task) == "flywheel::testing::Fibonacci");
  }
  check_says(trace.report(), {"a spawned task (flywheel::testing::Fibonacci)"});
}

/// Each worker is at each meeting, and no body of a phase begins before those of the last one have ended.
template <class Bench>
void check_traced_phases(Bench& bench) {
  constexpr std::uint32_t kPhases = 4, kWidth = 7, kPasses = 3;
  Graph graph;
  for (std::uint32_t p = 0; p < kPhases; ++p) {
    for (std::uint32_t i = 0; i < kWidth; ++i) graph.add(Count{bench.at(5)});
    graph.phase();
  }
  Run run = bench.runtime.submit(bench.runtime.load(graph), traced, repeat(kPasses));
  const Trace& trace = run.trace();
  check_sane(trace);
  const std::vector<TraceSpan> bodies = bodies_in(trace), meetings = spans_of(trace, TraceKind::meeting);
  REQUIRE(bodies.size() == kPhases * kWidth * kPasses);
  CHECK(bench.get(5) == bodies.size());
  const double step = clock_step_ns(bench.runtime);
  std::vector<double> phase_ends(kPhases * kPasses, 0), phase_begins(kPhases * kPasses, 1e18);
  for (const TraceSpan& body : bodies) {
    REQUIRE(body.task < kPhases * kWidth);
    const std::uint32_t phase = body.pass * kPhases + body.task / kWidth;
    phase_ends[phase] = std::max(phase_ends[phase], body.end_ns);
    phase_begins[phase] = std::min(phase_begins[phase], body.begin_ns);
  }
  for (std::size_t p = 1; p < phase_ends.size(); ++p) CHECK(phase_begins[p] + step >= phase_ends[p - 1]);
  for (std::uint32_t worker = 0; worker < trace.workers(); ++worker)
    CHECK(std::ranges::count(meetings, worker, &TraceSpan::worker) >= kPhases * kPasses);
  CHECK(trace.queue_lengths().empty());
  check_says(trace.report(), {"waiting for the others at meetings", "between bodies and meetings"});
  check_says(trace.chrome_json(), {"\"meeting\""});
}

/// A grid task shows once for each worker and pass, with its meetings in it.
template <class Bench>
void check_traced_grid(Bench& bench) {
  constexpr std::uint32_t kRounds = 5, kPasses = 2;
  Graph graph;
  graph.add_grid(Rounds{bench.at(300), bench.at(20), kRounds});
  Run run = bench.runtime.submit(bench.runtime.load(graph), traced, repeat(kPasses));
  const Trace& trace = run.trace();
  check_sane(trace);
  const std::vector<TraceSpan> bodies = bodies_in(trace), meetings = spans_of(trace, TraceKind::meeting);
  CHECK(bodies.size() == trace.workers() * kPasses);
  CHECK(std::ranges::count(meetings, 0u, &TraceSpan::task) == trace.workers() * kPasses * kRounds * 2);
  for (const TraceSpan& meeting : meetings) {
    if (meeting.task) continue;
    CHECK(std::ranges::any_of(bodies, [&](const TraceSpan& body) {
      return body.worker == meeting.worker && body.pass == meeting.pass && body.begin_ns <= meeting.begin_ns &&
             meeting.end_ns <= body.end_ns;
    }));
  }
  CHECK(bench.get(20) == 0);
}

/// Every task of a batch of several parts, by its index, and the library's own task of each part.
template <class Bench>
void check_traced_batches(Bench& bench) {
  const std::vector<Square> squares = squares_from(3, 1200);
  Batch<std::uint64_t> batch = bench.runtime.submit(squares, traced), plain = bench.runtime.submit(squares);
  const Trace& trace = batch.trace();
  check_sane(trace);
  std::set<std::uint32_t> seen;
  std::size_t library = 0;
  for (const TraceSpan& body : bodies_in(trace)) {
    if (body.task == kNoTaskOfProgram) ++library;
    else CHECK(seen.insert(body.task).second);
  }
  CHECK(seen.size() == squares.size());
  CHECK(*seen.rbegin() == squares.size() - 1);
  CHECK(library == 3);
  CHECK(trace.task_name(700) == "task 700 (flywheel::testing::Square)");
  CHECK(plain.trace().spans().empty());
  for (std::size_t i = 0; i < squares.size(); ++i) CHECK(batch.get(i) == std::uint64_t{3 + i} * (3 + i));
  const std::vector<QueueLength> lengths = trace.queue_lengths();
  REQUIRE_FALSE(lengths.empty());
  CHECK(lengths.back().tasks == 0);
  check_says(trace.chrome_json(), {"\"ph\":\"C\"", "ready tasks"});
}
template <class Bench>
void check_traced_mixed_batches(Bench& bench) {
  BatchBuilder tasks;
  for (std::uint32_t i = 0; i < 600; ++i) {
    if (i % 2) tasks.add(Count{bench.at(6)});
    else tasks.add(Square{i});
  }
  MixedBatch batch = bench.runtime.submit_batch(tasks, Priority::high, traced);
  const Trace& trace = batch.trace();
  check_sane(trace);
  CHECK(bodies_in(trace).size() == 600 + 2);
  CHECK(trace.task_type(599) == "flywheel::testing::Count");
  CHECK(trace.task_type(2) == "flywheel::testing::Square");
  CHECK(bench.get(6) == 300);
}

/// Of a run that fails, what ran; of one that was cancelled too.
template <class Bench>
void check_traced_failures(Bench& bench) {
  Graph graph;
  const auto bad = graph.add(Fail{5, 1});
  graph.add(Count{bench.at(7)}, after(bad));
  Run run = bench.runtime.submit(bench.runtime.load(graph), traced, repeat(4));
  CHECK(run.status() == Status::task_failed);
  CHECK(bodies_in(run.trace()).size() == 3);
  Graph held;
  const auto gate = held.add(Gate{bench.at(8), bench.at(10)});
  held.add(Count{bench.at(7)}, after(gate));
  Run cancelled = bench.runtime.submit(bench.runtime.load(held), traced);
  REQUIRE(eventually([&] { return look_at_word(bench, 8) != 0; }));
  cancelled.cancel();
  CHECK(cancelled.status() == Status::cancelled);
  const std::vector<TraceSpan> bodies = bodies_in(cancelled.trace());
  REQUIRE(bodies.size() == 1);
  CHECK(bodies[0].task == 0);
  CHECK(bench.get(7) == 1);
}

/// stop() ends a repeated run that is traced where it ends any.
template <class Bench>
void check_traced_stop(Bench& bench) {
  Graph dynamic, phased;
  dynamic.add(StopAt{3});
  phased.add(StopAt{3});
  phased.phase();
  phased.add(Count{bench.at(24)});
  for (const Graph* graph : {&dynamic, &phased}) {
    Run run = bench.runtime.submit(bench.runtime.load(*graph), traced, repeat_until_stop());
    CHECK(run.iterations() == 4);
    check_sane(run.trace());
    CHECK(bodies_in(run.trace()).size() == (graph == &dynamic ? 4 : 8));
  }
}

/// Traced runs of several kinds, submitted together, have a trace each.
template <class Bench>
void check_traced_in_turn(Bench& bench) {
  Graph many, phases;
  for (std::uint32_t i = 0; i < 20; ++i) many.add(Count{bench.at(25)});
  for (std::uint32_t i = 0; i < 6; ++i) phases.add(Count{bench.at(25)});
  const Executable dynamic = bench.runtime.load(many), phased = bench.runtime.load((phases.phase(), phases));
  std::vector<Run> runs;
  for (int i = 0; i < 8; ++i) runs.push_back(bench.runtime.submit(i % 2 ? phased : dynamic, traced, repeat(2)));
  Batch<std::uint64_t> batch = bench.runtime.submit(squares_from(0, 50), traced, after(runs));
  for (std::size_t i = 0; i < runs.size(); ++i) CHECK(bodies_in(runs[i].trace()).size() == (i % 2 ? 12 : 40));
  CHECK(bodies_in(batch.trace()).size() == 51);
}

/// The kernel ends and is launched again in the middle: the bodies of both launches show, on one line of time.
template <class Bench>
void check_traced_over_launches(Bench& bench) {
  constexpr std::uint32_t kGates = 3, kBetween = 150;  // more than a worker runs before it looks whether it is called
  Graph graph;
  auto last = graph.add(Count{bench.at(26)});
  for (std::uint32_t gate = 0; gate < kGates; ++gate) {
    last = graph.add(Gate{bench.at(30 + 2 * gate), bench.at(40 + 2 * gate)}, after(last));
    for (std::uint32_t i = 0; i < kBetween; ++i) last = graph.add(Count{bench.at(26)}, after(last));
  }
  Run run = bench.runtime.submit(bench.runtime.load(graph), traced);
  for (std::uint32_t gate = 0; gate < kGates; ++gate) {
    REQUIRE(eventually([&] { return look_at_word(bench, 30 + 2 * gate) == 1; }));
    bench.runtime.yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // until the workers are called
    open_gate(bench, 40 + 2 * gate);
  }
  const Trace& trace = run.trace();
  CHECK(eventually([&] { return bench.runtime.stats().launches > 1; }));
  check_sane(trace);
  CHECK(bodies_in(trace).size() == 1 + kGates * (1 + kBetween));
  double ends = 0;
  for (const TraceSpan& body : bodies_in(trace)) {  // a chain
    CHECK(body.begin_ns + clock_step_ns(bench.runtime) >= ends);
    ends = std::max(ends, body.end_ns);
  }
}

/// Too little room: what there was none for is counted, and the run ends right.
template <class Bench>
void check_traced_drops(Bench& bench) {
  Graph graph;
  for (std::uint32_t i = 0; i < 90; ++i) graph.add(Count{bench.at(0)});
  Run run = bench.runtime.submit(bench.runtime.load(graph), traced, repeat(2));
  const Trace& trace = run.trace();
  CHECK(trace.dropped() > 0);
  CHECK(bodies_in(trace).size() + trace.dropped() == 180);
  CHECK(bench.get(0) == 180);
  check_says(trace.report(), {"events dropped", "raise Options::trace_events"});
  Graph small;
  small.add(Count{bench.at(0)});
  Run next = bench.runtime.submit(bench.runtime.load(small), traced);
  CHECK(next.trace().dropped() == 0);
  CHECK(bodies_in(next.trace()).size() == 1);
}

}  // namespace flywheel::testing
