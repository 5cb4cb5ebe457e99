// Trees of spawned tasks in tiny pools.
#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

namespace {

constexpr Priority kSpawnPriority[] = {Priority::inherit, Priority::high, Priority::normal, Priority::low};

/// A tree, and what waits for it.
Executable load_tree(Random& random, Bench& bench, std::uint32_t places, std::uint32_t fails_in) {
  Graph graph;
  const SpawnTree tree{
      bench.words, 0, 1 + random.below(4), places, random.below(places), fails_in, kSpawnPriority[random.below(4)]};
  const auto root = graph.add(tree);
  const std::uint32_t behind = random.below(3);
  for (std::uint32_t i = 0; i < behind; ++i) graph.add(Harvest{bench.words, places}, after(root));
  return bench.runtime.load(graph);
}

}  // namespace

void run_spawns(Random& random) {
  const std::uint32_t places = 2 + random.below(40), passes = 1 + random.below(6);
  Options options = options_of(random, 3);
  options.spawn_capacity = 1u << random.below(5);
  options.queue_capacity = 32;
  Bench bench(options, places);
  const std::uint32_t fails_in = random.one_in(3) ? 1 + random.below(passes) : 0;
  const Executable executable = load_tree(random, bench, places, fails_in);
  const std::uint32_t runs = 1 + random.below(3);
  owe(options, runs * passes * (places + 3), runs);
  for (std::uint32_t r = 0; r < runs; ++r) {
    bench.clear();
    Run run = bench.runtime.submit(executable, repeat(passes), static_cast<Priority>(random.below(3)));
    const bool cancels = random.one_in(4);
    if (cancels) Work{Work::looks, random.below(300)}.spend(), run.cancel();
    const Status status = run.status();
    const bool good =
        status == Status::ok || (cancels && status == Status::cancelled) || (fails_in && status == Status::task_failed);
    if (!good) wrong(std::string("a run that spawns: ") + describe(status).what);
    expect(status != Status::ok || !fails_in, "a run whose task failed ended well");
    for (std::uint32_t i = 0; i < places; ++i)
      expect(status == Status::ok ? bench.count(i) == passes : bench.count(i) <= passes,
             "a spawned task did not run once in each pass");
    bench.check_peak();
  }
  check_end(bench.runtime, executable);
}

}  // namespace flywheel::simulate
