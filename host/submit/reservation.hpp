// Reserves room in the ready queues for the first run in the backlog that finds too little, so that smaller runs do not
// pass it for ever. Admission owns the one reservation.
//
// Runs in flight when the large run asks are "old". Any smaller run may pass until the old runs leave enough room. From
// then on that room is reserved. After kMostWait without success all runs in flight count as old again.
// host/submit/README.md gives the reasons.
#pragma once

#include <chrono>
#include <cstdint>

namespace flywheel::detail {

/// The caller holds the dispatcher's mutex. Room is counted in tasks of dynamic runs.
class Reservation {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kMostWait{1000};

  /// The run that arrived as number `place` needs room for `tasks` tasks; at most `limit` may be live, and `live` are.
  void ask(std::uint64_t place, std::uint64_t tasks, std::uint64_t limit, std::uint64_t live, Clock::time_point now);
  /// Ends the reservation: no run needs it.
  void drop() { place_ = 0, keeps_ = false; }
  /// True if a run with `tasks` tasks may pass the run that has asked.
  bool lets_pass(std::uint64_t tasks) const { return !keeps_ || old_ + beside_ + tasks + needed_ <= limit_; }

  /// A run goes in flight. Returns its number, which left() needs when it ends.
  std::uint64_t entered(std::uint64_t tasks);
  void left(std::uint64_t number, std::uint64_t tasks);

 private:
  void wait_for_all(std::uint64_t live);

  std::uint64_t place_ = 0;  // of the run that asks; 0: none
  std::uint64_t needed_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t numbers_ = 0;      // runs that have gone in flight so far
  std::uint64_t last_old_ = 0;     // number of the last old run
  std::uint64_t old_ = 0;          // live tasks of old runs
  std::uint64_t last_passed_ = 0;  // number of the last run that passed before room was reserved
  std::uint64_t beside_ = 0;       // live tasks of runs after that one
  bool keeps_ = false;
  Clock::time_point since_{};  // when room was reserved
  std::chrono::milliseconds most_wait_ = kMostWait;
};

}  // namespace flywheel::detail
