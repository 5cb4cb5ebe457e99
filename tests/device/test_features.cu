// Every feature of a run on the GPU: what a task can do, and what its run shows of it.
#include "catch.hpp"
#include "support/idle_tasks.hpp"
#include "support/unequal_meetings.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// The runtime that most cases share.
Bench& bench() {
  static Bench shared(on_gpu(), 1 << 16);
  return shared;
}

/// Words that no other case has used.
std::size_t fresh(std::size_t count) {
  static std::size_t next = 0;
  next += count;
  return next - count;
}

}  // namespace

TEST_CASE("results and parameters") {
  Graph graph;
  const auto param = graph.param<std::uint64_t>(5);
  std::vector<TaskRef<std::uint64_t>> squares;
  for (std::uint32_t i = 0; i < 300; ++i) squares.push_back(graph.add(Square{i}));
  const auto read = graph.add(Read{param}, after(squares[7]));
  const Executable executable = bench().runtime.load(graph);
  Run plain = bench().runtime.submit(executable);
  Run given = bench().runtime.submit(executable, set(param, 77));
  for (std::uint32_t i = 0; i < 300; ++i) CHECK(plain.get(squares[i]) == std::uint64_t{i} * i);
  CHECK(plain.get(read) == 5);
  CHECK(given.get(read) == 77);
}

TEST_CASE("all threads of a block work together") {
  Graph graph;
  const auto sum = graph.add(Reduce{5000});
  Run run = bench().runtime.submit(bench().runtime.load(graph));
  CHECK(run.get(sum) == std::uint64_t{5000} * 4999 / 2);
}

