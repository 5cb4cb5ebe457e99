// Work of all levels at once: no worker goes on with less urgent work while more urgent work waits.
#include "host/futures/core.hpp"
#include "simulate/workloads/bench.hpp"
#include "support/internals.hpp"

namespace flywheel::simulate {

namespace {

constexpr Priority kLevels[] = {Priority::high, Priority::normal, Priority::low};

/// Tasks that a worker may begin after it could have seen more urgent work: the one that it had taken by then, and the
/// successor that it keeps of that one.
constexpr std::uint32_t kMayPass = 2;

Work random_work(Random& random) {
  if (random.one_in(3)) return {Work::none, 0};
  return {Work::looks, 1 + random.below(random.one_in(4) ? 120 : 30)};
}

struct Jobs {
  Graph graph;
  Param<std::uint32_t> number;
  Executable executable;
};

Priority own_level(Random& random, bool mixed) {
  return mixed && random.one_in(2) ? kLevels[random.below(3)] : Priority::inherit;
}

/// Tasks that need nothing, more than two for each worker: then they stay in the run, and workers take shares of them.
void add_roots(Random& random, Jobs& jobs, std::uint32_t workers) {
  const std::uint32_t count = 2 * workers + 1 + random.below(24);
  const Work work = random_work(random);
  for (std::uint32_t i = 0; i < count; ++i) jobs.graph.add(Job{jobs.number, i, Priority::inherit, work});
}

/// Chains beside each other, here and there a task that all wait for.
void add_chains(Random& random, Jobs& jobs, bool mixed) {
  const std::uint32_t chains = 1 + random.below(4), length = 2 + random.below(8);
  const Work work = random_work(random);
  std::vector<TaskRef<>> last;
  for (std::uint32_t step = 0; step < length; ++step) {
    std::vector<TaskRef<>> now;
    const bool joins = step && random.one_in(4);
    for (std::uint32_t c = 0; c < chains; ++c) {
      const Priority own = own_level(random, mixed);
      now.push_back(jobs.graph.add(Job{jobs.number, step * chains + c, own, work}, own));
      for (std::uint32_t before = 0; step && before < chains; ++before)
        if (joins || before == c) jobs.graph.edge(last[before], now[c]);
    }
    last = now;
  }
}

std::vector<Jobs> random_jobs(Random& random, Runtime& runtime, std::uint32_t workers) {
  std::vector<Jobs> all(2 + random.below(3));
  const bool mixed = random.one_in(2);
  for (Jobs& jobs : all) {
    jobs.number = jobs.graph.param<std::uint32_t>();
    if (random.one_in(2)) add_roots(random, jobs, workers);
    else add_chains(random, jobs, mixed);
    jobs.executable = runtime.load(jobs.graph);
  }
  return all;
}

}  // namespace

void run_priorities(Random& random) {
  Options options = options_of(random, 48 + random.below(64));
  options.max_tasks = 512;
  options.max_edges = 1024;
  while (options.queue_capacity < 2 * options.workers + 24 + options.spawn_capacity) options.queue_capacity *= 2;
  options.max_runs = 2u << random.below(4);
  options.max_waiting = 16;
  Runtime runtime = start_runtime(options);
  const std::vector<Jobs> all = random_jobs(random, runtime, options.workers);
  const std::uint32_t count = 4 + random.below(10);
  describe_program(options, std::to_string(count) + " runs of " + std::to_string(all.size()) + " graphs");
  const Executable& any = all[0].executable;
  journal::watch_urgency(any.loaded()->core->memory.dev().control->broadcast.queued, kPriorities, kMayPass);
  std::vector<Run> runs;
  std::size_t tasks = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Jobs& jobs = all[random.below(static_cast<std::uint32_t>(all.size()))];
    const Priority level = kLevels[random.below(3)];
    const std::uint32_t passes = 1 + (random.one_in(3) ? random.below(3) : 0);
    runs.push_back(runtime.submit(jobs.executable, level, set(jobs.number, number_of(level, i)), repeat(passes)));
    tasks += passes * jobs.executable.size();
    Work{Work::looks, random.below(200)}.spend();
  }
  owe(options, tasks, count, 0);
  for (Run& run : runs) check_run(run, "a run beside others of all levels");
  expect(journal::size() == tasks, "tasks ran more or less often than once in each pass");
  check_end(runtime, any);
}

}  // namespace flywheel::simulate
