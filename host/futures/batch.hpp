// Batches: tasks that a program submits without a graph. Runtime::submit(range) and Runtime::submit_batch() return them.
//
//   std::vector<Square> squares = ...;
//   flywheel::Batch<float> batch = rt.submit(squares);
//   float third = batch.get(2);
//
// The tasks of a batch run in any order. Their arguments travel in blocks of up to 512 tasks, each of which is a run of its
// own: a part. A batch may have any number of tasks: submitting waits while all blocks are on their way.
#pragma once

#include <algorithm>
#include <typeindex>
#include <utility>
#include <vector>

#include "../../runtime/records/task_type.hpp"
#include "run.hpp"

namespace flywheel {

class Runtime;

namespace detail {
struct TracedWork;

/// What the body of a task type returns.
template <class Task>
using ResultOf = decltype(std::declval<const Task&>()(std::declval<AnyBlock<false>&>()));

/// A type that Runtime::submit() takes for a task type; check_task_type() says what is wrong with one that is none.
template <class Task>
concept Submittable = std::is_class_v<Task> && std::is_invocable_v < const Task&,
        AnyBlock<false>
& > ;

/// Bytes of a result; 0 for void.
template <class R>
constexpr std::uint32_t bytes_of_result() {
  if constexpr (std::is_void_v<R>) {
    return 0;
  } else {
    static_assert(std::is_trivially_copyable_v<R> && sizeof(R) <= 64 && alignof(R) <= 16,
                  "a task may return a plain value of up to 64 bytes, aligned to 16 at most; write other results to a buffer");
    return sizeof(R);
  }
}

/// The parts of a batch, in order.
class BatchParts {
 public:
  /// The number of tasks.
  std::size_t size() const { return size_; }

  /// Waits until all tasks have ended. Throws RunError if one failed or the batch was cancelled: of the first such part.
  void wait();
  /// Waits until all tasks have ended, at most for `limit`. False if they have not by then. Does not throw for failures.
  bool wait_for(std::chrono::nanoseconds limit);
  /// True if all tasks have ended. Does not wait.
  bool done();
  /// Waits for the end and returns Status::ok or the reason of the first part that failed.
  Status status();
  /// Asks all parts to end early, see Run::cancel().
  void cancel();
  /// Waits until all tasks have ended and returns the trace of a batch that was submitted with `traced`; tasks have their index
  /// in the batch. An empty one for another batch, and while a part that the host has ended early goes on on the device. It
  /// lives as long as the batch.
  const Trace& trace();

  /// For after(): adds all parts.
  friend void follow(AfterRuns& all, const BatchParts& batch) {
    all.runs.insert(all.runs.end(), batch.parts_.begin(), batch.parts_.end());
  }

 protected:
  friend class flywheel::Runtime;
  BatchParts() = default;
  /// What it is moved from has no task.
  BatchParts(BatchParts&& other) noexcept
      : parts_(std::move(other.parts_)),
        begins_(std::move(other.begins_)),
        size_(std::exchange(other.size_, 0)),
        tracing_(std::move(other.tracing_)) {}
  BatchParts& operator=(BatchParts&& other) noexcept {
    parts_ = std::move(other.parts_);
    begins_ = std::move(other.begins_);
    size_ = std::exchange(other.size_, 0);
    tracing_ = std::move(other.tracing_);
    return *this;
  }
  /// Appends a part with `count` tasks.
  void add(Run part, std::size_t count);
  /// The part with task `i`. Throws UsageError if there is no such task.
  std::size_t part_of(std::size_t i) const;

  std::vector<Run> parts_;
  std::vector<std::size_t> begins_;  // of each part: the index of its first task
  std::size_t size_ = 0;
  std::shared_ptr<TracedWork> tracing_;  // null: the batch is not traced
};
}  // namespace detail

/// The results of a range of tasks of one type. `R` is what the body returns. Move-only; the tasks go on when it is gone.
template <class R>
class Batch : public detail::BatchParts {
 public:
  Batch() = default;
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = default;

