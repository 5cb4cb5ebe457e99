// Random graphs of runs that follow runs, of all kinds, from several threads, against a plain loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "support/expect.hpp"
#include "support/seed.hpp"

namespace flywheel::testing {

/// What a run computes: which runs it follows, and the code with which it fails, if not 0.
struct FollowerSpec {
  static constexpr std::uint32_t kMost = 8;
  std::uint32_t before[kMost];
  std::uint32_t count;
  std::uint32_t code;
  bool takes;  // the value of the first of them comes as a parameter

  /// The value of run `number`. `first`: that of the first run before it.
  FLYWHEEL_TASK std::uint64_t value(std::uint32_t number, const std::uint64_t* values, std::uint64_t first) const {
    std::uint64_t sum = number;
    for (std::uint32_t i = 0; i < count; ++i) sum = sum * 31 + (i ? values[before[i]] : first);
    return sum;
  }
};

/// Computes the value of the run whose number is the parameter from those of the runs that it follows, in plain memory.
struct FollowerStep {
  const FollowerSpec* specs;
  std::uint64_t* values;
  Param<std::uint32_t> number;
  Param<std::uint64_t> taken;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    const std::uint32_t own = block.param(number);
    const FollowerSpec& spec = specs[own];
    if (!block.leader()) return 0;
    values[own] += spec.value(own, values, spec.takes ? block.param(taken) : spec.count ? values[spec.before[0]] : 0);
    if (spec.code) block.fail(spec.code);
    return values[own];
  }
};

/// Comes before and after it in graphs of several tasks.
struct FollowerBeside {
  std::uint32_t rounds;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader())
      for (std::uint32_t i = 0; i < rounds; ++i) block.cancelled();
  }
};

class RandomFollowers {
 public:
  RandomFollowers(Runtime& runtime, std::uint64_t seed, std::uint32_t runs)
      : runtime_(runtime),
        random_(seed),
        specs_(runtime.upload(make_specs(random_, runs))),
        spec_copies_(runs),
        values_(runtime.allocate<std::uint64_t>(runs)),
        runs_(runs),
        steps_(runs),
        submitted_(runs) {
    specs_.read(spec_copies_.data(), runs);
    for (const bool phased : {false, true}) add_executables(phased);
  }

  /// Submits all runs, from several threads; cancels some if `cancels`. Checks how they end, and the values.
  void operator()(std::uint32_t threads, bool cancels) {
    std::vector<std::thread> all;
    for (std::uint32_t t = 0; t < threads; ++t)
      all.emplace_back([this, cancels, seed = random_()] { submit(Random(seed), cancels); });
    for (std::thread& thread : all) thread.join();
    check();
  }

 private:
  static std::vector<FollowerSpec> make_specs(Random& random, std::uint32_t runs) {
    std::vector<FollowerSpec> specs(runs);
    const std::uint32_t reach = pick(random, 1, 30), most = pick(random, 1, FollowerSpec::kMost);
    const bool failures = pick(random, 0, 1);
    for (std::uint32_t r = 0; r < runs; ++r) {
      specs[r].count = std::min(r, pick(random, 0, most));
      for (std::uint32_t i = 0; i < specs[r].count; ++i) specs[r].before[i] = r - pick(random, 1, std::min(r, reach));
      specs[r].takes = specs[r].count && pick(random, 0, 1);
      specs[r].code = failures && pick(random, 1, 20) == 1 ? pick(random, 1, 9) : 0;
    }
    return specs;
  }

