// What a task body can ask of its block, on any processor. GpuBlock and CpuBlock add threads, scratch and barriers.
#pragma once

#include <cstring>
#include <type_traits>

#include "completion.hpp"
#include "ready.hpp"
#include "spawn.hpp"

namespace flywheel {

/// A run parameter: a value that changes from one run of an executable to the next. Made by Graph::param<T>().
template <class T>
struct Param {
  std::uint32_t offset;  // bytes into the run's parameters
  std::uint32_t graph;   // to which it belongs: the lower half of its id
};

/// What a body asked for; the worker reads it when the body has ended. One 16-byte word on the GPU.
struct alignas(16) Outcome {
  std::uint32_t code;     // 0, or why the task failed
  std::uint32_t spawned;  // 1 once the body has spawned a task
  std::uint32_t stop;     // 1 once the body has called stop()
  std::uint32_t iteration;
};

/// The part of a block that one task body sees. Lives where all threads of the block can reach it.
struct TaskContext {
  const DeviceState* dev;
  const TaskHeader* header;
  RunState* run;
  Item item;
  std::uint32_t worker;
  Outcome outcome;
  std::uint32_t stamp = 0;  // of the pass of a compiled run, see stamped.hpp
};

/// `P` is the platform of one thread of the block; `List` the kernel's task types.
template <class P, class List>
class BlockCore {
 public:
  FLYWHEEL_TASK explicit BlockCore(TaskContext& context) : context_(&context) {}

  /// Fails this task with a code of the program's own. Tasks that depend on it are skipped, its run reports the
  /// code, other runs go on. The body returns by itself. Any thread; the first code counts. What is above kMostUserCode,
  /// a negative number for example, is told as that.
  FLYWHEEL_TASK void fail(std::uint32_t code) { fail_with(kUserStatus + (code < kMostUserCode ? code : kMostUserCode)); }

  /// True once the run was cancelled: a long body looks from time to time and returns early. A task that was told so
  /// counts as cancelled, whatever it had done by then.
  FLYWHEEL_TASK bool cancelled() {
    const bool yes = P::device(context_->run->line.cancelled).load(Order::relaxed) ||
                     P::device(context_->dev->control->broadcast.abort).load(Order::relaxed);
    if (yes) fail_with(static_cast<std::uint32_t>(Status::cancelled));
    return yes;
  }

  /// The value that this run was submitted with.
  template <class T>
  FLYWHEEL_TASK T param(Param<T> p) const {
    static_assert(std::is_trivially_copyable_v<T>, "a run parameter must be trivially copyable");
    T value;
    memcpy(&value, context_->run->params + p.offset, sizeof(T));
    return value;
  }

  /// Streams up to 8 bytes to the host while the run goes on. One call, one value; call it from one thread.
  /// Waits while the host is Options::stream_capacity values behind. False (and the task fails) if that never ends.
  template <class T>
  FLYWHEEL_TASK bool emit(T value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a streamed value is at most 8 plain bytes");
    std::uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    const Views<P> views{*context_->dev};
    const bool sent = views.stream(context_->item.run).write(*context_->run, bits, views.wait(context_->worker));
    if (!sent) fail_with(static_cast<std::uint32_t>(Status::stream_stalled));
    return sent;
  }

  /// Submits one more task to this run; each calling thread spawns one. What waits for this task waits for the
  /// spawned one too, and finds what both wrote. The spawned task finds what this thread wrote before the call, and what other
  /// threads of the block wrote before a sync() ahead of it. False if the spawn pool is full: do the work here, or raise
  /// Options::spawn_capacity.
  template <class Task>
  [[nodiscard]] FLYWHEEL_TASK bool spawn(const Task& task, Priority priority = Priority::inherit) {
    static_assert(std::is_trivially_copyable_v<Task> && sizeof(Task) <= kTaskArgBytes,
                  "a task type must be trivially copyable and fit kTaskArgBytes; keep larger data behind a pointer");
    if (context_->run->line.constants.flags & kAllWorkers) {
      fail_with(static_cast<std::uint32_t>(Status::spawn_in_phase));  // nobody would wait for it
      return false;
    }
    const bool done = spawn_task<P>(*context_->dev, context_->worker, context_->item.run, *context_->header,
                                    List::template index_of<Task>(), &task, sizeof(Task), priority);
    if (done) P::block(context_->outcome.spawned).store(1, Order::relaxed);  // the end of the body releases it
    return done;
  }

  /// Which pass of a repeated run this is, from 0.
  FLYWHEEL_TASK std::uint32_t iteration() const { return context_->outcome.iteration; }
  /// Compiled runs: what words written in this pass are stamped with.
  FLYWHEEL_TASK std::uint32_t stamp() const { return context_->stamp; }
  /// For the parts of early tasks (see operands.hpp), which have more to say. All others begin when this is so.
  FLYWHEEL_TASK static constexpr bool await() { return true; }
  FLYWHEEL_TASK static constexpr bool await_sent() { return true; }
  FLYWHEEL_TASK static constexpr void sent() {}

  /// Ends a repeated run after this iteration.
  FLYWHEEL_TASK void stop() { P::block(context_->outcome.stop).store(1, Order::relaxed); }

  FLYWHEEL_TASK std::uint32_t worker() const { return context_->worker; }
  FLYWHEEL_TASK std::uint32_t workers() const { return context_->dev->workers; }

  /// Library use: a task's return value, to where the host finds it. One thread calls.
  template <class T>
  FLYWHEEL_TASK void write_result(const T& value) const {
    if (context_->header->result_offset == kNoResult) return;
    const DeviceState& dev = *context_->dev;
    memcpy(dev.results + std::size_t{context_->item.run} * dev.result_bytes + context_->header->result_offset,
           &value, sizeof(T));
  }

 protected:
  FLYWHEEL_TASK void fail_with(std::uint32_t code) {
    P::block(context_->outcome.code).compare_exchange(0, code, Order::relaxed);  // the first one stands; the body's end releases it
  }

  TaskContext* context_;
};

}  // namespace flywheel
