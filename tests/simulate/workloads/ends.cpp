// Streams, failures and cancels.
#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

void run_streams(Random& random) {
  Bench bench(options_of(random, 2), 2);
  const Source source{bench.words.counts, random.below(12), random.below(6)};
  const std::uint32_t passes = 1 + random.below(3);
  Graph graph;
  graph.add(source);
  Executable executable = bench.runtime.load(graph);
  Run run = bench.runtime.submit(executable, repeat(passes));
  owe(bench.options, passes * (1 + source.spawns + source.values), 1);
  std::uint32_t seen = 0;
  while (const auto value = run.next<std::uint32_t>()) expect(*value == seen++, "streamed values are out of order");
  check_run(run, "a run with a stream");
  expect(seen == passes * source.values, "streamed values are missing");
  expect(bench.count(0) == passes * source.spawns, "spawned tasks did not run once each");
  bench.check_peak();
  check_end(bench.runtime, executable);
}

/// Runs that fail or are cancelled end alone.
void run_cancels(Random& random) {
  const std::uint32_t count = 1 + random.below(8), passes = 1 + random.below(20), bad = random.below(count);
  const bool fails = random.one_in(2);
  Bench bench(options_of(random, 2 * count), count + 1);
  Graph graph;
  for (std::uint32_t i = 0; i < count; ++i)
    graph.add(Node{bench.words, i, 0, {}, fails && i == bad ? 1 + random.below(passes) : 0});
  Graph other;
  other.add(Leaf{bench.words.counts + count});
  Executable executable = bench.runtime.load(graph), healthy = bench.runtime.load(other);
  Run run = bench.runtime.submit(executable, repeat(passes));
  owe(bench.options, count * passes + 1, 2);
  Run beside = bench.runtime.submit(healthy);
  if (!fails || random.one_in(2)) run.cancel();
  const Status status = run.status();
  expect(status == Status::ok || status == Status::cancelled || (fails && status == Status::task_failed),
         "a run ended for no known reason");
  check_run(beside, "a run beside one that is cancelled");
  for (std::uint32_t i = 0; i < count; ++i) expect(bench.count(i) <= passes, "a task ran more often than once in each pass");
  expect(bench.count(count) == 1, "the task of the run beside did not run once");
  check_end(bench.runtime, executable);
}

}  // namespace flywheel::simulate
