// A warp whose lanes are threads: what a whole warp does together, under ThreadSanitizer.
//
// A vote synchronises nothing but its own value, as on a GPU, where it is no fence: it uses relaxed atomics
// only. converge() alone orders memory among the lanes, as __syncwarp does. So an algorithm that relies on a
// vote to publish memory is reported as a race.
#pragma once

#include <atomic>

#include "support/threads.hpp"

namespace flywheel::testing {

template <std::uint32_t kLanes>
struct WarpOfThreads {
  /// {turn:32 | value:32}: like an inbox word, it says by itself that it is there.
  std::atomic<std::uint64_t> cells[2][kLanes] = {};
  std::atomic<std::uint32_t> arrived{0};
  std::atomic<bool> split{false};  // lanes waited in vain for others that went another way
};

template <std::uint32_t kLanes>
struct ThreadWarp : CpuPlatform {
  using Leader = CpuPlatform;

  /// Called by each lane's thread first.
  static void join(WarpOfThreads<kLanes>& warp, std::uint32_t lane) {
    warp_ = &warp;
    lane_ = lane;
    turn_ = meetings_ = 0;
  }

  static std::uint32_t lane() { return lane_; }
  static constexpr std::uint32_t lanes() { return kLanes; }

  static void converge() {
    const std::uint32_t goal = ++meetings_ * kLanes;
    warp_->arrived.fetch_add(1, std::memory_order_acq_rel);
    until([&] { return warp_->arrived.load(std::memory_order_acquire) >= goal; });
  }

  static bool any(bool vote) {
    std::uint32_t all[kLanes];
    exchange(vote, all);
    bool some = false;
    for (const std::uint32_t each : all) some |= each != 0;
    return some;
  }

  static std::uint32_t votes(bool vote) {
    static_assert(kLanes <= 32);
    std::uint32_t all[kLanes], bits = 0;
    exchange(vote, all);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) bits |= all[lane] << lane;
    return bits;
  }

  static std::uint32_t word_of_lanes(const std::uint32_t* mine, std::uint32_t w) {
    std::uint32_t all[kLanes];
    exchange(mine[w / kLanes], all);
    return all[w % kLanes];
  }

 private:
  /// Every lane learns every lane's value. A lane is at most one turn ahead of another, so two sets of cells
  /// do.
  static void exchange(std::uint32_t mine, std::uint32_t (&all)[kLanes]) {
    const std::uint32_t turn = ++turn_;
    auto& cells = warp_->cells[turn & 1];
    cells[lane_].store((std::uint64_t{turn} << 32) | mine, std::memory_order_relaxed);
    for (std::uint32_t k = 0; k < kLanes; ++k) {
      std::uint64_t seen = 0;
      until([&] { return (seen = cells[k].load(std::memory_order_relaxed)) >> 32 == turn; });
      all[k] = static_cast<std::uint32_t>(seen);
    }
  }

  template <class Ready>
  static void until(Ready&& ready) {
    const Deadline deadline(20);
    for (std::uint32_t spins = 0; !ready() && !warp_->split.load(std::memory_order_relaxed); ++spins) {
      if (spins > 16) std::this_thread::yield();
      if (spins % 1024 == 1023 && deadline.passed()) warp_->split.store(true, std::memory_order_relaxed);
    }
  }

  static inline thread_local WarpOfThreads<kLanes>* warp_ = nullptr;
  static inline thread_local std::uint32_t lane_ = 0;
  static inline thread_local std::uint32_t turn_ = 0;
  static inline thread_local std::uint32_t meetings_ = 0;
};

/// Runs body(w) on every lane of warps w = 0..warps-1, all at once.
template <std::uint32_t kLanes, class Body>
void run_warps(std::uint32_t warps, Body&& body) {
  std::vector<WarpOfThreads<kLanes>> memory(warps);
  run_together(warps * kLanes, [&](std::uint32_t i) {
    ThreadWarp<kLanes>::join(memory[i / kLanes], i % kLanes);
    body(i / kLanes);
  });
}

}  // namespace flywheel::testing