  /// Waits for the part that task `i` of the range is in, and returns what its body has returned. Throws RunError if a task
  /// of that part failed, UsageError if there is no task `i`.
  R get(std::size_t i) requires(!std::is_void_v<R>) {
    const std::size_t part = part_of(i);
    return parts_[part].get(ref(i - begins_[part]));
  }

  /// Calls f(i, result) for each task, part by part as they end. Waits for all. Throws like get(), at the first part that
  /// failed; what came before has been given to f.
  template <class F>
  void for_each(F&& f) requires(!std::is_void_v<R>) {
    std::vector<std::size_t> open(parts_.size());
    for (std::size_t p = 0; p < open.size(); ++p) open[p] = p;
    while (!open.empty()) {
      if (!std::erase_if(open, [&](std::size_t part) { return give_if_done(part, f); }))
        parts_[open.front()].wait_for(kShortWait);
    }
  }

 private:
  static constexpr std::chrono::microseconds kShortWait{20};

  static TaskRef<R> ref(std::size_t at) {
    return {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at * detail::bytes_of_result<R>()), 0};
  }
  template <class F>
  bool give_if_done(std::size_t part, F&& f) {
    if (!parts_[part].done()) return false;
    const std::size_t end = part + 1 < begins_.size() ? begins_[part + 1] : size_;
    for (std::size_t i = begins_[part]; i < end; ++i) f(i, parts_[part].get(ref(i - begins_[part])));
    return true;
  }
};

/// A task of a BatchBuilder, whose body returns `R`.
template <class R = void>
struct BatchRef {
  std::size_t index;
};

/// Collects tasks of several types for Runtime::submit_batch(). It may be submitted again.
///
///   flywheel::BatchBuilder tasks;
///   auto a = tasks.add(Square{2.f});
///   auto b = tasks.add(Count{data, n});
///   flywheel::MixedBatch batch = rt.submit_batch(tasks);
///   float four = batch.get(a);
class BatchBuilder {
 public:
  template <class Task>
  BatchRef<detail::ResultOf<Task>> add(const Task& task) {
    static_assert(detail::check_task_type<Task>());
    using R = detail::ResultOf<Task>;
    const std::size_t before = buffers_.size();
    const auto note = [&](const char* name, const void* pointer) { buffers_.push_back({entries_.size(), name, pointer}); };
    try {
      if constexpr (requires { task.buffers(note); }) task.buffers(note);
      std::memcpy(entries_.emplace_back(Entry{typeid(Task), detail::bytes_of_result<R>(), {}}).args, &task, sizeof(Task));
    } catch (...) {
      buffers_.resize(before);
      throw;
    }
    return {entries_.size() - 1};
  }
  std::size_t size() const { return entries_.size(); }
  void clear() {
    entries_.clear();
    buffers_.clear();
  }

 private:
  friend class Runtime;
  struct Entry {
    std::type_index type;
    std::uint32_t result_bytes;
    alignas(16) unsigned char args[kTaskArgBytes];
  };
  struct NamedBuffer {
    std::size_t task;
    const char* name;
    const void* pointer;
  };
  std::vector<Entry> entries_;
  std::vector<NamedBuffer> buffers_;
};

/// The results of a BatchBuilder's tasks. Move-only; the tasks go on when it is gone.
class MixedBatch : public detail::BatchParts {
 public:
  MixedBatch() = default;
  MixedBatch(MixedBatch&&) = default;
  MixedBatch& operator=(MixedBatch&&) = default;

  /// Waits for the part that the task is in, and returns what its body has returned. Throws RunError if a task of that part
  /// failed, UsageError if the batch has no such task.
  template <class R>
  R get(const BatchRef<R>& task) {
    const std::size_t part = part_of(task.index);
    return parts_[part].get(TaskRef<R>{0, offsets_[task.index], 0});
  }

 private:
  friend class Runtime;
  std::vector<std::uint32_t> offsets_;  // of each task's result in its part's results
};

}  // namespace flywheel
