// A warp whose lanes are threads: the collective half of runtime/ under ThreadSanitizer.
//
// Shuffles and ballots synchronise nothing but their own value, as on a GPU, where they are no fences: they use
// relaxed atomics only. converge() alone orders memory among the lanes, as __syncwarp does. So an algorithm that
// relies on a shuffle to publish memory is reported as a race.
#pragma once

#include <atomic>
#include <cstring>

#include "support/threads.hpp"

namespace flywheel::testing {

template <std::uint32_t kLanes>
struct Warp {
  /// {turn:32 | half of the value:32}: like an inbox word, it says by itself that it is there.
  struct Cell {
    std::atomic<std::uint64_t> half[2];
  };
  Cell cells[2][kLanes] = {};
  std::atomic<std::uint32_t> arrived{0};
};

template <std::uint32_t kLanes>
struct ThreadWarp : CpuPlatform {
  /// Called by each lane's thread first.
  static void join(Warp<kLanes>& warp, std::uint32_t lane) {
    warp_ = &warp;
    lane_ = lane;
    turn_ = meetings_ = 0;
  }

  static std::uint32_t lane() { return lane_; }
  static constexpr std::uint32_t lanes() { return kLanes; }

  static void converge() {
    const std::uint32_t goal = ++meetings_ * kLanes;
    warp_->arrived.fetch_add(1, std::memory_order_acq_rel);
    for (std::uint32_t spins = 0; warp_->arrived.load(std::memory_order_acquire) < goal; ++spins) give_way(spins);
  }

  template <class T>
  static T broadcast(T value, std::uint32_t source = 0) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    std::uint64_t all[kLanes];
    exchange(bits, all);
    std::memcpy(&value, &all[source], sizeof(T));
    return value;
  }

  static std::uint32_t ballot(bool vote) {
    std::uint64_t all[kLanes];
    exchange(vote, all);
    std::uint32_t votes = 0;
    for (std::uint32_t k = 0; k < kLanes; ++k) votes |= (all[k] ? 1u : 0u) << k;
    return votes;
  }

 private:
  /// Every lane learns every lane's value. A lane is at most one turn ahead of another, so two sets of cells do.
  static void exchange(std::uint64_t mine, std::uint64_t (&all)[kLanes]) {
    const std::uint32_t turn = ++turn_;
    auto& cells = warp_->cells[turn & 1];
    for (std::uint32_t h = 0; h < 2; ++h) {
      const std::uint64_t half = (mine >> (32 * h)) & 0xffffffffu;
      cells[lane_].half[h].store((std::uint64_t{turn} << 32) | half, std::memory_order_relaxed);
    }
    for (std::uint32_t k = 0; k < kLanes; ++k)
      all[k] = half_of(cells[k].half[0], turn) | (half_of(cells[k].half[1], turn) << 32);
  }

  static std::uint64_t half_of(const std::atomic<std::uint64_t>& cell, std::uint32_t turn) {
    for (std::uint32_t spins = 0;; ++spins) {
      const std::uint64_t seen = cell.load(std::memory_order_relaxed);
      if (seen >> 32 == turn) return seen & 0xffffffffu;
      give_way(spins);
    }
  }

  static void give_way(std::uint32_t spins) {
    if (spins > 16) std::this_thread::yield();
  }

  static inline thread_local Warp<kLanes>* warp_ = nullptr;
  static inline thread_local std::uint32_t lane_ = 0;
  static inline thread_local std::uint32_t turn_ = 0;
  static inline thread_local std::uint32_t meetings_ = 0;
};

/// Runs body(w) on every lane of warps w = 0..warps-1, all at once.
template <std::uint32_t kLanes, class Body>
void run_warps(std::uint32_t warps, Body&& body) {
  std::vector<Warp<kLanes>> memory(warps);
  run_together(warps * kLanes, [&](std::uint32_t i) {
    ThreadWarp<kLanes>::join(memory[i / kLanes], i % kLanes);
    body(i / kLanes);
  });
}

}  // namespace flywheel::testing
