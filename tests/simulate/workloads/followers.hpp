// Runs that follow runs, in random graphs of them: what the programs on CPU workers and on an emulated GPU share.
#pragma once

#include <flywheel/flywheel.hpp>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace flywheel::simulate {

/// Submits `count` runs, each of a graph of its own, in which one Node finds what the runs before wrote. Some fail, some are
/// cancelled, some are of all workers; or they are a chain, each of them after the last alone. Checks how all end. `expect`
/// takes what has to hold, and its text.
template <class Node, class Leaf, class Random, class Bench, class Expect>
void follow_at_random(Random& random, Bench& bench, std::uint32_t count, const Expect& expect) {
  struct Step {
    Run run;
    std::vector<std::uint32_t> before;
    bool fails, cancelled;
  };
  std::vector<Step> steps;
  const bool fails = random.one_in(3), cancels = random.one_in(3), waits = random.one_in(3), chain = random.one_in(2);
  for (std::uint32_t i = 0; i < count; ++i) {
    Step step{{}, {}, fails && random.one_in(6), false};
    Node node{bench.words, i, 0, {}, step.fails ? 1u : 0u};
    AfterRuns before;
    for (std::uint32_t k = 0; i && k < (chain ? 1 : random.below(4)); ++k) {
      const std::uint32_t one = i - 1 - (chain ? 0 : random.below(std::min(i, 5u)));
      node.before[node.predecessors++] = one;
      step.before.push_back(one);
      before.runs.push_back(steps[one].run);
    }
    Graph graph;
    const std::uint32_t kind = chain && random.below(4) ? 6 : random.below(6);  // 6: it alone
    After behind;
    if (kind != 6) {
      const auto leaf = graph.add(Leaf{bench.words.wrong + 1});
      if (kind == 0) graph.phase();
      if (kind > 2) behind = after(leaf);
    }
    graph.add(node, behind);
    const Executable executable = kind == 1 ? bench.runtime.load(graph, compiled) : bench.runtime.load(graph);
    step.run = bench.runtime.submit(executable, before, static_cast<Priority>(random.below(3)));
    steps.push_back(std::move(step));
    if (cancels && random.one_in(4)) {
      Step& one = steps[random.below(i + 1)];
      one.cancelled = true;
      one.run.cancel();
    }
    if (waits && random.one_in(3)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(3'000)));
    if (random.one_in(8)) bench.runtime.yield();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const Status status = steps[i].run.status();
    bool well = true;  // those before it
    for (const std::uint32_t one : steps[i].before) well &= steps[one].run.status() == Status::ok;
    const Status alone = !well ? Status::predecessor_failed : steps[i].fails ? Status::task_failed : Status::ok;
    if (status == Status::cancelled) expect(steps[i].cancelled, "a run was cancelled that nobody cancelled");
    else expect(status == alone, "a follower did not end as it had to");
    if (status != Status::cancelled) expect(bench.count(i) == (well ? 1u : 0u), "a follower's task did not run as it had to");
    expect(bench.count(i) == 0 || well, "a follower ran though a run before it had not ended well");
  }
}

}  // namespace flywheel::simulate
