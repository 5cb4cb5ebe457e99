// Batches from eight threads for a long time, some of which fail or are cancelled, beside yields, and rests in which the kernel
// parks: every result is checked, and the memory of the process must not grow after the first tenth of the tasks.
// FLYWHEEL_SOAK_BATCH_TASKS says how many tasks (2e7).
#include <unistd.h>
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <deque>
#include <fstream>

#include "catch.hpp"
#include "support/graph_driver.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// A task of a batch. One of those that fail has `fails` set.
struct Stir {
  std::uint64_t x;
  std::uint32_t fails;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    if (fails) block.fail(fails);
    return mix(x, 77);
  }
};

/// One thread that submits batches, a few at a time, and checks each of their results.
class BatchSubmitter {
 public:
  static constexpr std::size_t kInFlight = 3;

  BatchSubmitter(Runtime& runtime, std::uint64_t seed) : runtime_(runtime), dice_(seed) {}

  /// Returns how many tasks it has submitted.
  std::uint64_t submit_one() {
    if (open_.size() == kInFlight) check_oldest();
    std::vector<Stir> tasks(1 + dice_.below(dice_.below(16) ? 1500 : 20'000));
    for (Stir& task : tasks) task = {dice_.next(), 0};
    Open one{tasks.size(), dice_.below(32) == 0, dice_.below(32) == 0, {}, {}};
    if (one.fails) tasks[dice_.below(static_cast<std::uint32_t>(tasks.size()))].fails = 5;
    one.batch = runtime_.submit(tasks, static_cast<Priority>(dice_.below(3)));
    if (one.cancelled) one.batch.cancel();
    for (const Stir& task : tasks) one.wanted.push_back(mix(task.x, 77));
    open_.push_back(std::move(one));
    return open_.back().tasks;
  }
  void finish() {
    while (!open_.empty()) check_oldest();
  }
  std::uint64_t right = 0, failed = 0, cancelled = 0, wrong = 0;

 private:
  struct Open {
    std::size_t tasks;
    bool fails, cancelled;
    Batch<std::uint64_t> batch;
    std::vector<std::uint64_t> wanted;
  };
  void check_oldest() {
    Open one = std::move(open_.front());
    open_.pop_front();
    const Status status = one.batch.status();
    if (one.cancelled && status == Status::cancelled) ++cancelled;
    else if (one.fails && status == Status::task_failed) ++failed;
    else if (status != Status::ok || one.fails) ++wrong;
    else check_results(one);
  }
  void check_results(Open& one) {
    std::size_t seen = 0;
    one.batch.for_each([&](std::size_t i, std::uint64_t value) { wrong += value != one.wanted[i], ++seen; });
    wrong += seen != one.tasks;
    right += seen;
  }

  Runtime& runtime_;
  Dice dice_;
  std::deque<Open> open_;
};

/// Resident memory of this process in bytes.
std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// What the threads of the soak of batches share: how much is done, and the rests in which nobody submits, so that the kernel
/// parks.
class BatchSoak {
 public:
  BatchSoak(Runtime& runtime, std::uint64_t wanted) : runtime_(runtime), wanted_(wanted) {}

  void work(std::uint64_t seed) {
    BatchSubmitter submitter(runtime_, seed);
    while (begun_.load(std::memory_order_relaxed) < wanted_) {
      begun_.fetch_add(submitter.submit_one(), std::memory_order_relaxed);
      if (rests_.load(std::memory_order_relaxed)) {
        submitter.finish();
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
      }
    }
    submitter.finish();
    right += submitter.right, failed += submitter.failed, cancelled += submitter.cancelled, wrong += submitter.wrong;
  }
  /// Yields, rests, and looks at the memory, until all is submitted.
  void disturb() {
    for (std::uint64_t i = 0; begun_ < wanted_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (i % 4 == 0) runtime_.yield();
      rests_ = i % 64 > 60;
      const std::uint64_t now = resident_bytes();
      std::uint64_t& most = begun_ < wanted_ / 10 ? most_early : most_later;
      most = std::max(most, now);
    }
  }
  std::atomic<std::uint64_t> right{0}, failed{0}, cancelled{0}, wrong{0};
  std::uint64_t most_early = 0, most_later = 0;

 private:
  Runtime& runtime_;
  const std::uint64_t wanted_;
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<bool> rests_{false};
};

}  // namespace

TEST_CASE("soak of batches: every result right, and no memory that grows") {
  const std::uint64_t wanted = number_from("FLYWHEEL_SOAK_BATCH_TASKS", 20'000'000);
  Options options;
  options.target = Target::gpu;
  options.park_after = std::chrono::milliseconds(10);
  Runtime runtime = start<Stir>(options);
  BatchSoak soak(runtime, wanted);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) threads.emplace_back([&, t] { soak.work(2000 + t); });
  soak.disturb();
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Stats stats = runtime.stats();
  std::printf("soak: %llu tasks in %.2f s, %.2f M tasks/s\n", static_cast<unsigned long long>(soak.right), seconds,
              static_cast<double>(soak.right) / seconds * 1e-6);
  std::printf("batches that failed: %llu, cancelled: %llu; yields %llu, launches %llu; memory %llu MiB, later %llu\n",
              static_cast<unsigned long long>(soak.failed), static_cast<unsigned long long>(soak.cancelled),
              static_cast<unsigned long long>(stats.yields), static_cast<unsigned long long>(stats.launches),
              static_cast<unsigned long long>(soak.most_early >> 20), static_cast<unsigned long long>(soak.most_later >> 20));
  CHECK(soak.wrong == 0);
  CHECK(soak.right >= wanted / 2);
  CHECK((soak.failed > 0 && soak.cancelled > 0 && stats.yields > 0));
  CHECK(soak.most_later <= soak.most_early + (std::uint64_t{16} << 20));
}
