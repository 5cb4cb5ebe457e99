// Room in the ready queues that is kept for the first run in the backlog that finds too little of it, so that smaller runs do not
// pass it for ever.
//
// What is in flight when the run asks first may take its time: meanwhile any smaller run passes, since the large one could
// not go even if it were alone in the backlog. Once these runs have ended, later ones pass only where they leave the room that the
// large run needs; it then goes when those that passed it before have ended. If that takes longer than kPatience, one of
// them may never end, and may even wait for a run in the backlog: all that is in flight is then waited for anew, with twice the
// wait limit.
#pragma once

#include <chrono>
#include <cstdint>

namespace flywheel {

/// The caller holds the dispatcher's mutex. Counts tasks of dynamic runs.
class Reservation {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPatience{1000};

  /// The run with this place in the backlog needs room for `tasks` of `limit`, and `live` are taken.
  void ask(std::uint64_t place, std::uint64_t tasks, std::uint64_t limit, std::uint64_t live, Clock::time_point now);
  /// Nobody asks any more.
  void drop() { place_ = 0, keeps_ = false; }
  /// True if a run of so many tasks may pass the one that asked.
  bool lets_pass(std::uint64_t tasks) const { return !keeps_ || old_ + beside_ + tasks + needed_ <= limit_; }

  /// A run goes in flight. Returns its number, for left().
  std::uint64_t entered(std::uint64_t tasks);
  void left(std::uint64_t number, std::uint64_t tasks);

 private:
  void wait_for_all(std::uint64_t live);

  std::uint64_t place_ = 0;    // of the run that asks; 0: nobody does
  std::uint64_t needed_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t numbers_ = 0;  // given to runs in flight so far
  std::uint64_t last_old_ = 0;  // number of the last run that the large one waits for in any case
  std::uint64_t old_ = 0;       // live tasks of these
  std::uint64_t last_passed_ = 0;  // number of the last run that went before room was kept
  std::uint64_t beside_ = 0;       // live tasks of runs that came after it
  bool keeps_ = false;
  Clock::time_point since_{};  // room is kept
  std::chrono::milliseconds patience_ = kPatience;
};

}  // namespace flywheel
