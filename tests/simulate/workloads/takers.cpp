// Runs and single tasks that follow others and take their results, poured in by several threads.
#include <algorithm>
#include <mutex>

#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

namespace {

/// One run or single task, in the order of submission.
struct TakerStep {
  Run run;
  Future<std::uint64_t> single;  // with `is_single`, and then there is no run
  TaskRef<std::uint64_t> task;
  std::vector<std::uint32_t> before;
  std::uint32_t from = ~0u;  // whose result it takes
  bool is_single = false, fails = false, cancelled = false, there = false;

  Status status() { return is_single ? single.status() : run.status(); }
  std::uint64_t result() { return is_single ? single.get() : run.get(task); }
};

class Takers {
 public:
  Takers(Random& random, Bench& bench, std::uint32_t count, std::uint32_t threads)
      : bench_(bench),
        steps_(count),
        fails_(random.one_in(3)),
        cancels_(random.one_in(3)),
        singles_(random.one_in(2)),
        pauses_(random.one_in(3)),
        reach_(random.one_in(2) ? 1 : 6) {
    std::vector<std::thread> all;
    for (std::uint32_t t = 0; t < threads; ++t)
      all.emplace_back([this, seed = random.next()] { submit(random_of_thread(seed)); });
    for (std::thread& thread : all) thread.join();
    for (std::uint32_t i = 0; i < count; ++i) check(i);
  }

