// Future: the result of a single task, returned by Runtime::submit(task).
//
//   flywheel::Future<float> result = rt.submit(Square{3.f});
//   float nine = result.get();
//
// A program that keeps no thread for the end has it called, on_done(), awaits it in a coroutine (await.hpp), or takes it from a
// queue: rt.submit(Square{3.f}, notify(queue, 7)).
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "../../runtime/base/status.hpp"
#include "../base/error.hpp"

namespace flywheel {

class Run;
class Runtime;

namespace detail {
struct Core;
struct RunRecord;
struct SingleTask;

/// A function of the program that is called when a run has ended.
class Callback {
 public:
  Callback() = default;
  virtual ~Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  virtual void call(Run& run) = 0;
};

template <class F>
class CallbackOf final : public Callback {
 public:
  explicit CallbackOf(F function) : function_(std::move(function)) {}
  void call(Run& run) override { function_(run); }

 private:
  F function_;
};

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
  /// Calls function(of) once the task has ended.
  template <class F, class Of>
  void call_when_done(F function, Of of) {
    static_assert(std::is_invocable_v<F&, Of&>,
                  "on_done() calls the function with the future: give it one parameter, as [](auto& future) {...}");
    auto call = [function = std::move(function), of = std::move(of)](Run&) mutable {
      // Where the runtime fails or shuts down, the run that was to find the end of a single task may end a moment before it.
      of.wait_until(std::chrono::steady_clock::time_point::max());
      function(of);
    };
    add_callback(std::make_shared<CallbackOf<decltype(call)>>(std::move(call)));
  }

 private:
  friend class flywheel::Runtime;  // after() and set()

  void require_task() const;
  void add_callback(std::shared_ptr<Callback> callback);
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
  /// Calls `function(future)` once when the task has ended, as Run::on_done() does. The end of a task that was submitted with
  /// nothing but a priority is found by an empty run that follows it; notify() and after() make the task a run itself.
  ///
  ///   rt.submit(Square{3.f}).on_done([&](flywheel::Future<float>& future) { total += future.get(); });
  template <class F>
  void on_done(F function) {
    this->call_when_done(std::move(function), *this);
  }
};
template <>
class Future<void> : public detail::FutureBase {
 public:
  using FutureBase::FutureBase;
  /// Like wait().
  void get() { wait(); }
  /// As above.
  template <class F>
  void on_done(F function) {
    this->call_when_done(std::move(function), *this);
  }
};

}  // namespace flywheel
