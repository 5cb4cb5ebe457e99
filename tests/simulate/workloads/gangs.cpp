// Tasks that wait for each other while they run, beside other work, with little time until a task is said to stall.
#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

namespace {

Work nap_of(Random& random, std::uint32_t limit_ms) {
  const std::uint32_t most = limit_ms * 600;  // microseconds: no task of its own comes near the limit
  return {Work::sleeps, random.one_in(2) ? most : 1 + random.below(most)};
}

Executable load_naps(Random& random, Runtime& runtime, const Options& o, std::uint32_t limit_ms) {
  Graph graph;
  const auto number = graph.param<std::uint32_t>();
  const std::uint32_t count = 1 + random.below(o.workers + 3);
  for (std::uint32_t i = 0; i < count; ++i) graph.add(Job{number, i, Priority::inherit, nap_of(random, limit_ms)});
  return runtime.load(graph);
}

/// A gang, some of whose workers have a task before it.
Executable load_gang(Random& random, Runtime& runtime, const Options& o, std::uint32_t* come, std::uint32_t limit_ms) {
  Graph graph;
  const auto number = graph.param<std::uint32_t>(1);
  const std::uint32_t count = 2 + random.below(o.workers - 1);
  std::vector<TaskRef<>> gang;
  for (std::uint32_t i = 0; i < count; ++i) {
    gang.push_back(graph.add(Meeting{number, i, come, count, 200 + random.below(800)}));
    graph.place(gang[i], i);
    if (random.one_in(2)) continue;
    const auto before = graph.add(Job{number, count + i, Priority::inherit, nap_of(random, limit_ms)});
    graph.place(before, i);
    graph.edge(before, gang[i]);
  }
  graph.together(gang);
  return runtime.load(graph, compiled);
}

void check_stall(Run& run, std::chrono::milliseconds limit, const char* what) {
  const Status status = run.status();
  if (status == Status::ok) return;
  if (status != Status::worker_stalled) wrong(std::string(what) + ": " + describe(status).what);
  const auto limit_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(limit).count());
  if (!journal::exceeded(limit_ns))
    wrong(std::string(what) + " is said to stall, though no task of its own has run for that long");
}

}  // namespace

void run_gangs(Random& random) {
  Options options = options_of(random, 24);
  options.workers = 2 + random.below(3);
  options.overlap = 1;
  const std::uint32_t limit_ms = 13 + random.below(8);
  options.stall_limit = std::chrono::milliseconds(limit_ms);
  Runtime runtime = start_runtime(options);
  describe_program(options, "stall_limit " + std::to_string(limit_ms));
  const Buffer<std::uint32_t> come = runtime.allocate<std::uint32_t>(1);
  const Executable naps = load_naps(random, runtime, options, limit_ms),
                   gang = load_gang(random, runtime, options, come.data(), limit_ms);
  watch_bodies(gang);
  std::vector<Run> runs;
  if (!random.one_in(4)) runs.push_back(runtime.submit(naps));
  Work{Work::looks, random.below(400)}.spend();
  Run meeting = runtime.submit(gang, repeat(1 + random.below(2)));
  if (random.one_in(2)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random.below(limit_ms)));
    journal::stop_process(std::uint64_t{1 + random.below(4)} * limit_ms * 1'000'000);
  }
  if (random.one_in(3)) runs.push_back(runtime.submit(naps));
  check_stall(meeting, options.stall_limit, "a gang");
  for (Run& run : runs) check_stall(run, options.stall_limit, "a run beside a gang");
  owe(options, journal::size(), runs.size() + 1, 1000 * limit_ms * journal::size());
  check_end(runtime, naps);
}

}  // namespace flywheel::simulate
