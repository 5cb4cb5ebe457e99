// Runtime: the resident kernel (or the CPU workers) and the functions with which a program loads and submits graphs.
// Programs include it through <flywheel/flywheel.hpp> and create it with flywheel::start<Tasks...>().
#pragma once

#include <functional>
#include <optional>
#include <ranges>

#include "../base/compiled.hpp"
#include "../base/options.hpp"
#include "../futures/batch.hpp"
#include "../futures/completion_queue.hpp"
#include "../futures/future.hpp"
#include "../futures/run.hpp"
#include "../load/executable.hpp"
#include "buffer.hpp"
#include "stats.hpp"

namespace flywheel {

namespace detail {
class Engine;
struct KernelEntry;
/// A run option that a task without a graph may have.
template <class T>
concept OptionOfTask = std::is_same_v<T, Priority> || std::is_same_v<T, AfterRuns> || std::is_same_v<T, Notify>;
}  // namespace detail

/// A run option: how often the run repeats the graph, in a loop on the device. repeat(n) makes n passes;
/// repeat_until_stop(most) repeats until a body calls block.stop(), but at most `most` times.
struct Repeat {
  std::uint32_t times;
};
inline Repeat repeat(std::uint32_t times) { return {times}; }
inline Repeat repeat_until_stop(std::uint32_t most = 0xffffffffu) { return {most}; }

/// A run option: the value of a parameter for one run. Made by set().
template <class T>
struct ParamValue {
  Param<T> param;
  T value;
};
/// Makes the run option that sets a parameter: rt.submit(executable, set(step, 7)).
template <class T>
ParamValue<T> set(Param<T> param, std::type_identity_t<T> value) {
  return {param, value};
}

/// A run option: a parameter that is the result of a task of another run, or of a single task. Made by set().
template <class T>
struct ParamOfRun {
  Param<T> param;
  Run run;
  TaskRef<T> task;
};
template <class T>
struct ParamOfFuture {
  Param<T> param;
  Future<T> future;
};
/// Makes the run option that takes what another run computes, on the device: rt.submit(executable, set(p, run, task)) or
/// set(p, future). The new run follows that one, see after(). The value has at most 8 bytes.
template <class T>
ParamOfRun<T> set(Param<T> param, const Run& run, const TaskRef<T>& task) {
  static_assert(sizeof(T) <= 8,
                "a parameter that another run computes has at most 8 bytes: let that run write larger ones to a buffer");
  return {param, run, task};
}
template <class T>
ParamOfFuture<T> set(Param<T> param, const Future<T>& future) {
  static_assert(sizeof(T) <= 8,
                "a parameter that another run computes has at most 8 bytes: let that run write larger ones to a buffer");
  return {param, future};
}

/// A run option: records what each worker does, and when; see Run::trace() and BatchParts::trace(). For runs of all graphs, and
/// for batches. Options::trace_events is the room for it. Runs that are not traced go on beside it and do not show; traced ones
/// wait for each other, whichever way they run: one trace is written at a time. Runs of one executable and priority keep their
/// order, so one that is not traced may wait behind one that does.
struct Traced {};
inline constexpr Traced traced{};

namespace detail {
/// A run option that a batch may have.
template <class T>
concept OptionOfBatch = std::is_same_v<T, Priority> || std::is_same_v<T, AfterRuns> || std::is_same_v<T, Traced>;

/// The options of a batch.
struct BatchOptions {
  Priority priority = Priority::normal;
  AfterRuns after;
  bool traced = false;

  void add(Priority one) { priority = one; }
  void add(const AfterRuns& one) { after = one; }
  void add(Traced) { traced = true; }
  template <OptionOfBatch... Options>
  static BatchOptions of(const Options&... options) {
    BatchOptions all;
    (all.add(options), ...);
    return all;
  }
};
}  // namespace detail

/// Thread-safe, except for moving. Runs, executables and buffers may outlive the runtime: they keep the memory that
/// they need.
///
///   flywheel::Runtime rt = flywheel::start<Saxpy>();
///   flywheel::Executable executable = rt.load(graph);
///   flywheel::Run run = rt.submit(executable, flywheel::repeat(10), flywheel::Priority::high);
///   run.wait();
class Runtime {
 public:
  /// Starts a runtime. Throws DeviceError or CapacityError, see Options, and UsageError for an unknown value of an
  /// environment variable.
  Runtime(const detail::KernelEntry& entry, const Options& options);
  /// Starts a runtime on this engine. Null: the engine that the options ask for.
  Runtime(const detail::KernelEntry& entry, const Options& options, std::unique_ptr<detail::Engine> engine);
  /// Calls shutdown() and logs what it throws.
  ~Runtime();
  Runtime(Runtime&&) = default;
  Runtime& operator=(Runtime&&) = delete;

