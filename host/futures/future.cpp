#include "future.hpp"

#include "../base/back_off.hpp"
#include "../plan/task_name.hpp"
#include "core.hpp"
#include "run.hpp"
#include "run_error.hpp"

namespace flywheel::detail {

namespace {
using Clock = std::chrono::steady_clock;

/// A run that does nothing, but after the task.
std::shared_ptr<RunRecord> run_after(const std::shared_ptr<Core>& core, const std::shared_ptr<SingleTask>& task) {
  auto graph = graph_of_message(core->memory.dev(), 1, 0);
  graph->core = core;  // for its listener
  graph->types = {task->type};
  auto run = std::make_shared<RunRecord>(std::move(graph));
  run->root = std::make_unique<TaskRecord>(fetch_task({nullptr, 0, 0}));
  run->before = std::make_unique<RunsBefore>();
  run->before->singles.push_back(task);
  return run;
}
}  // namespace

void FutureBase::require_task() const {
  if (!task_ && !run_) throw UsageError("this Future is empty: take the one that Runtime::submit() returns");
  core_->require_ours();
}

bool FutureBase::done() {
  require_task();
  return run_ ? Run(core_, run_).done() : core_->dispatcher.singles().collect(*task_);
}

bool FutureBase::wait_until(Clock::time_point limit) {
  require_task();
  if (run_) return Run(core_, run_).wait_until(limit);
  SingleTasks& singles = core_->dispatcher.singles();
  for (BackOff pause; !singles.collect(*task_); pause.pause())
    if (pause.now_and_then() && Clock::now() > limit) return false;
  return true;
}

void FutureBase::wait() {
  wait_until(Clock::time_point::max());
  if (run_ && run_->code != 0) throw_run_error(run_->code, run_->fault_task ? run_->graph->task_name(0) : "", run_->cause);
  if (task_ && task_->code != 0) throw_run_error(task_->code, single_task_text(task_->type), task_->cause);
}

bool FutureBase::wait_for(std::chrono::nanoseconds limit) { return wait_until(time_in(limit)); }

Status FutureBase::status() {
  wait_until(Clock::time_point::max());
  return RunError(run_ ? run_->code : task_->code, "").status();
}

void FutureBase::cancel() {
  require_task();
  if (run_) core_->dispatcher.cancel(run_);
  else core_->dispatcher.cancel(*task_);
}

void FutureBase::add_callback(std::shared_ptr<Callback> callback) {
  require_task();
  if (run_) return Run(core_, run_).add_callback(std::move(callback));
  const auto run = run_after(core_, task_);
  run->add_listener(core_->callbacks.listener(std::move(callback)));
  RunRecord::let_listen(run);
  try {
    if (!done()) return core_->dispatcher.submit(run);
  } catch (const Error&) {  // the runtime was shut down or its device is lost: the task has ended, or will at once
    wait_until(Clock::time_point::max());
  }
  run->end_alone();
}

const unsigned char* FutureBase::result() {
  wait();
  return run_ ? run_->results.data() : task_->result.data();
}

}  // namespace flywheel::detail
