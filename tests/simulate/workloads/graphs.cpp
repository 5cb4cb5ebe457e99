// Graphs of all kinds, one run after the other.
#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

/// Runs of one graph, one after the other, each of some passes.
void run_graphs(Random& random, bool compiled_too) {
  const std::uint32_t count = 1 + random.below(16);
  Bench bench(options_of(random, count), count);
  NodeGraph made = random_graph(random, bench.words, count, !compiled_too);
  Executable executable = compiled_too ? bench.runtime.load(made.graph, compiled) : bench.runtime.load(made.graph);
  const std::uint32_t runs = 1 + random.below(3);
  for (std::uint32_t r = 0; r < runs; ++r) {
    const std::uint32_t passes = 1 + random.below(6);
    bench.clear();
    owe(bench.options, count * passes, 1);
    Run run = bench.runtime.submit(executable, repeat(passes));
    check_run(run, "a run of a graph");
    expect(run.iterations() == passes, "a run says another number of passes than it was to do");
    for (std::uint32_t i = 0; i < count; ++i) {
      expect(bench.count(i) == passes, "a task did not run once in each pass");
      expect(run.get(made.tasks[i]) == passes * 1000 + i, "a task's result is wrong");
    }
  }
  bench.check_peak();
  if (random.one_in(2)) check_end(bench.runtime, executable);
}

void run_phases(Random& random) {
  const std::uint32_t width = 1 + random.below(5), steps = 1 + random.below(4), passes = 1 + random.below(3);
  Bench bench(options_of(random, width * steps), width * steps);
  Graph graph;
  for (std::uint32_t s = 0; s < steps; ++s) {
    if (s) graph.phase();
    for (std::uint32_t i = 0; i < width; ++i) graph.add(Cell{bench.words, s * width, s * width + i, width});
  }
  Executable executable = bench.runtime.load(graph);
  owe(bench.options, width * steps * passes, 1);
  Run run = bench.runtime.submit(executable, repeat(passes));
  check_run(run, "a phased run");
  for (std::uint32_t i = 0; i < width * steps; ++i)
    expect(bench.count(i) == passes, "a phased task did not run once in each pass");
  bench.check_peak();
  check_end(bench.runtime, executable);
}

void run_roots(Random& random) {
  Options options = options_of(random, 18);
  options.workers = 1 + random.below(8);
  options.spawn_capacity = 2;
  options.queue_capacity = 2;
  while (options.queue_capacity < 2 * options.workers + 3) options.queue_capacity *= 2;
  Bench bench(options, 1);
  Graph graph;
  for (std::uint32_t i = 0; i < 2 * options.workers + 1; ++i) graph.add(Nop{});
  Executable executable = bench.runtime.load(graph);
  const std::uint32_t passes = 1 + random.below(60);
  owe(options, passes * graph.size(), 1);
  Run run = bench.runtime.submit(executable, repeat(passes));
  check_run(run, "a run of many roots");
  bench.check_peak();
  check_end(bench.runtime, executable);
}

}  // namespace flywheel::simulate
