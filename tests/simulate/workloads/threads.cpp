// Several threads that submit.
#include <thread>

#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

/// Several threads submit, with bursts; the runtime may park between them.
void run_threads(Random& random, bool slowly) {
  const std::uint32_t submitters = 1 + random.below(3), each = 1 + random.below(slowly ? 3 : 6);
  Bench bench(options_of(random, 8), submitters);
  owe(bench.options, submitters * each, submitters * each, slowly ? 30'000 * each : 0);
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

}  // namespace flywheel::simulate
