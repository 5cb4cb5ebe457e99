// Tasks that spawn tasks, and how they learn whether it pays.
#include "support/idle_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// fib(n), and a task after it that reads how many tasks there were.
struct SpawnTree {
  SpawnTree(Bench& bench, std::uint32_t n) : sum(bench.runtime.allocate<std::uint64_t>(1)) {
    Graph graph;
    root = graph.add(Fibonacci{n, sum.data(), bench.at(0)});
    seen = graph.add(Load{bench.at(0)}, after(root));
    executable = bench.runtime.load(graph);
  }
  Buffer<std::uint64_t> sum;
  TaskRef<> root{};
  TaskRef<std::uint32_t> seen{};
  Executable executable;
};

/// Calls of the recursion for fib(n).
std::uint32_t calls(std::uint32_t n) { return n < 2 ? 1 : 1 + calls(n - 1) + calls(n - 2); }

/// Plain words, each written by one task of a pass: only the order of tasks stands between them and those who read.
struct Words {
  std::uint32_t* at;
  Param<std::uint32_t> salt;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t value(Block& block, std::uint32_t i) const {
    return block.param(salt) * 1000 + block.iteration() * 10 + i;
  }
  template <class Block>
  FLYWHEEL_TASK void write(Block& block, std::uint32_t i) const {
    at[i] = value(block, i);
  }
};

/// Its own members are from before the call of spawn(): `first` words must be there, and it writes the next.
struct Last : Words {
  std::uint32_t first;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < first; ++i) wrong += at[i] != value(block, i);
    at[first] = wrong ? ~0u : value(block, first);
  }
};
/// Writes word `index`, then spawns who writes the next.
template <class Next>
struct Spawner : Words {
  std::uint32_t index;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    write(block, index);
    const Next next{*this, index + 1};
    while (!block.spawn(next)) {}
  }
};
struct ReadLast : Words {
  std::uint32_t index;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (at[index] != value(block, index)) block.fail(1 + block.iteration());
  }
};
using Middle = Spawner<Last>;
using First = Spawner<Middle>;

}  // namespace

TEST_CASE("a spawned task finds what its spawners wrote, those before them, and what those had spawned") {
  constexpr std::uint32_t kGraphs = 6;
  Runtime runtime = start<First, Middle, Last, ReadLast>(on_cpu(3));
  Buffer<std::uint32_t> memory = runtime.allocate<std::uint32_t>(kGraphs * 16);
  std::vector<Run> runs;
  for (std::uint32_t g = 0; g < kGraphs; ++g) {
    Graph graph;
    const Words words{memory.data() + 16 * g, graph.param<std::uint32_t>(g)};
    const auto before = graph.add(Middle{words, 0});                  // words 0 and, spawned, 1
    const auto after_it = graph.add(First{words, 2}, after(before));  // 2, spawned 3, spawned 4
    graph.add(ReadLast{words, 4}, after(after_it));
    runs.push_back(runtime.submit(runtime.load(graph), repeat(200)));
  }
  for (Run& run : runs) CHECK(run.status() == Status::ok);
}

TEST_CASE("a tree of tasks is complete before what waits for its root") {
  Bench bench(on_cpu(3));
  SpawnTree tree(bench, 15);
  Run run = bench.runtime.submit(tree.executable);
  CHECK(run.get(tree.seen) == calls(15));
  CHECK(tree.sum.read()[0] == 610);
}

TEST_CASE("with a small pool spawn() declines, and nothing is lost") {
  Options options = on_cpu(3);
  options.spawn_capacity = 8;
  Bench bench(options);
  SpawnTree tree(bench, 14);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    Run run = bench.runtime.submit(tree.executable);
    const std::uint32_t seen = run.get(tree.seen);
    CHECK(seen == bench.get(0));
    CHECK(tree.sum.read()[0] == i * 377);
  }
}

TEST_CASE("trees of overlapping and repeated runs do not mix") {
  Bench bench(on_cpu(3));
  SpawnTree tree(bench, 9);
  std::vector<Run> runs;
  for (int i = 0; i < 30; ++i) runs.push_back(bench.runtime.submit(tree.executable, repeat(5)));
  for (Run& run : runs) CHECK(run.iterations() == 5);
  CHECK(tree.sum.read()[0] == 150 * 34);
  CHECK(bench.get(0) == 150 * calls(9));
}

TEST_CASE("a spawning sink ends the run only with its last task") {
  Bench bench(on_cpu(3));
  Buffer<std::uint64_t> sum = bench.runtime.allocate<std::uint64_t>(1);
  Graph graph;
  graph.add(Fibonacci{12, sum.data(), bench.at(0)});
  const Executable executable = bench.runtime.load(graph);
  for (std::uint64_t i = 1; i <= 50; ++i) {
    bench.runtime.submit(executable).wait();
    CHECK(sum.read()[0] == i * 144);
    CHECK(bench.get(0) == i * calls(12));
  }
}

TEST_CASE("cancelling a tree gives its tasks back to the pool") {
  Options options = on_cpu(3);
  options.spawn_capacity = 64;
  Bench bench(options);
  SpawnTree tree(bench, 16);
  for (int i = 0; i < 30; ++i) {
    Run run = bench.runtime.submit(tree.executable);
    std::this_thread::sleep_for(std::chrono::microseconds(50 * i));
    run.cancel();
    const Status status = run.status();
    CHECK((status == Status::cancelled || status == Status::ok));
  }
  Graph graph;  // all 64 records must be there again
  const auto gate = graph.add(Gate{bench.at(2), bench.at(3)});
  std::vector<TaskRef<std::uint32_t>> spawners;
  for (int i = 0; i < 64; ++i) spawners.push_back(graph.add(TrySpawn{bench.at(4)}, after(gate)));
  Run run = bench.runtime.submit(bench.runtime.load(graph), Priority::high);
  bench.put(3, 1);
  std::uint32_t spawned = 0;
  for (const auto& task : spawners) spawned += run.get(task);
  CHECK(spawned == 64);
  CHECK(bench.get(4) == 64);
}

TEST_CASE("spawn() in a phased graph fails the task and says why") {
  Bench bench(on_cpu());
  Graph graph;
  graph.add(TrySpawn{bench.at(0)});
  graph.phase();
  graph.add(Count{bench.at(1)});
  Run run = bench.runtime.submit(bench.runtime.load(graph));
  CHECK(run.status() == Status::spawn_in_phase);
  check_says(error_of<RunError>([&] { run.wait(); }),
             {"phased or compiled graph", "spawn", "task 0 (flywheel::testing::TrySpawn)"});
  bench.runtime.submit(bench.counter(2)).wait();
  CHECK(bench.get(0) == 0);
  CHECK(bench.get(1) == 0);
}

TEST_CASE("a task sees how many workers are idle") {
  for (const std::uint32_t workers : {2, 3, 5}) {
    Runtime runtime = small_runtime(on_cpu(workers));
    for (int i = 0; i < 10; ++i) check_idle_workers(runtime);
  }
}
