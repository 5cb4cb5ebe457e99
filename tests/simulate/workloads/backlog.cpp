// More runs than places: who leaves the backlog when.
#include <deque>

#include "host/futures/core.hpp"
#include "simulate/workloads/bench.hpp"
#include "support/internals.hpp"

namespace flywheel::simulate {

namespace {

constexpr Priority kLevels[] = {Priority::high, Priority::normal, Priority::low};

struct Kind {
  Executable executable;
  Param<std::uint32_t> number;
};

Kind load_jobs(Runtime& runtime, std::uint32_t count, Work work) {
  Graph graph;
  const auto number = graph.param<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) graph.add(Job{number, i, Priority::inherit, work});
  return {runtime.load(graph), number};
}

struct Submitted {
  Run run;
  Priority level = Priority::normal;
  std::uint64_t step = 0;  // when submit() returned
};

/// Runs that left the backlog before this one though they should not have: later ones that are no more urgent, and less urgent
/// ones that had not left it when this one was submitted.
std::uint32_t passed_by(const std::vector<Submitted>& all, std::uint32_t which) {
  const Submitted& run = all[which];
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const bool behind = all[i].level > run.level || (all[i].level == run.level && i > which);
    count += behind && journal::let_in_at(i) > run.step && journal::let_in_at(i) < journal::let_in_at(which);
  }
  return count;
}

/// One thread submits runs of all levels, of which each could go were it not for the places: they go by level, and in order.
void in_order(Random& random) {
  Options options = options_of(random, 64);
  options.workers = 1 + random.below(4);
  options.max_runs = 1u << random.below(3);
  options.max_waiting = 64;
  options.overlap = 32;
  options.heap_bytes = 1 << 14;
  const std::uint32_t count = 10 + random.below(30);
  Runtime runtime = start_runtime(options);
  describe_program(options, std::to_string(count) + " runs in order");
  const Work work{Work::looks, random.below(100)};
  std::vector<Kind> kinds;
  for (std::uint32_t i = 0; i < 1 + random.below(3); ++i) kinds.push_back(load_jobs(runtime, 1 + random.below(2), work));
  watch_inbox(kinds[0].executable);
  owe(options, 2 * count, count);
  std::vector<Submitted> all(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Kind& kind = kinds[random.below(static_cast<std::uint32_t>(kinds.size()))];
    const Priority level = kLevels[random.one_in(4) ? 0 : 1 + random.below(2)];
    all[i] = {runtime.submit(kind.executable, level, set(kind.number, number_of(level, i))), level, journal::steps()};
  }
  for (Submitted& one : all) check_run(one.run, "a run in the backlog");
  for (std::uint32_t i = 0; i < count; ++i)
    if (passed_by(all, i) > 2 * options.max_runs)
      wrong("run " + std::to_string(i) + " was passed in the backlog by " + std::to_string(passed_by(all, i)) + " others");
  check_end(runtime, kinds[0].executable);
}

/// Small runs keep coming while a large one waits for room: two of them at least are in flight or in the backlog at any time.
void large_one(Random& random) {
  Options options = options_of(random, 2);
  options.workers = 1 + random.below(4);
  options.max_runs = 4u << random.below(3);
  options.overlap = 4;
  options.queue_capacity = 64;
  options.max_tasks = 128;
  options.spawn_capacity = 8;
  options.max_waiting = 64;
  const std::uint32_t flight = 2 + random.below(3), most = 60;
  Runtime runtime = start_runtime(options);
  describe_program(options, std::to_string(flight) + " small runs at a time beside a large one");
  const Kind large = load_jobs(runtime, 48 + random.below(7), {Work::none, 0});
  const Kind small[2] = {load_jobs(runtime, 8, {Work::looks, 20}), load_jobs(runtime, 8, {Work::looks, 30})};
  const auto submit_small = [&](std::uint32_t i) {
    return runtime.submit(small[i % 2].executable, set(small[i % 2].number, number_of(Priority::normal, i)));
  };
  std::deque<Run> running;
  std::uint32_t submitted = 0;
  while (submitted < flight) running.push_back(submit_small(submitted++));
  const Priority level = random.one_in(2) ? Priority::high : Priority::normal;
  Run waiting = runtime.submit(large.executable, level, set(large.number, number_of(level, most)));
  while (!waiting.done() && submitted < most) {
    running.front().wait();
    running.pop_front();
    running.push_back(submit_small(submitted++));
  }
  owe(options, 8 * submitted + large.executable.size(), submitted + 1);
  if (submitted == most)
    wrong("a large run did not begin while " + std::to_string(most - flight) + " small ones came and went");
  check_run(waiting, "a large run");
  for (Run& run : running) check_run(run, "a small run");
  check_end(runtime, large.executable);
}

}  // namespace

void run_backlog(Random& random) {
  switch (random.below(3)) {
    case 0:
      return in_order(random);
    case 1:
      return large_one(random);
    default:
      return run_crowd(random);
  }
}

}  // namespace flywheel::simulate
