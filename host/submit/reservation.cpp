#include "reservation.hpp"

namespace flywheel::detail {

void Reservation::ask(std::uint64_t place, std::uint64_t tasks, std::uint64_t limit, std::uint64_t live,
                      Clock::time_point now) {
  if (place != place_) {
    place_ = place, needed_ = tasks, limit_ = limit, most_wait_ = kMostWait;
    wait_for_all(live);
  }
  if (keeps_ && now - since_ > most_wait_) {
    most_wait_ *= 2;
    wait_for_all(live);
  }
  if (keeps_ || old_ + needed_ > limit_) return;
  keeps_ = true;
  since_ = now;
  last_passed_ = numbers_;
  beside_ = 0;
}

void Reservation::wait_for_all(std::uint64_t live) {
  last_old_ = numbers_;
  old_ = live;
  keeps_ = false;
}

std::uint64_t Reservation::entered(std::uint64_t tasks) {
  if (keeps_) beside_ += tasks;
  return ++numbers_;
}

void Reservation::left(std::uint64_t number, std::uint64_t tasks) {
  if (!place_) return;
  if (number <= last_old_) old_ -= tasks;
  else if (keeps_ && number > last_passed_) beside_ -= tasks;
}

}  // namespace flywheel::detail
