// A long run from eight threads: every task leaves a hash of its run and its number in a sum, so a task lost,
// run twice or run with another run's parameters changes the total. FLYWHEEL_SOAK_TASKS says how many tasks
// (2e7).
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <deque>

#include "catch.hpp"
#include "support/graph_driver.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr std::uint32_t kSums = 64;  // words that share the total, so that atomics do not queue up
constexpr std::uint32_t kChild = 1u << 20;

struct Sum {
  std::uint64_t hashes;
  std::uint64_t tasks;
};

struct Leaf {
  Sum* sums;
  std::uint32_t id;
  Param<std::uint64_t> salt;

  template <class Block>
  FLYWHEEL_TASK void note(Block& block) const {
    Sum& sum = sums[id % kSums];
    add_to(sum.hashes, mix(block.param(salt) + block.iteration(), id));
    add_to(sum.tasks, std::uint64_t{1});
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) note(block);
  }
};

/// One task in 64 spawns two more.
struct Branch {
  Leaf leaf;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) leaf.note(block);
    block.for_each(2, [&](int j) {
      const Leaf child{leaf.sums, leaf.id + (static_cast<std::uint32_t>(j) + 1) * kChild, leaf.salt};
      if (!block.spawn(child)) child.note(block);
    });
  }
};

constexpr bool is_branch(std::uint32_t id) { return id % 64 == 63; }

/// One submitting thread: a layered graph of its own, many runs of it, a sum of its own.
class Submitter {
 public:
  static constexpr std::uint32_t kTasks = 4096, kRepeat = 2, kInFlight = 4;
  static constexpr std::uint64_t kPerRun = kRepeat * (kTasks + 2 * (kTasks / 64));

  Submitter(Runtime& runtime, std::uint64_t seed)
      : runtime_(runtime),
        dice_(seed),
        sums_(runtime.allocate<Sum>(kSums)),
        executable_(load()) {}

  void run_one() {
    const std::uint64_t salt = dice_.next();
    if (runs_.size() == kInFlight) wait_oldest();
    runs_.push_back(runtime_.submit(executable_, set(salt_, salt), repeat(kRepeat), static_cast<Priority>(dice_.below(3))));
    for (std::uint32_t pass = 0; pass < kRepeat; ++pass) expect(salt + pass);
  }
  /// Empty, or what is wrong with the sums.
  std::string finish() {
    while (!runs_.empty()) wait_oldest();
    Sum got{0, 0};
    for (const Sum& sum : sums_.read()) got.hashes += sum.hashes, got.tasks += sum.tasks;
    done_ = got.tasks;
    if (got.tasks == expected_.tasks && got.hashes == expected_.hashes) return {};
    return "tasks: expected " + std::to_string(expected_.tasks) + ", got " + std::to_string(got.tasks) + "; hashes: expected " +
           std::to_string(expected_.hashes) + ", got " + std::to_string(got.hashes);
  }
  /// Tasks that left their mark; after finish().
  std::uint64_t done() const { return done_; }

 private:
  Executable load() {
    constexpr std::uint32_t kWidth = 256;
    Graph graph;
    salt_ = graph.param<std::uint64_t>();
    std::vector<TaskRef<>> tasks;
    for (std::uint32_t id = 0; id < kTasks; ++id) {
      After waits;
      const std::uint32_t above = id / kWidth * kWidth - kWidth;  // the layer before
      if (id >= kWidth) waits = after(tasks[above + dice_.below(kWidth)], tasks[above + dice_.below(kWidth)]);
      const Leaf leaf{sums_.data(), id, salt_};
      tasks.push_back(is_branch(id) ? graph.add(Branch{leaf}, waits) : graph.add(leaf, waits));
    }
    return runtime_.load(graph);
  }
  void wait_oldest() {
    runs_.front().wait();
    runs_.pop_front();
  }
  void expect(std::uint64_t salt) {
    for (std::uint32_t id = 0; id < kTasks; ++id) {
      expected_.hashes += mix(salt, id);
      if (is_branch(id)) expected_.hashes += mix(salt, id + kChild) + mix(salt, id + 2 * kChild);
    }
    expected_.tasks += kTasks + 2 * (kTasks / 64);
  }

  Runtime& runtime_;
  Dice dice_;
  Buffer<Sum> sums_;
  Param<std::uint64_t> salt_{};
  Executable executable_;
  std::deque<Run> runs_;
  Sum expected_{0, 0};
  std::uint64_t done_ = 0;
};

void print_rate(std::uint64_t tasks, std::chrono::steady_clock::time_point begin) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("soak: %llu tasks in %.2f s, %.2f M tasks/s\n", static_cast<unsigned long long>(tasks), seconds,
              static_cast<double>(tasks) / seconds * 1e-6);
  std::fflush(stdout);
}

}  // namespace

TEST_CASE("soak: nothing lost, nothing twice") {
  const std::uint64_t wanted = number_from("FLYWHEEL_SOAK_TASKS", 20'000'000);
  Options options;
  options.target = Target::gpu;
  Runtime runtime = start<Leaf, Branch>(options);
  std::atomic<std::uint64_t> begun{0}, done{0};
  std::vector<std::string> problems(8);
  const auto begin = std::chrono::steady_clock::now();
  const auto work = [&](std::uint32_t t) {
    try {
      Submitter submitter(runtime, 1000 + t);
      for (std::uint64_t at; (at = begun.fetch_add(Submitter::kPerRun, std::memory_order_relaxed)) < wanted;) {
        submitter.run_one();
        if (at / 50'000'000 != (at + Submitter::kPerRun) / 50'000'000) print_rate(at, begin);
      }
      problems[t] = submitter.finish();
      done.fetch_add(submitter.done(), std::memory_order_relaxed);
    } catch (const std::exception& error) {
      problems[t] = error.what();
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < problems.size(); ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  print_rate(done, begin);
  for (const std::string& problem : problems) CHECK(problem == "");
  CHECK(done >= wanted);
}
