// What the simulated programs have in common: options, a runtime that knows all their tasks, and what is looked at in the end.
#pragma once

#include <string>
#include <vector>

#include "simulate/scheduler.hpp"
#include "simulate/workloads/tasks.hpp"

namespace flywheel::simulate {

[[noreturn]] void wrong(const std::string& what);
void expect(bool fine, const char* what);
/// For a thread of its own: what the program draws there does not hang on what others draw meanwhile.
inline Random random_of_thread(std::uint64_t seed) { return {seed, nullptr, !scheduler.settings().large}; }
/// It has ended well.
void check_run(Run& run, const char* what);

/// A program of this shape begins.
void begin_text(const std::string& shape);

/// Small ones, with room in the queues for the tasks of one run at least.
Options options_of(Random& random, std::uint32_t most_tasks);
/// Goes into the report of a finding. `more` says what else there is.
void describe_program(const Options& options, const std::string& more = "");
void describe_program(const std::string& what);

/// What the program gives the runtime to do: so many executions of tasks, in so many runs, and bodies and pauses that sleep for
/// so long. Any order in which threads get on must be through with it within a number of steps that follows, see
/// check_progress().
void owe(const Options& options, std::uint64_t tasks, std::uint64_t runs, std::uint64_t sleep_us = 0);
/// After the program.
void check_progress();

/// With all task types of the programs.
Runtime start_runtime(const Options& options);

/// A runtime, and the words of its one graph.
struct Bench {
  Bench(const Options& options, std::uint32_t tasks);
  void clear() { memory.write(std::vector<std::uint32_t>(memory.size())); }
  /// After all runs.
  void check_peak();
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
NodeGraph random_graph(Random& random, const Words& words, std::uint32_t count, bool priorities);

/// The journal knows from here on when bodies begin and end for the runtime's watchdog. `any` is loaded there.
void watch_bodies(const Executable& any);
/// The journal knows from here on when runs whose first parameter is their number left the backlog. `any` is loaded there.
void watch_inbox(const Executable& any);

/// Ends the runtime, and then looks at what it leaves behind: queues and pools as they were at the start, none of them ever
/// above its bound. `any` is loaded there.
void check_end(Runtime& runtime, const Executable& any);

// The programs.
void run_graphs(Random& random, bool compiled_too);
void run_phases(Random& random);
void run_streams(Random& random);
void run_cancels(Random& random);
void run_threads(Random& random, bool slowly);
void run_roots(Random& random);
void run_priorities(Random& random);
void run_backlog(Random& random);
void run_limits(Random& random);
void run_wires(Random& random);
void run_crowd(Random& random);  // of the shape `backlog`
void run_gangs(Random& random);
void run_spawns(Random& random);
void run_control(Random& random);
void run_mixed(Random& random);
void run_new_work(Random& random);
void run_followers(Random& random);
void run_takers(Random& random);
void run_runtimes(Random& random);

}  // namespace flywheel::simulate
