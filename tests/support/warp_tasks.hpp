// Warp tasks, and graphs of them against a serial oracle: for the emulated GPU and for GPUs.
#pragma once

#include "support/expect.hpp"
#include "support/random_graphs.hpp"
#include "support/small_tasks.hpp"

namespace flywheel::testing {

/// A task of the tests as a warp task.
template <class Task>
struct OnWarp : Task {
  using Grain = flywheel::Warp;
};

/// What a task leaves: a cell of kCellWords words, one of each of which every successor reads.
inline constexpr std::uint32_t kCellWords = 32;

/// Derives its cell from those of its predecessors, the pass and a parameter. All threads read, and all threads write.
struct Derive {
  std::uint64_t* cells;
  const std::uint32_t* before;
  std::uint32_t count, self;
  Param<std::uint64_t> salt;

  FLYWHEEL_TASK static std::uint64_t share(std::uint64_t word, std::uint32_t from) { return mix(word, from); }
  FLYWHEEL_TASK static std::uint32_t word_of(std::uint32_t from, std::uint32_t self) { return (from * 7 + self) % kCellWords; }
  FLYWHEEL_TASK static std::uint64_t result(std::uint64_t sum, std::uint64_t salt, std::uint32_t pass, std::uint32_t i) {
    return mix(mix(sum, salt + pass), i);
  }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    std::uint64_t sum = 0;
    block.for_each(static_cast<int>(count), [&](int i) {
      const std::uint32_t from = before[i];
      sum += share(cells[from * kCellWords + word_of(from, self)], from);
    });
    sum = block.reduce(sum, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    auto* kept = block.template scratch<std::uint64_t>(kCellWords);  // of this task alone
    if (!kept) return;
    const std::uint64_t salted = block.param(salt);
    block.for_each(kCellWords, [&](int i) { kept[i] = result(sum, salted, block.iteration(), static_cast<std::uint32_t>(i)); });
    block.sync();
    block.for_each(kCellWords, [&](int i) { cells[self * kCellWords + static_cast<std::uint32_t>(i)] = kept[i]; });
  }
};
using WarpDerive = OnWarp<Derive>;
template <class Task>
Task make_task(const Derive& derive) {
  if constexpr (std::is_same_v<Task, Derive>) return derive;
  else return Task{derive};
}

/// A random graph of such tasks, loaded and run again and again, and what must be in the cells afterwards.
template <class Task>
class DerivedGraph {
 public:
  /// Each task has up to `most_before` predecessors among the `window` tasks before it.
  DerivedGraph(Runtime& runtime, std::uint64_t seed, std::uint32_t tasks, std::uint32_t window, std::uint32_t most_before)
      : runtime_(runtime),
        dice_(seed),
        cells_(runtime.allocate<std::uint64_t>(std::size_t{tasks} * kCellWords)),
        before_(tasks) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t t = 0; t < tasks; ++t) {
      const std::uint32_t behind = std::min(t, window);
      const std::uint32_t count = behind ? dice_.below(std::min(behind, most_before) + 1) : 0;
      for (std::uint32_t i = 0; i < count; ++i) before_[t].push_back(t - 1 - dice_.below(behind));
      std::ranges::sort(before_[t]);
      before_[t].erase(std::unique(before_[t].begin(), before_[t].end()), before_[t].end());
      all.insert(all.end(), before_[t].begin(), before_[t].end());
    }
    lists_ = runtime.allocate<std::uint32_t>(std::max<std::size_t>(all.size(), 1));
    if (!all.empty()) lists_.write(all);
    build();
  }

  Graph& graph() { return graph_; }
  Run submit(const Executable& executable, std::uint64_t salt, std::uint32_t passes) {
    return runtime_.submit(executable, set(salt_, salt), repeat(passes));
  }
  /// After a run has ended: how many words are not as they must be.
  std::uint32_t differences(std::uint64_t salt, std::uint32_t passes) const {
    const std::vector<std::uint64_t> found = cells_.read();
    std::vector<std::uint64_t> right(found.size());
    for (std::uint32_t t = 0; t < before_.size(); ++t) {
      std::uint64_t sum = 0;
      for (const std::uint32_t from : before_[t])
        sum += Derive::share(right[from * kCellWords + Derive::word_of(from, t)], from);
      for (std::uint32_t i = 0; i < kCellWords; ++i) right[t * kCellWords + i] = Derive::result(sum, salt, passes - 1, i);
    }
    std::uint32_t wrong = 0;
    for (std::size_t i = 0; i < right.size(); ++i) wrong += right[i] != found[i];
    return wrong;
  }

 private:
  void build() {
    salt_ = graph_.param<std::uint64_t>(0);
    std::vector<TaskRef<>> tasks;
    const std::uint32_t* list = lists_.data();
    for (std::uint32_t t = 0; t < before_.size(); ++t) {
      const auto count = static_cast<std::uint32_t>(before_[t].size());
      tasks.push_back(graph_.add(make_task<Task>({cells_.data(), list, count, t, salt_})));
      for (const std::uint32_t from : before_[t]) graph_.edge(tasks[from], tasks[t]);
      if (dice_.one_in(8)) graph_.place(tasks[t], dice_.below(runtime_.workers()));
      list += count;
    }
  }

  Runtime& runtime_;
  Dice dice_;
  Buffer<std::uint64_t> cells_;
  Buffer<std::uint32_t> lists_;
  std::vector<std::vector<std::uint32_t>> before_;
  Graph graph_;
  Param<std::uint64_t> salt_;
};

/// `graphs` random graphs of all widths, up to `most_tasks`; each run a few times.
inline void check_derived_graphs(Runtime& runtime, std::uint64_t seed, std::uint32_t graphs, std::uint32_t most_tasks) {
  Dice dice(seed);
  for (std::uint32_t g = 0; g < graphs; ++g) {
    const std::uint32_t tasks = dice.size_up_to(most_tasks), window = dice.size_up_to(tasks);
    DerivedGraph<WarpDerive> made(runtime, dice.next(), tasks, window, dice.size_up_to(20));
    const Executable executable = runtime.load(made.graph(), compiled);
    for (std::uint32_t round = 0; round < 3; ++round) {
      const std::uint64_t salt = dice.next();
      const std::uint32_t passes = 1 + dice.below(4);
      INFO("graph " << g << ", " << tasks << " tasks, window " << window << ", " << passes << " passes");
      made.submit(executable, salt, passes).wait();
      REQUIRE(made.differences(salt, passes) == 0);
    }
  }
}

}  // namespace flywheel::testing