  /// Checks the graph and places it in device memory. Throws GraphError for a graph that cannot work, CapacityError if
  /// the sizes in Options leave no room for it.
  Executable load(const Graph& graph);
  /// Compiles the graph and loads it: every task gets a worker in advance. Example: rt.load(graph, compiled). It suits
  /// graphs that run again and again. The operands of tasks are packed here, by a run of its own. A run of a compiled
  /// graph needs all workers, so such runs go one at a time. Throws like load(graph), and what that run fails with.
  Executable load(const Graph& graph, const Compiled& how);
  /// The schedule that load(graph, how) would make, as text.
  std::string describe(const Graph& graph, const Compiled& how = compiled) const;

  /// Submits a run. Returns at once, unless Options::max_waiting runs wait in the backlog: then it waits for room. Run
  /// options come in any order: repeat(n) or repeat_until_stop(), set(param, value), a Priority, traced, notify(queue),
  /// after(runs). Throws UsageError for options that do not fit the graph and after shutdown(), DeviceError if the device is
  /// lost.
  template <class... Options>
  Run submit(const Executable& executable, const Options&... options) {
    auto record = make_record(executable);
    (apply(*record, options), ...);
    return start(std::move(record));
  }
  /// Like submit(), but returns nothing if Options::max_waiting runs wait in the backlog.
  template <class... Options>
  std::optional<Run> try_submit(const Executable& executable, const Options&... options) {
    auto record = make_record(executable);
    (apply(*record, options), ...);
    return try_start(std::move(record));
  }
  /// Like submit(), but the run starts when the work that the CUDA stream has so far is done. Throws UsageError on CPU
  /// workers.
  template <class... Options>
  Run submit_after(CudaStream stream, const Executable& executable, const Options&... options) {
    auto record = make_record(executable);
    (apply(*record, options), ...);
    return start_after(stream, std::move(record));
  }

  /// Submits one task without a graph. Its arguments travel with the message and its result with the completion, so this is
  /// the fastest way to new work. Many threads may submit at once; none takes a lock that another holds for long. While 1024
  /// such tasks are in flight it waits. A single task has no stream and no parameters. Throws like submit(range).
  ///
  ///   flywheel::Future<float> result = rt.submit(Square{3.f});
  template <detail::Submittable Task>
  Future<detail::ResultOf<Task>> submit(const Task& task, Priority priority = Priority::normal) {
    detail::TaskRecord record = record_of(task, kResultInCompletion);
    return {core(), submit_single(record, typeid(Task), priority)};
  }
  /// The same with run options, in any order: for a task that starts when what after() names has ended, or that comes out of a
  /// queue when it has: rt.submit(Square{3.f}, after(run, future), notify(queue, 7)). It is a run of its own.
  template <detail::Submittable Task, detail::OptionOfTask First, detail::OptionOfTask... Others>
  Future<detail::ResultOf<Task>> submit(const Task& task, const First& first, const Others&... others) {
    detail::TaskRecord record = record_of(task, 0);
    std::shared_ptr<detail::RunRecord> run = run_of(record, typeid(Task), sizeof_result<Task>());
    apply(*run, first);
    (apply(*run, others), ...);
    start(run);
    return {core(), std::move(run)};
  }
  /// Submits tasks of one type without a graph: no load, and no limit to their number. Returns when the last of them is on
  /// its way; while all blocks are in use it waits for tasks to end. Tasks of a higher priority run first. Options, in any
  /// order: a Priority, after(runs), traced. Throws GraphError for a task type that is not the runtime's and for a buffer that
  /// tasks cannot use, UsageError after shutdown() and if there is no room for a trace, DeviceError if the device is lost.
  ///
  ///   std::vector<Square> squares = ...;
  ///   flywheel::Batch<float> batch = rt.submit(squares, after(run));
  template <std::ranges::contiguous_range Tasks, detail::OptionOfBatch... Options>
  requires detail::Submittable<std::ranges::range_value_t<Tasks>>
  auto submit(const Tasks& tasks, const Options&... options) {
    using Task = std::ranges::range_value_t<Tasks>;
    static_assert(detail::check_task_type<Task>());
    Batch<detail::ResultOf<Task>> batch;
    const Task* from = std::ranges::data(tasks);
    const std::size_t count = std::ranges::size(tasks);
    if constexpr (detail::Asks<const Task>::buffers)
      for (std::size_t i = 0; i < count; ++i)
        from[i].buffers([&](const char* name, const void* pointer) { check_buffer(typeid(Task), i, name, pointer); });
    submit_parts(batch, typeid(Task), detail::bytes_of_result<detail::ResultOf<Task>>(), count,
                 detail::BatchOptions::of(options...),
                 [from](std::size_t first, std::uint32_t n, detail::TaskHeader header, detail::TaskRecord* to) {
                   for (std::uint32_t i = 0; i < n; ++i) {
                     header.local = static_cast<std::uint32_t>(first + i);
                     to[i].header = header;
                     std::memcpy(to[i].args, from + first + i, sizeof(Task));
                     if (header.result_offset != kNoResult) header.result_offset += sizeof_result<Task>();
                   }
                 });
    return batch;
  }
  /// Submits tasks of several types without a graph. Like submit(range).
  template <detail::OptionOfBatch... Options>
  MixedBatch submit_batch(const BatchBuilder& tasks, const Options&... options) {
    return submit_batch(tasks, detail::BatchOptions::of(options...));
  }

