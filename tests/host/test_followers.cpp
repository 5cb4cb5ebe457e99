// Runs that follow runs: order, failures, cancellation, scarce slots, and kernels that come and go in between.
#include <thread>

#include "support/random_followers.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

enum class Kind { dynamic, phased, compiled };
constexpr Kind kKinds[] = {Kind::dynamic, Kind::phased, Kind::compiled};

Executable load(Bench& bench, const Graph& graph, Kind kind) {
  return kind == Kind::compiled ? bench.runtime.load(graph, compiled) : bench.runtime.load(graph);
}

/// Writes `number` into the log, which begins at word 8; word 7 counts its entries.
Executable logger(Bench& bench, std::uint32_t number, Kind kind = Kind::dynamic) {
  Graph graph;
  graph.add(Log{bench.at(7), bench.at(8), number});
  if (kind == Kind::phased) graph.phase();
  return load(bench, graph, kind);
}
std::vector<std::uint32_t> logged(Bench& bench) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < bench.get(7); ++i) all.push_back(bench.get(8 + i));
  return all;
}
Executable failing(Bench& bench, std::uint32_t code) {
  Graph graph;
  graph.add(Fail{code, 0});
  return bench.runtime.load(graph);
}
/// The state of a device on which few runs fit.
Options with_slots(std::uint32_t max_runs, std::uint32_t workers = 2) {
  Options options = on_cpu(workers);
  options.max_runs = max_runs;
  return options;
}

}  // namespace

TEST_CASE("a run starts when those that it follows have ended, of whatever kinds") {
  for (const Kind first : kKinds)
    for (const Kind second : kKinds) {
      Bench bench(on_cpu(3));
      Executable held;
      Run gate = bench.hold(0, held);
      Run one = bench.runtime.submit(logger(bench, 1, first), after(gate));
      Run two = bench.runtime.submit(logger(bench, 2, second), after(one));
      CHECK_FALSE(two.wait_for(std::chrono::milliseconds(2)));
      CHECK(logged(bench).empty());
      bench.put(1, 1);
      two.wait();
      CHECK(logged(bench) == std::vector<std::uint32_t>{1, 2});
      CHECK(one.done());
      CHECK(gate.done());
    }
}

TEST_CASE("a run follows many, and many follow one") {
  Bench bench(on_cpu(3));
  Executable held;
  Run gate = bench.hold(0, held);
  const Executable count = bench.counter(2);
  for (const std::size_t width : {1, 3, 4, 5, 20}) {
    std::vector<Run> runs;
    for (std::size_t i = 0; i < width; ++i) runs.push_back(bench.runtime.submit(bench.counter(2), after(gate)));
    Graph graph;
    const auto read = graph.add(Load{bench.at(2)});
    Run last = bench.runtime.submit(bench.runtime.load(graph), after(runs));
    CHECK_FALSE(last.done());
    bench.put(1, 1);
    CHECK(last.get(read) == width);
    bench.put(2, 0);
    bench.put(1, 0);
    gate = bench.hold(0, held);
  }
  bench.put(1, 1);
}

TEST_CASE("a predecessor that has ended costs nothing if it ended well, and fails the run if not") {
  Bench bench(on_cpu());
  Run well = bench.runtime.submit(bench.counter(0)), badly = bench.runtime.submit(failing(bench, 7));
  well.wait();
  CHECK(badly.status() == Status::task_failed);
  bench.runtime.submit(bench.counter(0), after(well, well)).wait();
  Run run = bench.runtime.submit(bench.counter(0), after(well, badly));
  CHECK(run.status() == Status::predecessor_failed);
  check_says(error_of<RunError>([&] { run.wait(); }),
             {"was to follow failed", "a task failed with its own code, 7, in task 0 (", "Fail)", "Remedy: see why"});
  CHECK(bench.get(0) == 2);
}

TEST_CASE("a failure passes down a chain, and names the first run that failed") {
  for (const std::uint32_t slots : {1, 2, 3, 256}) {
    Bench bench(with_slots(slots));
    Executable held;
    Run gate = bench.hold(0, held);
    Graph graph;
    const auto open = graph.add(Fail{9, 0});
    graph.add(Count{bench.at(2)}, after(open));
    std::vector<Run> chain{bench.runtime.submit(bench.runtime.load(graph), after(gate))};
    const Executable count = bench.counter(2);
    for (int i = 0; i < 200; ++i) chain.push_back(bench.runtime.submit(count, after(chain.back()), repeat(2)));
    Run beside = bench.runtime.submit(count, after(gate));
    bench.put(1, 1);
    CHECK(chain.back().status() == Status::predecessor_failed);
    check_says(error_of<RunError>([&] { chain.back().wait(); }), {"own code, 9, in task 0 ("});
    for (std::size_t i = 1; i < chain.size(); ++i) {
      CHECK(chain[i].status() == Status::predecessor_failed);
      CHECK(chain[i].iterations() == 0);
    }
    beside.wait();
    CHECK(bench.get(2) == 1);
  }
}

