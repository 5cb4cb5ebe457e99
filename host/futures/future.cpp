#include "future.hpp"

#include "../base/back_off.hpp"
#include "core.hpp"
#include "run_error.hpp"

namespace flywheel::detail {

namespace {
using Clock = std::chrono::steady_clock;
}  // namespace

SingleTask& FutureBase::task() {
  if (!task_) throw UsageError("this Future is empty: take the one that Runtime::submit() returns");
  core_->require_ours();
  return *task_;
}

bool FutureBase::done() {
  SingleTask& one = task();
  return core_->dispatcher.singles().collect(one);
}

bool FutureBase::wait_until(Clock::time_point limit) {
  SingleTask& one = task();
  SingleTasks& singles = core_->dispatcher.singles();
  for (BackOff pause; !singles.collect(one); pause.pause())
    if (pause.now_and_then() && Clock::now() > limit) return false;
  return true;
}

void FutureBase::wait() {
  wait_until(Clock::time_point::max());
  if (task_->code != 0) throw_run_error(task_->code, "a single task (" + type_name(task_->type) + ")", task_->cause);
}

bool FutureBase::wait_for(std::chrono::nanoseconds limit) { return wait_until(time_in(limit)); }

Status FutureBase::status() {
  wait_until(Clock::time_point::max());
  return RunError(task_->code, "").status();
}

void FutureBase::cancel() {
  SingleTask& one = task();
  core_->dispatcher.cancel(one);
}

const unsigned char* FutureBase::result() {
  wait();
  return task_->result.data();
}

}  // namespace flywheel::detail
