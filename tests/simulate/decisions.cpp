#include "simulate/decisions.hpp"

#include <algorithm>
#include <iterator>

namespace flywheel::simulate {

void Decisions::begin_run() {
  if (taken_) taken_->count = 0;
  if (!plan_) return;
  std::fill(std::begin(due_), std::end(due_), 0);
  for (std::uint64_t i = plan_->count; i-- > 0;) {
    Decision& one = plan_->at[i];
    if (one.thread >= kThreads) continue;
    one.after = due_[one.thread];
    due_[one.thread] = static_cast<std::uint32_t>(i + 1);
  }
}

std::uint32_t Decisions::planned(Choice choice, std::uint32_t thread, std::uint64_t point, std::uint32_t obvious) {
  if (thread >= kThreads) return obvious;
  std::uint32_t& due = due_[thread];
  while (due && plan_->at[due - 1].point < point) due = plan_->at[due - 1].after;
  for (std::uint32_t i = due; i && plan_->at[i - 1].point == point; i = plan_->at[i - 1].after)
    if (plan_->at[i - 1].choice == choice) return plan_->at[i - 1].value;
  return obvious;
}

}  // namespace flywheel::simulate
