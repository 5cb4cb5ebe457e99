// How a thread of the program waits for the device: the pauses between two looks at pinned words. Included by all calls
// that wait for runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace flywheel::detail {

/// Spins for a few microseconds, within which most runs end, then yields, and from some milliseconds on sleeps: for so short a
/// part of what it has waited that a run's end is seen little later than it comes. A sleep lasts 50 us longer than it is told
/// to (Linux: the timer slack of a thread).
class BackOff {
  using Clock = std::chrono::steady_clock;

 public:
  /// True now and then: time for what is not due at each turn, such as a look at the clock.
  bool now_and_then() const { return turn_ < kSpins ? turn_ % 512 == 511 : turn_ % 8 == 7; }
  void pause() {
    if (turn_++ < kSpins) return;
    if (turn_ == kSpins + 1) since_ = Clock::now();
    if (!sleep_.count() && turn_ % kYieldsOfLook) return std::this_thread::yield();
    sleep_ = sleep_after(Clock::now() - since_);
    if (sleep_.count()) std::this_thread::sleep_for(sleep_);
    else std::this_thread::yield();
  }

  /// How long a thread sleeps at a time that has waited so long; 0: it yields.
  static constexpr std::chrono::nanoseconds sleep_after(std::chrono::nanoseconds waited) {
    constexpr std::chrono::nanoseconds kYields = std::chrono::milliseconds(4), kMost = std::chrono::microseconds(100);
    if (waited < kYields) return {};
    return waited / 200 < kMost ? waited / 200 : kMost;
  }

 private:
  static constexpr std::uint32_t kSpins = 2000;       // turns without a pause: a few microseconds
  static constexpr std::uint32_t kYieldsOfLook = 32;  // turns to one look at the clock
  std::uint32_t turn_ = 0;
  std::chrono::nanoseconds sleep_{};
  Clock::time_point since_;
};

/// The time `wait` from now; the end of time if that is beyond it.
inline std::chrono::steady_clock::time_point time_in(std::chrono::nanoseconds wait) {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  const auto ticks = std::chrono::duration_cast<Clock::duration>(wait);
  return ticks < Clock::time_point::max() - now ? now + ticks : Clock::time_point::max();
}

}  // namespace flywheel::detail
