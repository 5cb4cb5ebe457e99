// A run in a coroutine: co_await waits for its end without a thread.
//
//   Answer serve(flywheel::Runtime& rt) {  // Answer: a coroutine type of the program
//     flywheel::Run run = co_await rt.submit(executable);
//     co_return run.get(sum);
//   }
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>

#include "run.hpp"

namespace flywheel {

namespace detail {

/// Resumes the coroutine on the runtime's callback thread. If the run has ended, the coroutine does not suspend.
class RunAwaiter {
 public:
  explicit RunAwaiter(Run run) : run_(std::move(run)) {}
  bool await_ready() { return run_.done(); }
  void await_suspend(std::coroutine_handle<> coroutine) {
    Run run = run_;  // once the callback is known, the coroutine may go on, and this object with it
    run.on_done([coroutine](Run&) { coroutine.resume(); });
  }
  Run await_resume() {
    run_.wait();
    return std::move(run_);
  }

 private:
  Run run_;
};

/// Hands the coroutine to an executor, always.
template <class Executor>
class ExecutorAwaiter {
 public:
  ExecutorAwaiter(Executor executor, Run run) : executor_(std::move(executor)), run_(std::move(run)) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) {
    Run run = run_;  // as in RunAwaiter
    run.on_done([executor = std::move(executor_), coroutine](Run&) mutable { executor(coroutine); });
  }
  Run await_resume() {
    run_.wait();
    return std::move(run_);
  }

 private:
  Executor executor_;
  Run run_;
};

}  // namespace detail

/// Waits for the end of the run. The coroutine goes on at once if the run has ended, else on the runtime's callback
/// thread, see Run::on_done(). The expression is the run; it throws what Run::wait() throws.
inline detail::RunAwaiter operator co_await(Run run) { return detail::RunAwaiter(std::move(run)); }

/// Like co_await run, but an executor of the program resumes the coroutine, also if the run has ended already: the
/// callback thread calls `executor(coroutine)` with a std::coroutine_handle<>, which is a function without parameters.
/// The executor must not throw: the coroutine would not go on.
///
///   co_await flywheel::resume_on([&](std::coroutine_handle<> coroutine) { pool.post(coroutine); }, run);
template <class Executor>
detail::ExecutorAwaiter<Executor> resume_on(Executor executor, Run run) {
  static_assert(std::is_invocable_v<Executor&, std::coroutine_handle<>>,
                "resume_on() calls the executor with the coroutine: write [](std::coroutine_handle<> coroutine) {...}");
  return {std::move(executor), std::move(run)};
}

}  // namespace flywheel
