// How a thread of the program waits for the device: the pauses between two looks at pinned words. Included by all calls
// that wait for runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace flywheel::detail {

/// Spins for a few microseconds, within which most runs end, then yields, then sleeps for 20 us and at last for 100 us
/// at a time.
class BackOff {
 public:
  /// True now and then: time for what is not due at each turn, such as a look at the clock.
  bool now_and_then() const { return turn_ < kSpins ? turn_ % 512 == 511 : turn_ % 8 == 7; }
  void pause() {
    if (turn_++ < kSpins) return;
    if (turn_ < 4000) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(turn_ < 8000 ? 20 : 100));
  }

 private:
  static constexpr std::uint32_t kSpins = 2000;  // turns without a pause: a few microseconds
  std::uint32_t turn_ = 0;
};

/// The time `wait` from now; the end of time if that is beyond it.
inline std::chrono::steady_clock::time_point time_in(std::chrono::nanoseconds wait) {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  const auto ticks = std::chrono::duration_cast<Clock::duration>(wait);
  return ticks < Clock::time_point::max() - now ? now + ticks : Clock::time_point::max();
}

}  // namespace flywheel::detail