TEST_CASE("a follower is cancelled while it waits, and a cancelled predecessor fails its followers") {
  for (const std::uint32_t slots : {1, 2, 256}) {
    Bench bench(with_slots(slots));
    Executable held;
    Run gate = bench.hold(0, held);
    const Executable count = bench.counter(2);
    Run first = bench.runtime.submit(count, after(gate)), second = bench.runtime.submit(count, after(first));
    Run third = bench.runtime.submit(count, after(second));
    second.cancel();
    if (slots > 4) bench.runtime.submit(bench.counter(3)).wait();  // the message of the cancellation was before its own
    else CHECK(second.status() == Status::cancelled);              // it was in the backlog
    CHECK_FALSE(first.done());
    bench.put(1, 1);
    first.wait();
    CHECK(second.status() == Status::cancelled);
    CHECK(third.status() == Status::predecessor_failed);
    check_says(error_of<RunError>([&] { third.wait(); }), {"the run was cancelled"});
    CHECK(bench.get(2) == 1);

    bench.put(1, 0);
    gate = bench.hold(0, held);
    Run fourth = bench.runtime.submit(count, after(gate));
    gate.cancel();
    CHECK(fourth.status() == Status::predecessor_failed);
    CHECK(bench.get(2) == 1);
    bench.runtime.submit(count).wait();
    CHECK(bench.get(2) == 2);
  }
}

TEST_CASE("a chain of 1000 runs, submitted ahead, with few and many slots") {
  for (const std::uint32_t slots : {1, 2, 3, 256}) {
    Options options = with_slots(slots);
    options.overlap = 64;
    Bench bench(options, 1100);
    Graph graph;
    const auto number = graph.param<std::uint64_t>();
    const auto read = graph.add(Read{number});
    graph.add(Log{bench.at(7), bench.at(8), 5}, after(read));
    const Executable executable = bench.runtime.load(graph);
    std::vector<Run> chain{bench.runtime.submit(executable, set(number, 0))};
    for (std::uint64_t i = 1; i < 1000; ++i)
      chain.push_back(bench.runtime.submit(executable, set(number, i), after(chain.back())));
    for (std::uint64_t i = 0; i < 1000; ++i) CHECK(chain[i].get(read) == i);
    CHECK(bench.get(7) == 1000);
  }
}

