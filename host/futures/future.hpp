// Future: the result of a single task, returned by Runtime::submit(task).
//
//   flywheel::Future<float> result = rt.submit(Square{3.f});
//   float nine = result.get();
#pragma once

#include <chrono>
#include <cstring>
#include <memory>

#include "../../runtime/base/status.hpp"
#include "../base/error.hpp"

namespace flywheel {

class Runtime;

namespace detail {
struct Core;
struct RunRecord;
struct SingleTask;

/// What all futures have. Copies refer to the same task. The task goes on when the last of them is gone. A
/// default-constructed one is empty, and its functions throw UsageError.
class FutureBase {
 public:
  FutureBase() = default;
  FutureBase(std::shared_ptr<Core> core, std::shared_ptr<SingleTask> task) : core_(std::move(core)), task_(std::move(task)) {}
  /// Of a task that follows others: it is a run of its own.
  FutureBase(std::shared_ptr<Core> core, std::shared_ptr<RunRecord> run) : core_(std::move(core)), run_(std::move(run)) {}

  /// Waits until the task has ended. Throws RunError if it failed or was cancelled.
  void wait();
  /// Waits until the task has ended, at most for `limit`. False if it has not by then. Does not throw for a failed task.
  bool wait_for(std::chrono::nanoseconds limit);
  /// True if the task has ended. Does not wait.
  bool done();
  /// Waits for the end and returns Status::ok or the reason of the failure; Status::task_failed for the program's own codes.
  Status status();
  /// Asks the task to end early: it is skipped if it has not begun, else block.cancelled() becomes true in its body.
  void cancel();

 protected:
  /// Waits; returns the bytes of the result.
  const unsigned char* result();

 private:
  friend class flywheel::Runtime;  // after() and set()

  void require_task() const;
  bool wait_until(std::chrono::steady_clock::time_point limit);

  std::shared_ptr<Core> core_;
  // At most one of them is set.
  std::shared_ptr<SingleTask> task_;
  std::shared_ptr<RunRecord> run_;
};
}  // namespace detail

/// The result of a single task, whose body returns `R`.
template <class R>
class Future : public detail::FutureBase {
 public:
  using FutureBase::FutureBase;
  /// Waits for the end and returns what the body has returned. Throws RunError if the task failed or was cancelled.
  R get() {
    R value;
    std::memcpy(&value, result(), sizeof(R));
    return value;
  }
};
template <>
class Future<void> : public detail::FutureBase {
 public:
  using FutureBase::FutureBase;
  /// Like wait().
  void get() { wait(); }
};

}  // namespace flywheel
