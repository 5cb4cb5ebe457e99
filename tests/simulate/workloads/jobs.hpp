// Graphs of jobs, which tell the journal when they ran, and what became of their runs.
#pragma once

#include <atomic>

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

/// What a run may have done, from its submission on. Numbers are given by the ledger.
struct Owed {
  std::uint32_t tasks = 0, passes = 0;
  bool fails = false;
  std::atomic<bool> cancelled{false}, known{false}, ended_well{false};
};

/// Of all runs of a program, by number; threads add to it.
class Ledger {
 public:
  static constexpr std::uint32_t kMost = 256;
  /// A number for a run; kMost if there is none left.
  std::uint32_t open(const Jobs& jobs, std::uint32_t passes);
  std::uint32_t open(std::uint32_t tasks, std::uint32_t passes, bool fails);
  Owed& at(std::uint32_t number) { return owed_[number]; }
  /// It is not to run after all.
  void strike(std::uint32_t number) { owed_[number].tasks = 0; }
  /// How a run ended.
  void note(std::uint32_t number, Status status);
  /// After all runs: each task ran exactly once in each pass, or not more often where something was cancelled or failed.
  void check() const;

 private:
  std::atomic<std::uint32_t> count_{0};
  Owed owed_[kMost];
};

}  // namespace flywheel::simulate