TEST_CASE("a stream longer than its ring arrives complete and in order") {
  Graph graph;
  graph.add(EmitRange{0, 20'000});
  Run run = bench().runtime.submit(bench().runtime.load(graph), repeat(2));
  std::uint32_t next = 0;
  while (const auto value = run.next<std::uint32_t>()) REQUIRE(*value == next++);
  CHECK(next == 40'000);
}

TEST_CASE("a repeated run loops on the device, until a task says stop") {
  const std::size_t word = fresh(1);
  Graph graph;
  const auto first = graph.add(Count{bench().at(word)});
  graph.add(StopAt{41}, after(first));
  const Executable executable = bench().runtime.load(graph);
  Run counted = bench().runtime.submit(executable, repeat(30));
  CHECK(counted.iterations() == 30);
  CHECK(bench().get(word) == 30);
  Run stopped = bench().runtime.submit(executable, repeat_until_stop());
  CHECK(stopped.iterations() == 42);
  CHECK(bench().get(word) == 72);
}

TEST_CASE("a task sees how many workers are idle") { check_idle_workers(bench().runtime); }

TEST_CASE("tasks that spawn tasks: the run ends after the last of them") {
  Buffer<std::uint64_t> sum = bench().runtime.allocate<std::uint64_t>(1);
  const std::size_t word = fresh(1);
  Graph graph;
  const auto root = graph.add(Fibonacci{20, sum.data(), bench().at(word)});
  const auto seen = graph.add(Load{bench().at(word)}, after(root));
  Run run = bench().runtime.submit(bench().runtime.load(graph));
  const std::uint32_t calls = run.get(seen);
  CHECK(sum.read()[0] == 6765);
  CHECK(calls == bench().get(word));
  CHECK(calls > 1000);
}

TEST_CASE("phases: all tasks of one end before the next begins") {
  constexpr std::uint32_t kPhases = 20, kWidth = 500;
  const std::size_t cursor = fresh(1), log = fresh(kPhases * kWidth);
  Graph graph;
  for (std::uint32_t p = 0; p < kPhases; ++p) {
    for (std::uint32_t i = 0; i < kWidth; ++i) graph.add(Log{bench().at(cursor), bench().at(log), p});
    graph.phase();
  }
  bench().runtime.submit(bench().runtime.load(graph)).wait();
  std::vector<std::uint32_t> order(kPhases * kWidth);
  bench().words.read(order.data(), order.size(), log);
  for (std::uint32_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == i / kWidth);
}

TEST_CASE("a worker that misses a meeting is found out on the GPU") {
  Bench bench(on_gpu(), 256);
  check_unequal_meetings(bench.runtime, bench.words);
}

TEST_CASE("grid_sync() keeps all workers in step") {
  constexpr std::uint32_t kRounds = 200, kPasses = 5;
  const std::size_t cells = fresh(bench().runtime.workers()), wrong = fresh(2);
  Graph graph;
  graph.add_grid(Rounds{bench().at(cells), bench().at(wrong), kRounds});
  Run run = bench().runtime.submit(bench().runtime.load(graph), repeat(kPasses));
  CHECK(run.iterations() == kPasses);
  CHECK(bench().get(wrong) == 0);
  CHECK(bench().get(wrong + 1) == kRounds * kPasses);
}

TEST_CASE("phased runs stop for failures, stop() and cancellation") {
  const std::size_t word = fresh(1);
  Graph failing;
  failing.add(Count{bench().at(word)});
  failing.add(Fail{9, 3});
  failing.phase();
  failing.add(Count{bench().at(word)});
  Run failed = bench().runtime.submit(bench().runtime.load(failing), repeat(10));
  check_says(error_of<RunError>([&] { failed.wait(); }), {"9", "task 1 (flywheel::testing::Fail)"});
  CHECK(failed.iterations() == 3);
  CHECK(bench().get(word) == 7);

  const std::size_t cells = fresh(bench().runtime.workers()), wrong = fresh(2);
  Graph endless;
  endless.add_grid(Rounds{bench().at(cells), bench().at(wrong), 1000});
  endless.add(StopAt{2});
  const Executable executable = bench().runtime.load(endless);
  CHECK(bench().runtime.submit(executable, repeat_until_stop()).iterations() == 3);
  Graph deaf;
  deaf.add_grid(Rounds{bench().at(cells), bench().at(wrong), 10});
  Run cancelled = bench().runtime.submit(bench().runtime.load(deaf), repeat_until_stop());
  CHECK_FALSE(cancelled.wait_for(std::chrono::milliseconds(20)));
  cancelled.cancel();
  CHECK(cancelled.status() == Status::cancelled);
}

TEST_CASE("a failing task skips what depends on it, and nothing else") {
  const std::size_t good = fresh(1), bad = fresh(1), other = fresh(1);
  Graph graph;
  const auto fail = graph.add(Fail{123, 0});
  const auto skipped = graph.add(Count{bench().at(bad)}, after(fail));
  graph.add(Count{bench().at(bad)}, after(skipped));
  for (int i = 0; i < 200; ++i) graph.add(Count{bench().at(good)});
  const Executable failing = bench().runtime.load(graph), fine = bench().counter(other);
  std::vector<Run> failed, well;
  for (int i = 0; i < 20; ++i) {
    failed.push_back(bench().runtime.submit(failing));
    well.push_back(bench().runtime.submit(fine));
  }
  for (Run& run : well) run.wait();
  for (Run& run : failed) {
    CHECK(run.status() == Status::task_failed);
    check_says(error_of<RunError>([&] { run.wait(); }), {"123", "task 0 (flywheel::testing::Fail)", "Remedy"});
  }
  CHECK(bench().get(bad) == 0);
  CHECK(bench().get(good) == 4000);
  CHECK(bench().get(other) == 20);
}

TEST_CASE("scratch that does not fit fails the task and names the option") {
  Graph graph;
  graph.add(Reduce{1 << 20});
  Run run = bench().runtime.submit(bench().runtime.load(graph));
  CHECK(run.status() == Status::scratch_exhausted);
  check_says(error_of<RunError>([&] { run.wait(); }), {"Options::scratch_bytes", "task 0 (flywheel::testing::Reduce)"});
}

TEST_CASE("a buffer the GPU cannot read is found by load()") {
  std::uint32_t on_host = 0;
  Graph host;
  host.add(Count{&on_host});
  check_says(error_of<GraphError>([&] { bench().runtime.load(host); }),
             {"task 0 (flywheel::testing::Count)", "buffer 'word'", "ordinary host memory", "Runtime::allocate()"});
  Graph null;
  null.add(Count{nullptr});
  check_says(error_of<GraphError>([&] { bench().runtime.load(null); }), {"buffer 'word'", "null"});
}

TEST_CASE("cancel: the live task sees it, waiting tasks are skipped, other runs go on") {
  const std::size_t gate = fresh(2), word = fresh(1);
  Graph graph;
  const auto held = graph.add(Gate{bench().at(gate), bench().at(gate + 1)});
  graph.add(Count{bench().at(word)}, after(held));
  const Executable executable = bench().runtime.load(graph);
  Run run = bench().runtime.submit(executable);
  REQUIRE(eventually([&] { return bench().get(gate) == 1; }));
  CHECK_FALSE(run.wait_for(std::chrono::milliseconds(5)));
  Run other = bench().runtime.submit(bench().counter(word));
  other.wait();
  run.cancel();
  CHECK(run.status() == Status::cancelled);
  check_says(error_of<RunError>([&] { run.wait(); }), {"cancelled"});
  CHECK(bench().get(word) == 1);
}

TEST_CASE("priorities: an urgent run overtakes a backlog") {
  Options options = on_gpu();
  options.workers = 1;
  Bench one(options, 256);
  constexpr std::uint32_t kBacklog = 100;
  Executable held;
  Run gate = one.hold(0, held);
  Graph backlog, urgent;
  for (std::uint32_t i = 0; i < kBacklog; ++i) backlog.add(Log{one.at(2), one.at(3), 1});
  urgent.add(Log{one.at(2), one.at(3), 2});
  Run slow = one.runtime.submit(one.runtime.load(backlog), Priority::low);
  Run fast = one.runtime.submit(one.runtime.load(urgent), Priority::high);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // both are queued behind the gate
  one.put(1, 1);
  slow.wait(), fast.wait(), gate.wait();
  std::vector<std::uint32_t> order(kBacklog + 1);
  one.words.read(order.data(), order.size(), 3);
  // A worker takes up to 8 tasks at a time, so that many may be ahead.
  CHECK(std::find(order.begin(), order.end(), 2u) - order.begin() <= 16);
}

TEST_CASE("many runs of one executable at once do not satisfy each other's waits") {
  const std::size_t word = fresh(1);
  Graph graph;
  std::vector<TaskRef<>> layer;
  for (int i = 0; i < 50; ++i) layer.push_back(graph.add(Count{bench().at(word)}));
  const auto join = graph.add(Count{bench().at(word)});
  for (const auto& task : layer) graph.edge(task, join);
  const Executable executable = bench().runtime.load(graph);
  std::vector<Run> runs;
  for (int i = 0; i < 2000; ++i) runs.push_back(bench().runtime.submit(executable));
  for (Run& run : runs) run.wait();
  CHECK(bench().get(word) == 51 * 2000);
}

// The program retires a run that it waits for, and does so before the dispatcher's thread has woken up: of many short runs
// the dispatcher may see none alive.
TEST_CASE("it parks only after a time without submissions, however short the runs are") {
  using Clock = std::chrono::steady_clock;
  Options options = on_gpu();
  options.park_after = std::chrono::milliseconds(2);
  options.yield_every = std::chrono::milliseconds(0);  // each yield is a launch
  Bench alone(options);
  const Executable counter = alone.counter(0);
  std::uint64_t long_gaps = 0;
  const auto end = Clock::now() + std::chrono::milliseconds(300);
  while (Clock::now() < end) {
    const auto begin = Clock::now();
    alone.runtime.submit(counter).wait();
    while (Clock::now() - begin < std::chrono::microseconds(100)) {}
    long_gaps += Clock::now() - begin > options.park_after / 2;
  }
  CHECK(alone.runtime.stats().launches <= 1 + long_gaps);
}

TEST_CASE("a runtime on another GPU than the first, used by threads that chose none") {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  if (count < 2) {
    WARN("one GPU: nothing to check");
    return;
  }
  Options options = on_gpu();
  options.device = 1;
  options.park_after = std::chrono::milliseconds(1);
  Bench second(options);
  int current = -1;
  REQUIRE(cudaGetDevice(&current) == cudaSuccess);
  CHECK(current == 0);
  const Executable counter = second.counter(0);
  for (int i = 0; i < 5; ++i) {
    std::thread([&] { second.runtime.submit(counter).wait(); }).join();
    REQUIRE(eventually([&] { return second.runtime.stats().parks > 0; }));
  }
  CHECK(second.get(0) == 5);
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, second.at(0)) == cudaSuccess);
  CHECK(attributes.device == 1);
}