TEST_CASE("followers keep their order while the kernel yields and parks") {
  for (const Kind kind : kKinds) {
    Options options = on_cpu(3);
    options.park_after = std::chrono::milliseconds(1);
    Bench bench(options, 400);
    std::vector<Executable> loggers;
    for (std::uint32_t i = 0; i < 10; ++i) loggers.push_back(logger(bench, i, i % 3 == 1 ? kind : Kind::dynamic));
    Executable held;
    std::vector<std::uint32_t> expected;
    for (std::uint32_t round = 0; round < 20; ++round) {
      bench.put(1, 0);
      Run last = bench.hold(0, held);
      for (std::uint32_t i = 0; i < 10; ++i) {
        last = bench.runtime.submit(loggers[i], after(last));
        expected.push_back(i);
      }
      bench.runtime.yield();
      if (round % 3 == 0) {
        bench.put(1, 1);
        const Pause pause(bench.runtime);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      bench.put(1, 1);
      last.wait();
      if (round % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    CHECK(logged(bench) == expected);
  }
}

TEST_CASE("a follower takes long parameters, streams, repeats and spawns like any run") {
  Bench bench(on_cpu());
  Executable held;
  Run gate = bench.hold(0, held);
  Graph graph;
  std::vector<Param<std::uint64_t>> params;
  std::vector<TaskRef<std::uint64_t>> reads;
  for (std::uint64_t i = 0; i < 14; ++i) {  // 112 bytes: more than fit beside what the message says of predecessors
    params.push_back(graph.param<std::uint64_t>(i));
    reads.push_back(graph.add(Read{params.back()}));
  }
  graph.add(EmitRange{100, 3});
  graph.add(TrySpawn{bench.at(2)});
  Run run = bench.runtime.submit(bench.runtime.load(graph), repeat(2), set(params[13], 77), after(gate));
  bench.put(1, 1);
  for (std::uint32_t i = 0; i < 6; ++i) CHECK(run.next<std::uint32_t>() == 100 + i);
  for (std::uint64_t i = 0; i < 14; ++i) CHECK(run.get(reads[i]) == (i == 13 ? 77 : i));
  CHECK(run.iterations() == 2);
  CHECK(bench.get(2) == 2);
}

TEST_CASE("results of runs and of single tasks are taken as parameters on the device") {
  for (const Kind kind : kKinds) {
    for (const std::uint32_t slots : {1, 2, 256}) {
      Bench bench(with_slots(slots, 3));
      Executable held;
      Run gate = bench.hold(0, held);
      Graph square;
      const auto first = square.param<std::uint64_t>(), second = square.param<std::uint64_t>();
      const auto third = square.param<std::uint64_t>(5);
      const auto one = square.add(Read{first}), two = square.add(Read{second}), three = square.add(Read{third});
      const Executable executable = load(bench, square, kind);
      std::vector<Run> chain{bench.runtime.submit(executable, set(first, 1), set(second, 2), after(gate))};
      for (int i = 0; i < 30; ++i)
        chain.push_back(bench.runtime.submit(executable, set(second, chain.back(), one), set(first, chain.back(), two),
                                             set(third, chain[chain.size() / 2], one)));
      Future<std::uint64_t> nine = bench.runtime.submit(Square{3});
      Run last = bench.runtime.submit(executable, set(first, nine), set(second, chain.back(), two), after(nine, nine));
      bench.put(1, 1);
      CHECK(last.get(one) == 9);
      CHECK(last.get(two) == chain.back().get(two));
      CHECK(last.get(three) == 5);
      for (std::uint64_t i = 0; i < chain.size(); ++i) {
        CHECK(chain[i].get(one) == 1 + i % 2);
        CHECK(chain[i].get(two) == 2 - i % 2);
        if (i) CHECK(chain[i].get(three) == 1 + i / 2 % 2);
      }
      CHECK(nine.get() == 9);
    }
  }
}

TEST_CASE("a parameter of few bytes leaves its neighbours alone, and more values than fit a message come through") {
  Bench bench(on_cpu());
  Executable held;
  Graph loads;
  const auto load = loads.add(Load{bench.at(2)});
  const Executable loading = bench.runtime.load(loads);
  bench.put(2, 7);
  Run gate = bench.hold(0, held);
  Run seven = bench.runtime.submit(loading, after(gate));
  Graph graph;
  const auto small = graph.param<std::uint32_t>(1), beside = graph.param<std::uint32_t>(2);
  std::vector<Param<std::uint64_t>> params;
  std::vector<TaskRef<std::uint64_t>> reads;
  for (int i = 0; i < 7; ++i) {
    params.push_back(graph.param<std::uint64_t>());
    reads.push_back(graph.add(Read{params.back()}));
  }
  graph.add(Read{{small.offset, small.graph}});  // both halves
  const auto both = graph.add(Read{{small.offset, small.graph}});
  const Executable executable = bench.runtime.load(graph);
  std::vector<Future<std::uint64_t>> squares;
  for (std::uint32_t i = 0; i < 7; ++i) squares.push_back(bench.runtime.submit(Square{i}));
  Run run = bench.runtime.submit(executable, set(small, seven, load), set(params[0], squares[0]), set(params[1], squares[1]),
                                 set(params[2], squares[2]), set(params[3], squares[3]), set(params[4], squares[4]),
                                 set(params[5], squares[5]), set(params[6], squares[6]));
  bench.put(1, 1);
  for (std::uint64_t i = 0; i < 7; ++i) CHECK(run.get(reads[i]) == i * i);
  CHECK(run.get(both) == (std::uint64_t{2} << 32 | 7));
  (void)beside;
}

TEST_CASE("runs of all kinds follow single tasks, and batches follow and are followed") {
  for (const Kind kind : kKinds) {
    Bench bench(on_cpu(3));
    Executable held;
    Run gate = bench.hold(0, held);
    Batch<std::uint64_t> squares = bench.runtime.submit(squares_from(1, 2000), after(gate), Priority::high);
    Batch<void> counts = bench.runtime.submit(std::vector<Count>(700, Count{bench.at(2)}), after(squares));
    BatchBuilder mixed;
    const auto sum = mixed.add(Load{bench.at(2)});
    MixedBatch loaded = bench.runtime.submit_batch(mixed, after(counts));
    Future<std::uint64_t> single = bench.runtime.submit(Square{4});
    Run last = bench.runtime.submit(logger(bench, 3, kind), after(loaded, single, squares));
    CHECK_FALSE(last.wait_for(std::chrono::milliseconds(1)));
    bench.put(1, 1);
    last.wait();
    CHECK(loaded.get(sum) == 700);
    CHECK(squares.get(1999) == 2000u * 2000u);
    CHECK(single.get() == 16);
  }
}

TEST_CASE("a single task follows runs, batches and single tasks, and is followed") {
  for (const std::uint32_t slots : {1, 2, 256})
    for (const Kind kind : kKinds) {
      Bench bench(with_slots(slots, 3));
      Executable held;
      Run gate = bench.hold(0, held);
      Run first = bench.runtime.submit(logger(bench, 1, kind), after(gate));
      Batch<void> counts = bench.runtime.submit(std::vector<Count>(700, Count{bench.at(2)}), after(first));
      Future<std::uint32_t> all = bench.runtime.submit(Load{bench.at(2)}, after(counts, first), Priority::high);
      Future<std::uint32_t> one = bench.runtime.submit(Load{bench.at(8)}, after(all));
      Graph graph;
      const auto param = graph.param<std::uint64_t>();
      const auto read = graph.add(Read{param});
      Future<std::uint64_t> nine = bench.runtime.submit(Square{3}, after(all));
      Run last = bench.runtime.submit(load(bench, graph, kind), set(param, nine), after(one));
      CHECK_FALSE(all.done());
      CHECK_FALSE(one.wait_for(std::chrono::milliseconds(1)));
      bench.put(1, 1);
      CHECK(last.get(read) == 9);
      CHECK(all.get() == 700);
      CHECK(one.status() == Status::ok);
      CHECK(one.get() == 1);
      CHECK(bench.runtime.submit(Square{5}, after(all, last)).get() == 25);  // all have ended
      CHECK(bench.runtime.submit(Square{6}, AfterRuns{}).get() == 36);
    }
}

TEST_CASE("a single task that follows fails, is cancelled and is refused like any") {
  Bench bench(on_cpu());
  Executable held;
  Run gate = bench.hold(0, held);
  Future<void> fails = bench.runtime.submit(Fail{3, 0}, after(gate));
  Future<void> behind = bench.runtime.submit(Count{bench.at(2)}, after(fails));
  Future<void> cancelled = bench.runtime.submit(Count{bench.at(2)}, after(gate));
  cancelled.cancel();
  bench.put(1, 1);
  CHECK(fails.status() == Status::task_failed);
  check_says(error_of<RunError>([&] { fails.wait(); }), {"own code, 3, in a single task (", "Fail)", "Remedy: "});
  CHECK(behind.status() == Status::predecessor_failed);
  check_says(error_of<RunError>([&] { behind.get(); }), {"was to follow failed", "own code, 3, in a single task ("});
  // The task behind the failed one never runs; the cancelled one does where cancel() comes too late.
  const bool late = cancelled.status() == Status::ok;
  CHECK((late || cancelled.status() == Status::cancelled));
  CHECK(bench.get(2) == late);
  check_says(error_of<UsageError>([&] { bench.runtime.submit(Square{1}, after(Run{})); }), {"this Run is empty"});
  check_says(error_of<UsageError>([&] { bench.runtime.submit(Square{1}, after(Future<void>{})); }), {"this Future is empty"});
  Bench other(on_cpu());
  Future<std::uint64_t> foreign = other.runtime.submit(Square{1}, AfterRuns{});
  check_says(error_of<UsageError>([&] { bench.runtime.submit(Square{1}, after(foreign)); }), {"another runtime"});
  check_says(error_of<GraphError>([&] { bench.runtime.submit(Count{nullptr}, after(fails)); }), {"null"});
}

TEST_CASE("a single task that fails or is cancelled fails the runs that follow it") {
  for (const std::uint32_t slots : {1, 256}) {
    Bench bench(with_slots(slots, 1));
    Executable held;
    Run gate = bench.hold(0, held);
    Future<void> failing = bench.runtime.submit(Fail{3, 0});
    Run one = bench.runtime.submit(bench.counter(2), after(failing));
    Future<void> cancelled = bench.runtime.submit(Count{bench.at(2)});
    Run two = bench.runtime.submit(bench.counter(2), after(cancelled));
    Run three = bench.runtime.submit(logger(bench, 1, Kind::phased), after(cancelled));
    cancelled.cancel();
    bench.put(1, 1);
    CHECK(one.status() == Status::predecessor_failed);
    check_says(error_of<RunError>([&] { one.wait(); }), {"own code, 3, in a single task ("});
    const bool in_time = cancelled.status() == Status::cancelled;  // else the task had begun when the message came
    for (Run* run : {&two, &three}) CHECK(run->status() == (in_time ? Status::predecessor_failed : Status::ok));
    CHECK(bench.get(2) == (in_time ? 0 : 2));
    Run late = bench.runtime.submit(bench.counter(2), after(failing));
    CHECK(late.status() == Status::predecessor_failed);
  }
}

TEST_CASE("a run whose results are taken keeps its slot until they are") {
  Bench bench(with_slots(3, 2));
  Executable held;
  Run gate = bench.hold(0, held);
  Graph graph;
  const auto param = graph.param<std::uint64_t>();
  const auto read = graph.add(Read{param});
  const Executable executable = bench.runtime.load(graph);
  Run source = bench.runtime.submit(executable, set(param, 41));
  Run follower = bench.runtime.submit(executable, set(param, source, read), after(gate));
  CHECK(source.get(read) == 41);
  for (std::uint64_t i = 0; i < 50; ++i) bench.runtime.submit(bench.counter(2), Priority::high);
  bench.put(1, 1);
  CHECK(follower.get(read) == 41);
}

TEST_CASE("a collective run that follows keeps no other collective run out") {
  Bench bench(on_cpu());
  Run endless = bench.runtime.submit(bench.counter(0), repeat_until_stop());
  Run follower = bench.runtime.submit(logger(bench, 1, Kind::phased), after(endless));
  for (const Kind kind : {Kind::phased, Kind::compiled}) bench.runtime.submit(logger(bench, 2, kind)).wait();
  CHECK_FALSE(follower.done());
  endless.cancel();
  CHECK(follower.status() == Status::predecessor_failed);
  CHECK(logged(bench) == std::vector<std::uint32_t>{2, 2});
}

TEST_CASE("after() refuses an empty run and one of another runtime") {
  Bench bench(on_cpu()), other(on_cpu());
  const Executable count = bench.counter(0);
  check_says(error_of<UsageError>([&] { bench.runtime.submit(count, after(Run())); }), {"after()", "empty"});
  Run strange = other.runtime.submit(other.counter(0));
  check_says(error_of<UsageError>([&] { bench.runtime.submit(count, after(strange)); }), {"after()", "another runtime"});
  check_says(error_of<UsageError>([&] { bench.runtime.submit(count, after(Future<float>())); }), {"after()", "empty"});
  Graph graph;
  const auto param = graph.param<std::uint32_t>();
  graph.add(Load{bench.at(1)});
  const Executable executable = bench.runtime.load(graph);
  Run run = bench.runtime.submit(count);
  const TaskRef<std::uint32_t> other_task{0, 0, 1};
  check_says(error_of<UsageError>([&] { bench.runtime.submit(executable, set(param, run, other_task)); }),
             {"set()", "another graph"});
  bench.runtime.submit(count, after(std::vector<Run>{})).wait();
}

TEST_CASE("shutdown ends what waits for a run that does not end") {
  Options options = with_slots(4);
  options.shutdown_timeout = std::chrono::milliseconds(50);
  Bench bench(options);
  Executable held;
  Run gate = bench.hold(0, held);
  std::vector<Run> chain{gate};
  for (int i = 0; i < 20; ++i) chain.push_back(bench.runtime.submit(bench.counter(2), after(chain.back())));
  chain.push_back(bench.runtime.submit(logger(bench, 1, Kind::compiled), after(chain.front())));
  bench.runtime.shutdown();
  for (Run& run : chain) CHECK(run.status() != Status::ok);
  CHECK(bench.get(2) == 0);
}

TEST_CASE("random graphs of followers do what a plain loop does") {
  for (int round = 0; round < 20; ++round) {
    FLYWHEEL_TEST_SEED(seed);
    Random random(seed);
    Options options = on_cpu(pick(random, 1, 4));
    options.max_runs = pick(random, 0, 1) ? pick(random, 1, 4) : pick(random, 5, 64);
    options.overlap = pick(random, 1, 8);
    options.max_waiting = pick(random, 0, 1) ? pick(random, 1, 4) : 1000;
    options.park_after = std::chrono::milliseconds(pick(random, 1, 100));
    INFO("workers " << options.workers << ", slots " << options.max_runs << ", waiting " << options.max_waiting);
    Runtime runtime = start<FollowerStep, FollowerBeside>(options);
    RandomFollowers graph(runtime, random(), 300);
    graph(pick(random, 1, 3), pick(random, 0, 1));
  }
}