  struct Loaded {
    Executable executable;
    Param<std::uint32_t> number;
    Param<std::uint64_t> taken;
    TaskRef<std::uint64_t> step;
  };
  void add_executables(bool phased) {
    for (const std::uint32_t beside : {0, 1, 3}) {
      Graph graph;
      const auto number = graph.param<std::uint32_t>();
      const auto taken = graph.param<std::uint64_t>();
      const FollowerStep step{specs_.data(), values_.data(), number, taken};
      if (phased) {
        for (std::uint32_t i = 0; i < beside; ++i) graph.add(FollowerBeside{i});
        graph.phase();
        const auto last = graph.add(step);
        collective_.push_back({runtime_.load(graph), number, taken, last});
        continue;
      }
      std::vector<TaskRef<>> first;
      for (std::uint32_t i = 0; i < beside; ++i) first.push_back(graph.add(FollowerBeside{10 * i}));
      const auto middle = graph.add(step, after(first));
      for (std::uint32_t i = 0; i < beside; ++i) graph.add(FollowerBeside{i}, after(middle));
      dynamic_.push_back({runtime_.load(graph), number, taken, middle});
      if (beside) collective_.push_back({runtime_.load(graph, compiled), number, taken, middle});
    }
  }

  /// Takes the next number and submits its run, once the runs that it follows are submitted.
  void submit(Random random, bool cancels) {
    for (;;) {
      const std::uint32_t number = next_.fetch_add(1);
      if (number >= runs_.size()) return;
      AfterRuns before;
      const FollowerSpec& spec = spec_copies_[number];
      for (std::uint32_t i = 0; i < spec.count; ++i) before.runs.push_back(wait_for_submission(spec.before[i]));
      const std::vector<Loaded>& kind = pick(random, 0, 2) ? dynamic_ : collective_;
      const Loaded& one = kind[pick(random, 0, static_cast<std::uint32_t>(kind.size()) - 1)];
      const auto level = static_cast<Priority>(pick(random, 0, 2));
      Run run = spec.takes ? runtime_.submit(one.executable, set(one.number, number), before, level,
                                             set(one.taken, before.runs[0], steps_[spec.before[0]]))
                           : runtime_.submit(one.executable, before, level, set(one.number, number));
      {
        std::scoped_lock lock(mutex_);
        runs_[number] = std::move(run);
        steps_[number] = one.step;
        submitted_[number] = true;
      }
      if (cancels && pick(random, 0, 9) == 0) wait_for_submission(pick(random, 0, number), true).cancel();
      if (pick(random, 0, 30) == 0) runtime_.yield();
    }
  }
  /// `may_be_empty`: an empty place counts as run `0`, which is submitted first.
  Run wait_for_submission(std::uint32_t number, bool may_be_empty = false) {
    for (;;) {
      {
        std::scoped_lock lock(mutex_);
        if (submitted_[number]) return runs_[number];
      }
      if (may_be_empty) number = number ? number - 1 : 0;
      std::this_thread::yield();
    }
  }

  void check() {
    std::vector<std::uint64_t> wanted(runs_.size()), found(runs_.size());
    std::vector<Status> statuses;
    for (Run& run : runs_) statuses.push_back(run.status());
    values_.read(found.data(), found.size());
    for (std::uint32_t r = 0; r < runs_.size(); ++r) {
      INFO("run " << r);
      const FollowerSpec& spec = spec_copies_[r];
      bool well = true;
      for (std::uint32_t i = 0; i < spec.count; ++i) well &= statuses[spec.before[i]] == Status::ok;
      const Status expected = !well ? Status::predecessor_failed : spec.code ? Status::task_failed : Status::ok;
      if (statuses[r] != Status::cancelled) CHECK(statuses[r] == expected);
      wanted[r] = spec.value(r, wanted.data(), spec.count ? wanted[spec.before[0]] : 0);
      if (statuses[r] == Status::ok) CHECK(found[r] == wanted[r]);
      if (!well) CHECK(found[r] == 0);
    }
  }

  Runtime& runtime_;
  Random random_;
  Buffer<FollowerSpec> specs_;
  std::vector<FollowerSpec> spec_copies_;
  Buffer<std::uint64_t> values_;
  std::vector<Loaded> dynamic_, collective_;
  std::atomic<std::uint32_t> next_{0};
  std::mutex mutex_;
  std::vector<Run> runs_;
  std::vector<TaskRef<std::uint64_t>> steps_;  // of each run
  std::vector<bool> submitted_;
};

}  // namespace flywheel::testing
