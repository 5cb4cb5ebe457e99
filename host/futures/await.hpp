// A run or a single task in a coroutine: co_await waits for its end without a thread.
//
//   Answer serve(flywheel::Runtime& rt) {  // Answer: a coroutine type of the program
//     flywheel::Run run = co_await rt.submit(executable);
//     const float nine = co_await rt.submit(Square{3.f});
//     co_return run.get(sum) + nine;
//   }
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>

#include "run.hpp"

namespace flywheel {

namespace detail {

/// What an awaited handle of something that has ended gives.
inline Run value_of(Run& run) {
  run.wait();
  return std::move(run);
}
template <class R>
R value_of(Future<R>& future) {
  return future.get();
}

/// Resumes the coroutine on the runtime's callback thread. If the run or the task has ended, the coroutine does not suspend.
template <class Handle>
class Awaiter {
 public:
  explicit Awaiter(Handle handle) : handle_(std::move(handle)) {}
  bool await_ready() { return handle_.done(); }
  void await_suspend(std::coroutine_handle<> coroutine) {
    Handle handle = handle_;  // once the callback is known, the coroutine may go on, and this object with it
    handle.on_done([coroutine](Handle&) { coroutine.resume(); });
  }
  auto await_resume() { return value_of(handle_); }

 private:
  Handle handle_;
};

/// Hands the coroutine to an executor, always.
template <class Executor, class Handle>
class ExecutorAwaiter {
 public:
  ExecutorAwaiter(Executor executor, Handle handle) : executor_(std::move(executor)), handle_(std::move(handle)) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) {
    Handle handle = handle_;  // as in Awaiter
    handle.on_done([executor = std::move(executor_), coroutine](Handle&) mutable { executor(coroutine); });
  }
  auto await_resume() { return value_of(handle_); }

 private:
  Executor executor_;
  Handle handle_;
};

template <class Handle>
inline constexpr bool kAwaited = std::is_same_v<Handle, Run>;
template <class R>
inline constexpr bool kAwaited<Future<R>> = true;

}  // namespace detail

/// Waits for the end of the run or task. The coroutine goes on at once if it has ended, else on the runtime's callback thread,
/// see Run::on_done(). The expression is the run, or the task's result; it throws what wait() throws.
inline detail::Awaiter<Run> operator co_await(Run run) { return detail::Awaiter<Run>(std::move(run)); }
template <class R>
detail::Awaiter<Future<R>> operator co_await(Future<R> future) {
  return detail::Awaiter<Future<R>>(std::move(future));
}

/// Like co_await, but an executor of the program resumes the coroutine, also if the run or task has ended already: the
/// callback thread calls `executor(coroutine)` with a std::coroutine_handle<>, which is a function without parameters.
/// The executor must not throw: the coroutine would not go on.
///
///   co_await flywheel::resume_on([&](std::coroutine_handle<> coroutine) { pool.post(coroutine); }, run);
template <class Executor, class Handle>
detail::ExecutorAwaiter<Executor, Handle> resume_on(Executor executor, Handle handle) {
  static_assert(std::is_invocable_v<Executor&, std::coroutine_handle<>>,
                "resume_on() calls the executor with the coroutine: write [](std::coroutine_handle<> coroutine) {...}");
  static_assert(detail::kAwaited<Handle>, "resume_on() takes a flywheel::Run or a flywheel::Future");
  return {std::move(executor), std::move(handle)};
}

}  // namespace flywheel
