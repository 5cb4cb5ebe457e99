// What the programs on an emulated GPU have in common: random options, a runtime, random graphs, and what to do when all is not
// well.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "simulate/emulated_tasks.hpp"
#include "simulate/scheduler.hpp"
#include "support/control_steps.hpp"
#include "support/emulated_engine.hpp"

namespace flywheel::simulate::emulated {

inline std::string text;  // what the program is, for a report

[[noreturn]] inline void wrong(const std::string& what) { finding(what.c_str()); }
inline void expect(bool fine, const char* what) {
  if (!fine) wrong(what);
}
inline void check_run(Run& run, const char* what) {
  const Status status = run.status();
  if (status != Status::ok) wrong(std::string(what) + ": " + describe(status).what);
}

inline Options options_of(Random& random, std::uint32_t most_tasks) {
  Options o;
  o.workers = 1 + random.below(random.one_in(6) ? 6 : 3);
  o.heap_bytes = 1 << 12;
  o.max_tasks = 128;
  o.max_edges = 256;
  o.max_executables = 4;
  o.max_runs = 1u << random.below(4);
  o.max_waiting = 1 + random.below(8);
  o.overlap = 1 + random.below(3);
  o.spawn_capacity = 2u << random.below(3);
  o.queue_capacity = 2;
  while (o.queue_capacity < most_tasks + o.spawn_capacity) o.queue_capacity *= 2;
  o.stream_capacity = 1u << random.below(4);
  o.result_bytes = 1024;
  o.scratch_bytes = 64;
  o.park_after = std::chrono::milliseconds(random.one_in(3) ? 0 : random.below(20));
  o.shutdown_timeout = std::chrono::milliseconds(60'000);
  o.tuning.keep_successor = !random.one_in(4);
  o.tuning.bare_runs = !random.one_in(3);
  o.yield_every = std::chrono::milliseconds(random.one_in(3) ? 1 + random.below(3) : 0);
  o.tuning.yield_gap = std::chrono::microseconds(random.below(200));
  o.log_level = "off";
  return o;
}

/// A runtime, and the words of its one graph.
struct Bench {
  Bench(Random& random, const Options& options, std::uint32_t tasks)
      : options(options),
        runtime(testing::start_emulated<Node, WarpNode, Cell, Meet, Leaf, Source, Note, Hold, testing::Step, testing::StepJoin,
                                        testing::StepSprout>(options, random.next(),
                                                             testing::EmulatedPace{2u << random.below(6), 256, 4})),
        memory(runtime.allocate<std::uint32_t>(4 * tasks + 2)) {
    text += ": " + std::to_string(options.workers) + " blocks, max_runs " + std::to_string(options.max_runs) + ", overlap " +
            std::to_string(options.overlap) + ", queue_capacity " + std::to_string(options.queue_capacity) +
            ", spawn_capacity " + std::to_string(options.spawn_capacity) + ", stream_capacity " +
            std::to_string(options.stream_capacity) + ", park_after " + std::to_string(options.park_after.count()) +
            ", yield_every " + std::to_string(options.yield_every.count());
    words = {memory.data(), memory.data() + tasks, memory.data() + 2 * tasks, memory.data() + 3 * tasks};
  }
  void clear() { memory.write(std::vector<std::uint32_t>(memory.size())); }
  /// After all runs.
  void check_peak() {
    expect(runtime.stats().queue_peak <= options.queue_capacity, "stats().queue_peak is above Options::queue_capacity");
    expect(testing::peek_at(*words.wrong) == 0,
           "a task did not find what its predecessors wrote, or what the threads of its block passed on");
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

inline NodeGraph random_graph(Random& random, const Words& words, std::uint32_t count, bool priorities) {
  NodeGraph made;
  constexpr Priority kPriority[] = {Priority::inherit, Priority::high, Priority::normal, Priority::low};
  const std::uint32_t dense = random.below(4);     // edges of most tasks
  const std::uint32_t of_warps = random.below(4);  // 0: none, 1: some are warp tasks, 2 and 3: all are
  for (std::uint32_t i = 0; i < count; ++i) {
    Node node{words, i, 0, {}, 0};
    for (std::uint32_t e = 0; i && e < random.below(dense + 1); ++e) {
      const std::uint32_t before = random.below(i);
      if (std::find(node.before, node.before + node.predecessors, before) == node.before + node.predecessors &&
          node.predecessors < kMostPredecessors)
        node.before[node.predecessors++] = before;
    }
    const Priority priority = priorities ? kPriority[random.below(4)] : Priority::inherit;
    const bool on_warp = of_warps == 1 ? random.one_in(2) : of_warps != 0;
    made.tasks.push_back(on_warp ? made.graph.add(WarpNode{node}, priority) : made.graph.add(node, priority));
    for (std::uint32_t e = 0; e < node.predecessors; ++e) made.graph.edge(made.tasks[node.before[e]], made.tasks[i]);
  }
  return made;
}

}  // namespace flywheel::simulate::emulated
