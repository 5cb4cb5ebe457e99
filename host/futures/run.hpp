// Run: the future of one submission, returned by Runtime::submit().
//
//   flywheel::Run run = rt.submit(executable);
//   run.wait();
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/cuda_stream.hpp"
#include "../base/error.hpp"
#include "../plan/graph.hpp"
#include "future.hpp"

namespace flywheel {

class Run;
class Runtime;
class Trace;
namespace detail {
class BatchParts;
struct Core;
struct RunRecord;
struct RunWaits;
}  // namespace detail

/// Copies refer to the same run. The run continues when the last of them is gone. Different copies may be used by
/// different threads. A default-constructed Run is empty, and its functions throw UsageError.
class Run {
 public:
  Run() = default;
  Run(std::shared_ptr<detail::Core> core, std::shared_ptr<detail::RunRecord> record)
      : core_(std::move(core)),
        record_(std::move(record)) {}

  /// Waits until the run has ended. Throws RunError if it failed or was cancelled.
  void wait();
  /// Waits until the run has ended, at most for `limit`. False if it has not ended by then. Does not throw for a failed
  /// run.
  bool wait_for(std::chrono::nanoseconds limit);
  /// True if the run has ended. Does not wait.
  bool done();
  /// Waits for the end and returns Status::ok or the reason of the failure. A code of the program's own reads as
  /// Status::task_failed.
  Status status();
  /// Waits for the end and returns the number of completed passes of a repeated run.
  std::uint32_t iterations();

  /// Waits for the end and returns the value that the task's body has returned. Throws RunError if the run failed, and
  /// UsageError for a task of another graph or one that was added after load().
  template <class R>
  R get(const TaskRef<R>& task) {
    R value;
    copy_result(task.graph, task.result_offset, &value, sizeof(R));
    return value;
  }

  /// Waits for the end and returns the trace of a run that was submitted with `traced`; empty for other runs.
  const Trace& trace();

  /// Waits for the next streamed value and returns it. Empty once the run has ended and all its values are read. T must
  /// be the type that the task bodies emit.
  template <class T>
  std::optional<T> next() {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a streamed value is at most 8 plain bytes");
    std::uint64_t bits = 0;
    if (!next_value(bits, true)) return std::nullopt;
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
  /// Like next(), but does not wait: empty also if there is no value yet.
  template <class T>
  std::optional<T> try_next() {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a streamed value is at most 8 plain bytes");
    std::uint64_t bits = 0;
    if (!next_value(bits, false)) return std::nullopt;
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }

  /// Asks the run to end early. Tasks that have not started are skipped, block.cancelled() becomes true in running
  /// bodies, and a phased run ends at one of its next phase boundaries. The run then ends with Status::cancelled,
  /// unless it was over before the request arrived.
  void cancel();
  /// Calls `function(run)` once when the run has ended, however it ends, on the runtime's callback thread. A run that
  /// has ended already is handed to that thread at once. The callback may do what any thread may: submit, wait, load.
  /// Other callbacks of the runtime wait until it returns. What it throws is logged. Runtime::shutdown() waits for the
  /// callbacks of runs that have ended.
  ///
  ///   run.on_done([&](flywheel::Run& run) { total += run.get(sum); });
  template <class F>
  void on_done(F function) {
    static_assert(std::is_invocable_v<F&, Run&>,
                  "on_done() calls the function with the run: give it one parameter, as [](flywheel::Run& run) {...}");
    add_callback(std::make_shared<detail::CallbackOf<F>>(std::move(function)));
  }
  /// Work that is submitted to the CUDA stream after this call starts when the run has ended. Throws UsageError on CPU
  /// workers and DeviceError if the GPU does not support it.
  void let_stream_wait(CudaStream stream);

 private:
  friend struct detail::RunWaits;   // when_any() and when_all()
  friend class detail::FutureBase;  // a future of a run
  friend class detail::BatchParts;  // its trace
  friend class Runtime;             // after()

  detail::RunRecord& record();
  void drain();
  void try_drain();
  bool wait_until(std::chrono::steady_clock::time_point limit);
  void throw_if_failed();
  void copy_result(std::uint64_t graph, std::uint32_t offset, void* to, std::size_t bytes);
  bool next_value(std::uint64_t& bits, bool wait);
  void add_callback(std::shared_ptr<detail::Callback> callback);

  std::shared_ptr<detail::Core> core_;
  std::shared_ptr<detail::RunRecord> record_;
};

/// A run option: what the new run follows. Made by after().
struct AfterRuns {
  std::vector<Run> runs;
  std::vector<detail::FutureBase> futures;
};

namespace detail {
inline void follow(AfterRuns& all, const Run& run) { all.runs.push_back(run); }
inline void follow(AfterRuns& all, const FutureBase& future) { all.futures.push_back(future); }
template <class Range>
auto follow(AfterRuns& all, const Range& runs) -> decltype(follow(all, *std::begin(runs))) {
  for (const auto& run : runs) follow(all, run);
}
template <class T>
concept Followed = requires(AfterRuns& all, const T& runs) {
  follow(all, runs);
};
}  // namespace detail

/// The new run starts when all of these have ended, and sees what they wrote: rt.submit(executable, after(a, b)). Each argument
/// is a Run, a Future, a batch, or a range of them. If one fails or is cancelled, the new run does not run, and ends with
/// Status::predecessor_failed. See host/futures/README.md for where it waits.
template <detail::Followed First, detail::Followed... Runs>
AfterRuns after(const First& first, const Runs&... runs) {
  AfterRuns all;
  using detail::follow;  // and those of batches, by their type
  follow(all, first);
  (follow(all, runs), ...);
  return all;
}

}  // namespace flywheel
