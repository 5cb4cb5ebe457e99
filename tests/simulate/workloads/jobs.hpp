// Graphs of jobs, which tell the journal when they ran, and what became of their runs.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "simulate/workloads/bench.hpp"

namespace flywheel::simulate {

/// A loaded graph of jobs.
struct Jobs {
  Executable executable;
  Param<std::uint32_t> number;
  bool fails = false;   // one of its tasks does
  bool of_all = false;  // its runs need all workers
};

/// Dynamic, phased or compiled.
Jobs random_jobs(Random& random, Runtime& runtime, std::uint32_t most_tasks);

/// How a body passes time: not at all, for some looks at the clock, or asleep.
Work random_work(Random& random);

/// What a run, or work without a graph, is to follow.
struct Followed {
  AfterRuns runs;
  std::vector<std::uint32_t> numbers;  // of the ledger

  template <class Handle>
  void add(const Handle& handle, std::uint32_t number) {
    using detail::follow;  // and those of batches, by their type
    follow(runs, handle);
    numbers.push_back(number);
  }
};

/// What a run may have done, from its submission on. Numbers are given by the ledger.
struct Owed {
  std::uint32_t tasks = 0, passes = 0;
  bool fails = false;
  std::vector<std::uint32_t> after;  // what it follows, by number
  std::atomic<bool> cancelled{false}, known{false}, ended_well{false};
};

/// Of all runs of a program, by number; threads add to it.
class Ledger {
 public:
  static constexpr std::uint32_t kMost = 256;
  /// A number for a run; kMost if there is none left.
  std::uint32_t open(const Jobs& jobs, std::uint32_t passes, const Followed& before = {});
  std::uint32_t open(std::uint32_t tasks, std::uint32_t passes, bool fails, const Followed& before);
  Owed& at(std::uint32_t number) { return owed_[number]; }
  /// It is not to run after all.
  void strike(std::uint32_t number) { owed_[number].tasks = 0; }
  /// How a run ended.
  void note(std::uint32_t number, Status status);
  /// After all runs: each task ran exactly once in each pass, or not more often where something was cancelled or failed, and
  /// after all tasks of what its run follows.
  void check() const;

 private:
  using Counts = std::vector<std::vector<std::uint32_t>>;  // how often each task of each run has run

  bool may_be_skipped(const Owed& owed) const;
  void check_order(std::uint32_t number, const Counts& counts) const;
  std::atomic<std::uint32_t> count_{0};
  Owed owed_[kMost];
};

/// Starts a runtime and threads that use it, user(runtime, ledger, seed) each, and checks what they leave behind. `acts`: of a
/// thread, each of which may submit something or sleep for 20 ms.
template <class User>
void run_users(const Options& options, Random& random, std::uint32_t users, std::uint32_t acts, User&& user) {
  // The dispatcher looks through all places of single tasks whenever it wakes while some are in flight.
  constexpr std::uint64_t kRunsForAnAct = 50;
  Runtime runtime = start_runtime(options);
  describe_program(options, std::to_string(users) + " threads of " + std::to_string(acts) + " acts");
  const auto ledger = std::make_unique<Ledger>();
  Graph last;
  last.add(Nop{});
  const Executable any = runtime.load(last);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < users; ++i) threads.emplace_back([&, seed = random.next()] { user(runtime, *ledger, seed); });
  for (std::thread& thread : threads) thread.join();
  owe(options, journal::size(), (1 + kRunsForAnAct) * users * acts, 20'000 * acts);
  check_end(runtime, any);
  ledger->check();
}

}  // namespace flywheel::simulate
