// Threads for tests: they start together, and wait with a limit.
#pragma once

#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include "runtime/base/wait.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

/// Runs body(0) ... body(n - 1) on n threads that start together; returns when all have ended.
template <class Body>
void run_together(std::uint32_t n, Body&& body) {
  std::latch start(n);
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      body(i);
    });
}

/// What a waiting loop needs, with a limit that only a real hang reaches.
struct Limit {
  std::uint64_t abort = 0;
  WaitReport report{};
  std::uint64_t budget_ns = 60'000'000'000;

  WaitContext wait(std::uint64_t* host_awake_ns = nullptr) {
    return {&abort, &report, budget_ns, true, nullptr, 0, host_awake_ns};
  }
  /// Ends all waits from another thread.
  void give_up() { CpuPlatform::device(abort).store(1, Order::relaxed); }
  bool gave_up() { return CpuPlatform::device(abort).load(Order::relaxed) != 0; }
};

/// Ends loops that would go round for ever if something was lost.
class Deadline {
 public:
  explicit Deadline(std::uint64_t seconds = 80) : end_(CpuPlatform::now_ns() + seconds * 1'000'000'000) {}
  bool passed() const { return CpuPlatform::now_ns() > end_; }

 private:
  std::uint64_t end_;
};

/// Turns until `ready()`; false after a minute, or so many seconds.
template <class Ready>
bool wait_for(Ready&& ready, std::uint32_t seconds = 60) {
  Limit limit;
  limit.budget_ns = std::uint64_t{seconds} * 1'000'000'000;
  return spin_until<CpuPlatform>(limit.wait(), WaitReason::none, nullptr, 0, [&](std::uint64_t&) { return ready(); });
}

}  // namespace flywheel::testing
