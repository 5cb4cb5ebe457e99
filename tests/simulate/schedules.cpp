// Who goes on: the schedules.
#include <algorithm>

#include "simulate/scheduler.hpp"

namespace flywheel::simulate {

void Scheduler::choose_style() {
  style_ = settings_.schedule;
  if (style_ == Schedule::any) style_ = static_cast<Schedule>(random_.below(static_cast<std::uint32_t>(Schedule::any)));
  constexpr std::uint32_t kOneIn[] = {1, 2, 4, 16, 64};
  switch_one_in_ = kOneIn[random_.below(5)];
  lowest_ = std::uint64_t{1} << 32;
  long_ = settings_.large ? 40'000 : 1'500;
  next_change_ = random_.below(long_ / 2);
  jumps_left_ = 20;
}

/// Whether the running fiber goes on, as far as that can be drawn before the others are looked at.
bool Scheduler::stays() {
  outcome_ = false;
  if (self().state != FiberState::ready || style_ == Schedule::pct || decisions_.on()) return false;
  const bool some_stop = style_ == Schedule::stop || style_ == Schedule::most;
  if (some_stop ? steps_ >= stopped_until_ || stopped_[current_] : switch_one_in_ == 1) return false;
  outcome_ = true;
  return !random_.one_in(switch_one_in_);
}

/// One of ready_[0 .. count), or kMostFibers: time has to pass first.
std::uint32_t Scheduler::choose(std::uint32_t count) {
  if (!decisions_.on()) return pick(count);
  const std::uint32_t obvious = obvious_next(count), wanted = decide(Choice::next, obvious, [&] { return pick(count); });
  ++self().point;
  const std::uint32_t next = can_go_on(wanted) ? wanted : obvious;
  self().stayed = next == current_ ? self().stayed + 1 : 0;
  return next;
}

bool Scheduler::can_go_on(std::uint32_t next) const {
  return next == kMostFibers ? next_wake_ != kNever : next < fibers_.size() && fibers_[next]->state == FiberState::ready;
}

/// See Choice::next. ready_ is in the order of the fibers' numbers.
std::uint32_t Scheduler::obvious_next(std::uint32_t count) const {
  constexpr std::uint64_t kLong = 1000;
  const Fiber& fiber = *fibers_[current_];
  if (fiber.state == FiberState::ready && !fiber.yields && fiber.stayed < kLong) return current_;
  const std::uint32_t* const above = std::upper_bound(ready_, ready_ + count, current_);
  return above == ready_ + count ? ready_[0] : *above;
}

std::uint32_t Scheduler::pick(std::uint32_t count) {
  if (style_ == Schedule::pct) {
    if (steps_ >= next_change_ || in_a_row_ > long_ / 2) {
      self().priority = --lowest_;
      in_a_row_ = 0;
      if (steps_ >= next_change_) next_change_ = steps_ + 1 + random_.below(long_ / 2);
    }
    return *std::max_element(ready_, ready_ + count,
                             [&](std::uint32_t a, std::uint32_t b) { return fibers_[a]->priority < fibers_[b]->priority; });
  }
  if (style_ == Schedule::stop || style_ == Schedule::most) return pick_moving(count);
  if (!outcome_ && self().state == FiberState::ready && switch_one_in_ > 1 && !random_.one_in(switch_one_in_)) return current_;
  return ready_[random_.below(count)];
}

std::uint32_t Scheduler::pick_moving(std::uint32_t count) {
  if (steps_ >= stopped_until_) stop_somebody();
  std::uint32_t moving = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    if (!stopped_[ready_[i]]) ready_[moving++] = ready_[i];
  if (!moving) {
    if (next_wake_ != kNever) return kMostFibers;
    stopped_until_ = 0;  // only they can go on
    return ready_[random_.below(count)];
  }
  if (!outcome_ && self().state == FiberState::ready && !stopped_[current_] && !random_.one_in(switch_one_in_)) return current_;
  return ready_[random_.below(moving)];
}

void Scheduler::stop_somebody() {
  const auto fibers = static_cast<std::uint32_t>(fibers_.size());
  const bool most = style_ == Schedule::most;
  std::fill(stopped_.begin(), stopped_.end(), false);
  stopped_until_ = steps_ + 1 + random_.below(random_.one_in(4) ? long_ : long_ / 10);
  if (random_.one_in(4)) return;  // nobody this time
  for (std::uint32_t i = 0; i < fibers; ++i) stopped_[i] = most && i && !random_.one_in(fibers);
  if (most) stopped_[1 + random_.below(fibers)] = false;
  else stopped_[random_.below(fibers)] = true;
}

}  // namespace flywheel::simulate