  /// Allocates zeroed device memory for n values. If the heap has no room, the runtime parks the kernel and takes more
  /// memory from the device. Throws CapacityError or DeviceError if there is not enough.
  template <class T>
  Buffer<T> allocate(std::size_t n) {
    return Buffer<T>(core(), n);
  }
  /// Allocates a buffer and copies the values to it. Throws like allocate().
  template <class T>
  Buffer<T> upload(const std::vector<T>& values) {
    Buffer<T> buffer(core(), values.size());
    if (!values.empty()) buffer.write(values);
    return buffer;
  }

  /// Gives the GPU back once, as happens every Options::yield_every: the kernel ends as soon as no task runs, and is launched
  /// again after a short gap. Runs go on where they were. Returns at once.
  void yield();

  /// True if the workers run on a GPU.
  bool on_gpu() const;
  /// The number of workers.
  std::uint32_t workers() const;
  /// The name of the GPU, or "CPU, n workers".
  std::string device() const;
  /// The statistics now. May wait for 1 ms, so that workers that have just become idle can publish their counts.
  Stats stats();
  /// Waits for the runs in flight, cancels those that do not end within Options::shutdown_timeout, and stops the
  /// kernel. Other threads may wait and submit meanwhile: a submission that comes too late throws, or its run ends with
  /// Status::aborted. The callbacks of all these runs return before it does, unless that takes longer than
  /// Options::shutdown_timeout; called by a callback, it does not wait for callbacks. Buffers can still be read
  /// afterwards. In a child of fork() it does nothing.
  void shutdown();

 private:
  friend class Pause;
  friend class Product;

  /// Writes the records of `n` tasks from `first` on. `header` is that of the first; its index and, if there are results,
  /// its offset go on from there.
  using FillRecords =
      std::function<void(std::size_t first, std::uint32_t n, detail::TaskHeader header, detail::TaskRecord* to)>;

  template <class Task>
  static constexpr std::uint32_t sizeof_result() {
    return detail::bytes_of_result<detail::ResultOf<Task>>();
  }

  /// The record of a task of its own, whose result, if there is one, goes to `result_offset`.
  template <class Task>
  detail::TaskRecord record_of(const Task& task, std::uint32_t result_offset) const {
    static_assert(detail::check_task_type<Task>());
    if constexpr (detail::Asks<const Task>::buffers)
      task.buffers([&](const char* name, const void* pointer) { check_buffer(typeid(Task), 0, name, pointer); });
    detail::TaskRecord record{};  // zeroed to its end: a message leaves zeros out
    record.header.result_offset = sizeof_result<Task>() ? result_offset : kNoResult;
    std::memcpy(record.args, &task, sizeof(Task));
    return record;
  }

