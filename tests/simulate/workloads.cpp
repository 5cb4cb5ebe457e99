#include "simulate/workloads.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "simulate/scheduler.hpp"
#include "simulate/tasks.hpp"

namespace flywheel::simulate {

namespace {

std::string text;
const char* shape_name = "";

[[noreturn]] void wrong(const std::string& what) { finding(what.c_str()); }
void expect(bool fine, const char* what) {
  if (!fine) wrong(what);
}

void describe_options(const Options& o) {
  text = std::string(shape_name) + ": " + std::to_string(o.workers) + " workers, max_runs " + std::to_string(o.max_runs) + ", overlap " + std::to_string(o.overlap) +
         ", queue_capacity " + std::to_string(o.queue_capacity) + ", spawn_capacity " + std::to_string(o.spawn_capacity) +
         ", stream_capacity " + std::to_string(o.stream_capacity) + ", park_after " + std::to_string(o.park_after.count());
}

Options options_of(Random& random, std::uint32_t most_tasks) {
  Options o;
  o.target = Target::cpu;
  o.workers = 1 + random.below(random.one_in(3) ? 8 : 4);
  o.heap_bytes = 1 << 12;
  o.max_tasks = 64;
  o.max_edges = 256;
  o.max_executables = 4;
  o.max_runs = 1u << random.below(4);
  o.max_waiting = 1 + random.below(8);
  o.overlap = 1 + random.below(3);
  o.spawn_capacity = 2u << random.below(3);
  o.queue_capacity = 2;
  while (o.queue_capacity < most_tasks + o.spawn_capacity) o.queue_capacity *= 2;
  if (random.one_in(2)) o.queue_capacity *= 4;
  o.stream_capacity = 1u << random.below(4);
  o.result_bytes = 1024;
  o.scratch_bytes = 64;
  o.park_after = std::chrono::milliseconds(random.one_in(3) ? 0 : random.below(20));
  o.shutdown_timeout = std::chrono::milliseconds(60'000);
  o.keep_successor = !random.one_in(4);
  o.log_level = "off";
  return o;
}

/// A runtime, and the words of its one graph.
struct Bench {
  Bench(const Options& options, std::uint32_t tasks)
      : options(options), runtime(start<Node, Cell, Leaf, Source, Nop>(options)), memory(runtime.allocate<std::uint32_t>(3 * tasks + 2)) {
    describe_options(options);
    words = {memory.data(), memory.data() + tasks, memory.data() + 2 * tasks};
  }
  void clear() { memory.write(std::vector<std::uint32_t>(memory.size())); }
  /// After all runs.
  void check_peak() {
    expect(runtime.stats().queue_peak <= options.queue_capacity, "stats().queue_peak is above Options::queue_capacity");
    expect(testing::peek_at(*words.wrong) == 0, "a task did not find what its predecessors wrote");
  }
  std::uint32_t count(std::uint32_t task) const { return testing::peek_at(words.counts[task]); }

  Options options;
  Runtime runtime;
  Buffer<std::uint32_t> memory;
  Words words;
};

struct NodeGraph {
  Graph graph;
  std::vector<TaskRef<std::uint32_t>> tasks;
};

NodeGraph random_graph(Random& random, const Words& words, std::uint32_t count, bool priorities) {
  NodeGraph made;
  constexpr Priority kPriority[] = {Priority::inherit, Priority::high, Priority::normal, Priority::low};
  const std::uint32_t dense = random.below(4);  // edges of most tasks
  for (std::uint32_t i = 0; i < count; ++i) {
    Node node{words, i, 0, {}, 0};
    for (std::uint32_t e = 0; i && e < random.below(dense + 1); ++e) {
      const std::uint32_t before = random.below(i);
      if (std::find(node.before, node.before + node.predecessors, before) == node.before + node.predecessors &&
          node.predecessors < kMostPredecessors)
        node.before[node.predecessors++] = before;
    }
    made.tasks.push_back(made.graph.add(node, priorities ? kPriority[random.below(4)] : Priority::inherit));
    for (std::uint32_t e = 0; e < node.predecessors; ++e) made.graph.edge(made.tasks[node.before[e]], made.tasks[i]);
  }
  return made;
}

void check_run(Run& run, const char* what) {
  const Status status = run.status();
  if (status != Status::ok) wrong(std::string(what) + ": " + describe(status).what);
}

/// Runs of one graph, one after the other, each of some passes.
void graphs(Random& random, bool compiled_too) {
  const std::uint32_t count = 1 + random.below(16);
  Bench bench(options_of(random, count), count);
  NodeGraph made = random_graph(random, bench.words, count, !compiled_too);
  Executable executable = compiled_too ? bench.runtime.load(made.graph, compiled) : bench.runtime.load(made.graph);
  const std::uint32_t runs = 1 + random.below(3);
  for (std::uint32_t r = 0; r < runs; ++r) {
    const std::uint32_t passes = 1 + random.below(6);
    bench.clear();
    Run run = bench.runtime.submit(executable, repeat(passes));
    check_run(run, "a run of a graph");
    expect(run.iterations() == passes, "a run says another number of passes than it was to do");
    for (std::uint32_t i = 0; i < count; ++i) {
      expect(bench.count(i) == passes, "a task did not run once in each pass");
      expect(run.get(made.tasks[i]) == passes * 1000 + i, "a task's result is wrong");
    }
  }
  bench.check_peak();
  if (random.one_in(2)) bench.runtime.shutdown();
}

void phases(Random& random) {
  const std::uint32_t width = 1 + random.below(5), steps = 1 + random.below(4), passes = 1 + random.below(3);
  Bench bench(options_of(random, width * steps), width * steps);
  Graph graph;
  for (std::uint32_t s = 0; s < steps; ++s) {
    if (s) graph.phase();
    for (std::uint32_t i = 0; i < width; ++i) graph.add(Cell{bench.words, s * width, s * width + i, width});
  }
  Executable executable = bench.runtime.load(graph);
  Run run = bench.runtime.submit(executable, repeat(passes));
  check_run(run, "a phased run");
  for (std::uint32_t i = 0; i < width * steps; ++i) expect(bench.count(i) == passes, "a phased task did not run once in each pass");
  bench.check_peak();
}

void streams(Random& random) {
  Bench bench(options_of(random, 2), 2);
  const Source source{bench.words.counts, random.below(12), random.below(6)};
  const std::uint32_t passes = 1 + random.below(3);
  Graph graph;
  graph.add(source);
  Executable executable = bench.runtime.load(graph);
  Run run = bench.runtime.submit(executable, repeat(passes));
  std::uint32_t seen = 0;
  while (const auto value = run.next<std::uint32_t>()) expect(*value == seen++, "streamed values are out of order");
  check_run(run, "a run with a stream");
  expect(seen == passes * source.values, "streamed values are missing");
  expect(bench.count(0) == passes * source.spawns, "spawned tasks did not run once each");
  bench.check_peak();
}

/// Runs that fail or are cancelled end alone.
void cancels(Random& random) {
  const std::uint32_t count = 1 + random.below(8), passes = 1 + random.below(20), bad = random.below(count);
  const bool fails = random.one_in(2);
  Bench bench(options_of(random, 2 * count), count + 1);
  Graph graph;
  for (std::uint32_t i = 0; i < count; ++i) graph.add(Node{bench.words, i, 0, {}, fails && i == bad ? 1 + random.below(passes) : 0});
  Graph other;
  other.add(Leaf{bench.words.counts + count});
  Executable executable = bench.runtime.load(graph), healthy = bench.runtime.load(other);
  Run run = bench.runtime.submit(executable, repeat(passes));
  Run beside = bench.runtime.submit(healthy);
  if (!fails || random.one_in(2)) run.cancel();
  const Status status = run.status();
  expect(status == Status::ok || status == Status::cancelled || (fails && status == Status::task_failed), "a run ended for no known reason");
  check_run(beside, "a run beside one that is cancelled");
  for (std::uint32_t i = 0; i < count; ++i) expect(bench.count(i) <= passes, "a task ran more often than once in each pass");
  expect(bench.count(count) == 1, "the task of the run beside did not run once");
}

/// Several threads submit, with bursts; the runtime may park between them.
void threads(Random& random, bool slowly) {
  const std::uint32_t submitters = 1 + random.below(3), each = 1 + random.below(6);
  Bench bench(options_of(random, 8), submitters);
  std::vector<std::thread> all;
  for (std::uint32_t s = 0; s < submitters; ++s) {
    const std::uint64_t seed = random.next();
    all.emplace_back([&bench, s, each, slowly, seed] {
      Random own{seed};
      Graph graph;
      graph.add(Leaf{bench.words.counts + s});
      Executable executable = bench.runtime.load(graph);
      std::vector<Run> runs;
      for (std::uint32_t i = 0; i < each; ++i) {
        runs.push_back(bench.runtime.submit(executable));
        if (slowly) std::this_thread::sleep_for(std::chrono::microseconds(own.below(30'000)));
        if (own.one_in(3)) check_run(runs.back(), "a submitted run");
      }
      for (Run& run : runs) check_run(run, "a submitted run");
    });
  }
  for (std::thread& thread : all) thread.join();
  for (std::uint32_t s = 0; s < submitters; ++s) expect(bench.count(s) == each, "a submitted task did not run once");
  bench.check_peak();
}

void roots(Random& random) {
  Options options = options_of(random, 18);
  options.workers = 1 + random.below(8);
  options.spawn_capacity = 2;
  options.queue_capacity = 2;
  while (options.queue_capacity < 2 * options.workers + 3) options.queue_capacity *= 2;
  Bench bench(options, 1);
  Graph graph;
  for (std::uint32_t i = 0; i < 2 * options.workers + 1; ++i) graph.add(Nop{});
  Executable executable = bench.runtime.load(graph);
  Run run = bench.runtime.submit(executable, repeat(1 + random.below(60)));
  check_run(run, "a run of many roots");
  bench.check_peak();
}

}  // namespace

const std::string& workload_text() { return text; }

void run_workload(std::uint64_t seed, Shape shape, Draws* draws) {
  text.clear();
  Random random{seed * 0x9e3779b97f4a7c15ull};
  if (shape == Shape::any) shape = static_cast<Shape>(random.below(static_cast<std::uint32_t>(Shape::any)));
  random.draws = draws;
  shape_name = kShapeNames[static_cast<int>(shape)];
  try {
    switch (shape) {
      case Shape::graphs: return graphs(random, false);
      case Shape::compiled: return graphs(random, true);
      case Shape::phases: return phases(random);
      case Shape::streams: return streams(random);
      case Shape::cancels: return cancels(random);
      case Shape::threads: return threads(random, false);
      case Shape::parks: return threads(random, true);
      default: return roots(random);
    }
  } catch (const std::exception& error) {
    wrong(std::string("an exception: ") + error.what());
  }
}

}  // namespace flywheel::simulate
