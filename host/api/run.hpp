// A run: the future of one submission.
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include "../base/cuda_stream.hpp"
#include "../base/error.hpp"
#include "../plan/graph.hpp"

namespace flywheel {

class Trace;
struct Core;
struct RunRecord;

/// Copies share the run. Dropping the last one does not stop it.
class Run {
 public:
  Run() = default;
  Run(std::shared_ptr<Core> core, std::shared_ptr<RunRecord> record)
      : core_(std::move(core)), record_(std::move(record)) {}

  /// Waits for the end. Throws RunError if the run failed or was cancelled.
  void wait();
  /// False if it has not ended in time. Does not throw for a failed run.
  bool wait_for(std::chrono::nanoseconds limit);
  bool done();
  /// Status::ok, or how it ended; waits. A code of the program's own reads as Status::task_failed.
  Status status();
  /// Passes of a repeated run that were completed; waits.
  std::uint32_t iterations();

  /// What the task's body returned; waits. Throws RunError if the run failed.
  template <class R>
  R get(const TaskRef<R>& task) {
    R value;
    copy_result(task.graph, task.result_offset, &value, sizeof(R));
    return value;
  }

  /// What a run submitted with `traced` wrote down; waits. Empty for others.
  const Trace& trace();

  /// The next streamed value; waits for it. Empty once the run has ended and all its values are read.
  /// T must be the type that the bodies emit.
  template <class T>
  std::optional<T> next() {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a streamed value is at most 8 plain bytes");
    std::uint64_t bits = 0;
    if (!next_value(bits, true)) return std::nullopt;
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
  /// Like next(), but empty also when there is none yet.
  template <class T>
  std::optional<T> try_next() {
    std::uint64_t bits = 0;
    if (!next_value(bits, false)) return std::nullopt;
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }

  /// Tasks that have not started are skipped; bodies see block.cancelled(); a phased run ends at one of the next
  /// boundaries. The run then ends with Status::cancelled, unless it was over before the message got there.
  void cancel();
  /// Work given to the CUDA stream after this call starts when the run has ended.
  void let_stream_wait(CudaStream stream);

 private:
  RunRecord& record();
  void drain();
  bool wait_until(std::chrono::steady_clock::time_point limit);
  void throw_if_failed();
  void copy_result(std::uint64_t graph, std::uint32_t offset, void* to, std::size_t bytes);
  bool next_value(std::uint64_t& bits, bool wait);

  std::shared_ptr<Core> core_;
  std::shared_ptr<RunRecord> record_;
};

}  // namespace flywheel