  const std::shared_ptr<detail::Core>& core() const;
  std::shared_ptr<detail::RunRecord> run_of(detail::TaskRecord& record, std::type_index type, std::uint32_t result_bytes);
  std::shared_ptr<detail::SingleTask> submit_single(detail::TaskRecord& record, std::type_index type, Priority priority);
  void check_buffer(std::type_index type, std::size_t task, const char* name, const void* pointer) const;
  void submit_parts(detail::BatchParts& batch, std::type_index type, std::uint32_t result_bytes, std::size_t count,
                    const detail::BatchOptions& options, const FillRecords& fill);
  /// A part of a BatchBuilder's tasks.
  struct PlannedPart {
    std::uint32_t tasks, result_bytes;
  };
  std::vector<PlannedPart> plan_parts(const BatchBuilder& tasks, std::vector<std::uint32_t>& offsets) const;
  void start_part(detail::BatchParts& batch, std::shared_ptr<detail::RunRecord> run, std::uint32_t tasks,
                  const detail::BatchOptions& options);
  MixedBatch submit_batch(const BatchBuilder& tasks, const detail::BatchOptions& options);
  std::shared_ptr<detail::TracedWork> trace_batch(std::size_t parts) const;
  /// Throws UsageError if there is no room for a trace.
  std::shared_ptr<detail::TracedWork> make_tracing(std::uint32_t runs) const;
  Executable load(const Graph& graph, const Compiled* how);
  std::shared_ptr<detail::RunRecord> make_record(const Executable& executable) const;
  Run start(std::shared_ptr<detail::RunRecord> record);
  std::optional<Run> try_start(std::shared_ptr<detail::RunRecord> record);
  Run start_after(CudaStream stream, std::shared_ptr<detail::RunRecord> record);

  static void apply(detail::RunRecord& run, Repeat repeat);
  static void apply(detail::RunRecord& run, Priority priority);
  void apply(detail::RunRecord& run, Traced) const;
  static void apply(detail::RunRecord& run, const Notify& notify);
  void apply(detail::RunRecord& run, const AfterRuns& after) const;
  template <class T>
  void apply(detail::RunRecord& run, const ParamOfRun<T>& value) const {
    check_param(run, value.param.graph, value.param.offset, sizeof(T));
    follow(run, value.run);
    take_value(run, value.run, value.task.graph, value.task.result_offset, value.param.offset, sizeof(T));
  }
  template <class T>
  void apply(detail::RunRecord& run, const ParamOfFuture<T>& value) const {
    check_param(run, value.param.graph, value.param.offset, sizeof(T));
    follow(run, value.future);
    take_value(run, value.future, value.param.offset, sizeof(T));
  }
  void follow(detail::RunRecord& run, const Run& one) const;
  void follow(detail::RunRecord& run, const detail::FutureBase& one) const;
  static void take_value(detail::RunRecord& run, const Run& of, std::uint64_t graph, std::uint32_t from, std::uint32_t to,
                         std::uint32_t bytes);
  static void take_value(detail::RunRecord& run, const detail::FutureBase& of, std::uint32_t to, std::uint32_t bytes);
  static void check_param(const detail::RunRecord& run, std::uint32_t graph, std::uint32_t offset, std::size_t bytes);
  template <class T>
  static void apply(detail::RunRecord& run, const ParamValue<T>& value) {
    set_param(run, value.param.graph, value.param.offset, &value.value, sizeof(T));
  }
  static void set_param(detail::RunRecord& run, std::uint32_t graph, std::uint32_t offset, const void* value,
                        std::size_t bytes);

  std::shared_ptr<detail::Core> core_;
};

/// No kernel of the runtime is resident while a Pause lives: for calls that wait for the whole device, such as cudaFree,
/// cudaDeviceSynchronize and the first launch of a kernel that CUDA loads lazily.
///
///   { flywheel::Pause guard(rt); cudaFree(memory); }
///
/// Runs in flight are suspended with their work kept, and go on afterwards. Submissions wait until then; a thread that waits
/// for a run while it holds a Pause waits for ever. Pauses nest and may come from several threads.
class Pause {
 public:
  /// Waits for the kernel to end. Throws DeviceError if it does not within Options::shutdown_timeout, because a task, a pass
  /// of a compiled run or a phase takes so long.
  explicit Pause(Runtime& runtime);
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  std::shared_ptr<detail::Core> core_;
};

}  // namespace flywheel