 private:
  void submit(Random random) {
    for (;;) {
      const std::uint32_t number = next_.fetch_add(1);
      if (number >= steps_.size()) return;
      TakerStep step;
      AfterRuns before;
      choose(random, number, step, before);
      submit_one(random, number, step, before);
      {
        std::scoped_lock lock(mutex_);
        step.there = true;
        step.cancelled |= steps_[number].cancelled;
        steps_[number] = std::move(step);
      }
      if (cancels_ && random.one_in(6)) cancel(random.below(number + 1));
      if (random.one_in(6)) bench_.runtime.yield();
      if (pauses_ && random.one_in(6)) const Pause guard(bench_.runtime);
      if (pauses_ && random.one_in(6)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(3'000)));
    }
  }

  /// What it follows: of those before it that are submitted.
  void choose(Random& random, std::uint32_t number, TakerStep& step, AfterRuns& before) {
    std::scoped_lock lock(mutex_);
    const std::uint32_t most = reach_ == 1 ? 1 : random.below(kMostPredecessors + 1);
    for (std::uint32_t k = 0; number && k < most; ++k) {
      const std::uint32_t one = number - 1 - random.below(std::min(number, reach_));
      if (!steps_[one].there) continue;
      step.before.push_back(one);
      if (steps_[one].is_single) before.futures.push_back(steps_[one].single);
      else before.runs.push_back(steps_[one].run);
    }
    if (!step.before.empty() && random.one_in(2))
      step.from = step.before[random.below(static_cast<std::uint32_t>(step.before.size()))];
    step.fails = fails_ && random.one_in(8);
  }

  void submit_one(Random& random, std::uint32_t number, TakerStep& step, const AfterRuns& before) {
    Node node{bench_.words, number, 0, {}, step.fails ? 1u : 0u};
    for (const std::uint32_t one : step.before) node.before[node.predecessors++] = one;
    const auto level = static_cast<Priority>(random.below(3));
    if (singles_ && step.from == ~0u && random.one_in(3)) {
      const Alone task{node};
      step.is_single = true;
      step.single = step.before.empty() ? bench_.runtime.submit(task, level) : bench_.runtime.submit(task, before, level);
      return;
    }
    Graph graph;
    const auto param = graph.param<std::uint64_t>(7);
    const std::uint32_t kind = random.below(6);
    After behind;
    if (kind < 3) {
      const auto leaf = graph.add(Leaf{bench_.words.wrong + 1});
      if (kind == 0) graph.phase();
      else behind = after(leaf);
    }
    step.task = graph.add(Taker{node, param}, behind);
    const Executable executable = kind == 1 ? bench_.runtime.load(graph, compiled) : bench_.runtime.load(graph);
    if (step.from == ~0u) {
      step.run = bench_.runtime.submit(executable, before, level);
      return;
    }
    TakerStep from;
    {
      std::scoped_lock lock(mutex_);
      from = steps_[step.from];
    }
    step.run = from.is_single ? bench_.runtime.submit(executable, before, level, set(param, from.single))
                              : bench_.runtime.submit(executable, before, level, set(param, from.run, from.task));
  }

  void cancel(std::uint32_t number) {
    TakerStep step;
    {
      std::scoped_lock lock(mutex_);
      if (!steps_[number].there) return;
      steps_[number].cancelled = true;
      step = steps_[number];
    }
    if (step.is_single) step.single.cancel();
    else step.run.cancel();
  }

  void check(std::uint32_t number) {
    TakerStep& step = steps_[number];
    const Status status = step.status();
    bool well = true;
    for (const std::uint32_t one : step.before) well &= steps_[one].status() == Status::ok;
    const Status alone = !well ? Status::predecessor_failed : step.fails ? Status::task_failed : Status::ok;
    if (status == Status::cancelled) expect(step.cancelled, "a run was cancelled that nobody cancelled");
    else expect(status == alone, "a taker did not end as it had to");
    if (status != Status::cancelled)
      expect(bench_.count(number) == (well ? 1u : 0u), "a taker's task did not run as it had to");
    if (status != Status::ok) return;
    const std::uint64_t taken = step.is_single ? 0 : step.from == ~0u ? 7 : steps_[step.from].result();
    expect(step.result() == Taker::result_of(taken, number), "a taker's result is not what follows from what it took");
  }

  Bench& bench_;
  std::vector<TakerStep> steps_;
  const bool fails_, cancels_, singles_, pauses_;
  const std::uint32_t reach_;
  std::atomic<std::uint32_t> next_{0};
  std::mutex mutex_;
};

/// Chains of runs of one executable, each after the last of its chain, with tasks before and behind the one that counts. They
/// take turns in few slots, so that one takes a slot in which one of another chain has just ended.
void submit_chains(Random& random, Bench& bench, std::uint32_t count) {
  const std::uint32_t chains = 1 + random.below(4);
  Graph graph;
  const auto number = graph.param<std::uint32_t>();
  After behind;
  if (random.one_in(4)) behind = after(graph.add(Leaf{bench.words.wrong + 1}));
  const auto link = graph.add(Link{bench.words, number, chains}, behind);
  if (random.one_in(4)) graph.add(Leaf{bench.words.wrong + 1}, after(link));
  const Executable executable = bench.runtime.load(graph);
  const std::uint32_t naps = random.below(3);
  std::vector<Run> runs;
  for (std::uint32_t i = 0; i < count; ++i) {
    runs.push_back(i < chains ? bench.runtime.submit(executable, set(number, i))
                              : bench.runtime.submit(executable, set(number, i), after(runs[i - chains])));
    if (naps == 1 && random.one_in(4)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
    if (naps == 2 && random.one_in(4)) runs[random.below(i + 1)].wait();
  }
  for (std::uint32_t i = 0; i < count; ++i) expect(runs[i].get(link) == i + 1, "a run of a chain returned what it should not");
}

}  // namespace

void run_takers(Random& random) {
  const std::uint32_t count = 2 + random.below(random.one_in(4) ? 30 : 12), threads = 1 + random.below(3);
  Options options = options_of(random, 4);
  options.max_executables = 64;
  options.max_tasks = 256;
  options.heap_bytes = 1 << 16;
  const bool are_chains = random.one_in(2);
  if (are_chains) {
    options.overlap = 2 + random.below(64);
    options.max_runs = 2 + random.below(4);
  }
  Bench bench(options, count);
  owe(options, 3 * count, count, 6'000 * count);
  if (are_chains) submit_chains(random, bench, count);
  else Takers(random, bench, count, threads);
  bench.check_peak();
}

}  // namespace flywheel::simulate
