// Whose turn it is among the threads of an emulated block.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "support/atomics.hpp"
#include "support/emulated/mbarrier.hpp"

namespace flywheel::testing {

/// A block that has nothing to do sleeps now and then, and lets its sleeping threads look at their time limits.
struct EmulatedPace {
  std::uint32_t idle_rounds = 512;  // in which nothing happens, before the first sleep
  std::uint32_t look_rounds = 16;   // from one look to the next, while it sleeps
  std::uint32_t free_looks = 32;    // of a thread, at an mbarrier, each time it is woken to look at its time limit
};

/// Threads are ready, or have yielded until the others had their turn, or sleep until something wakes them, or wait
/// where only a meeting lets them go on.
class Turns {
 public:
  static constexpr std::uint32_t kNobody = kEmulatedThreads;

  Turns(std::uint64_t seed, const EmulatedPace& pace) : seed_(seed), pace_(pace) { choose_pace(); }

  /// A number below that.
  FLYWHEEL_UNWATCHED_INLINE std::uint32_t draw(std::uint32_t below) {
    return static_cast<std::uint32_t>((random() >> 32) * below >> 32);
  }

  FLYWHEEL_UNWATCHED_INLINE void let_go(std::uint32_t warp, std::uint32_t lanes = ~0u) { ready_[warp] |= lanes; }
  FLYWHEEL_UNWATCHED_INLINE void yield(std::uint32_t thread) { later_[thread / 32] |= 1u << thread % 32; }
  FLYWHEEL_UNWATCHED_INLINE void sleep(std::uint32_t thread) { asleep_[thread / 32] |= 1u << thread % 32; }
  FLYWHEEL_UNWATCHED_INLINE bool is_asleep(std::uint32_t thread) const { return asleep_[thread / 32] >> thread % 32 & 1; }
  FLYWHEEL_UNWATCHED bool any_asleep() const { return any(asleep_); }

  FLYWHEEL_UNWATCHED void wake(const WarpMasks& who) {
    for (std::uint32_t w = 0; w < kEmulatedWarps; ++w) {
      ready_[w] |= asleep_[w] & who[w];
      asleep_[w] &= ~who[w];
    }
  }
  FLYWHEEL_UNWATCHED void wake_all() {
    for (std::uint32_t w = 0; w < kEmulatedWarps; ++w) ready_[w] |= asleep_[w];
    asleep_ = {};
  }

  /// One of those that are ready, or kNobody.
  FLYWHEEL_UNWATCHED std::uint32_t next() {
    const std::uint64_t dice = random();
    if (dice % 8192 == 0) choose_pace();
    if (!ready_[warp_] || dice / 8192 % most_wait_ == 0) choose_warp(dice >> 32);
    std::uint32_t& ready = ready_[warp_];
    if (!ready) return kNobody;
    const int turn = static_cast<int>(dice >> 40) % 32;
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(ready >> turn | ready << (32 - turn) % 32) + turn) % 32;
    ready &= ~(1u << lane);
    return warp_ * 32 + lane;
  }

  /// Nobody was ready: those who yielded are. False if there are none.
  FLYWHEEL_UNWATCHED bool begin_round() {
    for (std::uint32_t w = 0; w < kEmulatedWarps; ++w) ready_[w] |= later_[w];
    later_ = {};
    ++rounds_;
    return any(ready_);
  }
  /// Each round: a block that only polls leaves the processor to others.
  void rest(bool progress) {
    idle_ = progress ? 0 : idle_ + 1;
    if (idle_ > pace_.idle_rounds) std::this_thread::sleep_for(std::chrono::microseconds(50));
    else if (idle_ > 8) std::this_thread::yield();
  }
  /// Now and then sleepers are to look at their time limits.
  FLYWHEEL_UNWATCHED bool is_time_to_check() const {
    return rounds_ % (idle_ > pace_.idle_rounds ? pace_.look_rounds : 256) == 0;
  }

 private:
  FLYWHEEL_UNWATCHED_INLINE std::uint64_t random() { return mix(seed_, drawn_++); }
  FLYWHEEL_UNWATCHED_INLINE static bool any(const WarpMasks& masks) {
    std::uint32_t lanes = 0;
    for (std::uint32_t w = 0; w < kEmulatedWarps; ++w) lanes |= masks[w];
    return lanes != 0;
  }

  /// For a while: how long one warp keeps its turn, and whether one of them is slow.
  FLYWHEEL_UNWATCHED void choose_pace() {
    most_wait_ = std::uint64_t{1} << 3 * draw(5);
    slow_ = draw(2 * kEmulatedWarps);
  }
  /// The slow warp only when no other can go on.
  FLYWHEEL_UNWATCHED void choose_warp(std::uint64_t dice) {
    for (std::uint32_t i = 0; i < kEmulatedWarps; ++i) {
      const auto warp = static_cast<std::uint32_t>((dice + i) % kEmulatedWarps);
      if (!ready_[warp]) continue;
      warp_ = warp;
      if (warp != slow_) return;
    }
  }

  const std::uint64_t seed_;
  const EmulatedPace pace_;
  std::uint64_t drawn_ = 0;
  WarpMasks ready_{}, later_{}, asleep_{};
  std::uint32_t warp_ = 0;
  std::uint64_t most_wait_ = 1;
  std::uint32_t slow_ = 0;
  std::uint32_t rounds_ = 0;
  std::uint32_t idle_ = 0;  // rounds in which nothing happened
};

}  // namespace flywheel::testing
