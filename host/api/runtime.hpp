// The runtime: one resident kernel (or its CPU workers) and what a program does with it.
#pragma once

#include <optional>

#include "buffer.hpp"
#include "run.hpp"
#include "../base/options.hpp"
#include "../load/executable.hpp"
#include "../plan/schedule.hpp"

namespace flywheel {

class Engine;
struct KernelEntry;

/// How often to run the graph, looping on the device: repeat(n), or repeat_until_stop(most) until a body calls
/// block.stop().
struct Repeat {
  std::uint32_t times;
};
inline Repeat repeat(std::uint32_t times) { return {times}; }
inline Repeat repeat_until_stop(std::uint32_t most = 0xffffffffu) { return {most}; }

/// A parameter's value for one run.
template <class T>
struct ParamValue {
  Param<T> param;
  T value;
};
template <class T>
ParamValue<T> set(Param<T> param, std::type_identity_t<T> value) {
  return {param, value};
}

/// A run option: write down which role of which worker did what when; see Run::trace(). For runs of compiled graphs.
struct Traced {};
inline constexpr Traced traced{};

/// What a user may want to see; all counts since the start. Workers show theirs when they have nothing to do, so a busy
/// runtime is ahead of what it shows.
struct Stats {
  std::string device;
  std::uint32_t workers;
  std::uint64_t tasks;        // bodies run
  std::uint64_t skipped;      // tasks whose predecessors failed, or whose run was cancelled
  std::uint64_t kept;         // successors a worker kept for itself
  std::uint64_t handed;       // tasks handed straight to an idle worker
  std::uint64_t queued;       // tasks that waited in a queue
  std::uint64_t idle_polls;   // polls of idle workers
  std::uint64_t queue_peak;   // most tasks in a ready queue at once
  std::uint64_t submitted, completed, direct, peak_live;
  std::uint64_t launches, parks;  // of the kernel; equal while it is not on the GPU
};

/// Thread-safe, except for moving. Runs, executables and buffers may outlive it: they keep the memory that they need.
class Runtime {
 public:
  /// Throws DeviceError or CapacityError, see Options; UsageError for a word in the environment that means nothing.
  Runtime(const KernelEntry& entry, const Options& options);
  /// The same on this engine; null: the one that the options ask for.
  Runtime(const KernelEntry& entry, const Options& options, std::unique_ptr<Engine> engine);
  ~Runtime();
  Runtime(Runtime&&) = default;
  Runtime& operator=(Runtime&&) = delete;

  /// Checks the graph and places it in device memory. Throws GraphError for anything that cannot work, CapacityError where
  /// Options leave no room for it.
  Executable load(const Graph& graph);
  /// The same, with every task given to a worker in advance: rt.load(graph, compiled). For graphs that run again and
  /// again. Tasks with operands have them packed here. Runs of compiled graphs need all workers, so one goes at a time.
  Executable load(const Graph& graph, const Compiled& how);
  /// What that comes to, for a person to read.
  std::string describe(const Graph& graph, const Compiled& how = compiled) const;

  /// Starts a run; returns at once, unless Options::max_waiting runs wait in the backlog. Options in any order: repeat(n) or
  /// repeat_until_stop(), set(param, value), a Priority, traced. Throws UsageError for those that do not fit the graph.
  template <class... Options>
  Run submit(const Executable& executable, const Options&... options) {
    auto record = make_record(executable);
    (apply(*record, options), ...);
    return start(std::move(record));
  }
  /// Empty if Options::max_waiting runs wait in the backlog already.
  template <class... Options>
  std::optional<Run> try_submit(const Executable& executable, const Options&... options) {
    auto record = make_record(executable);
    (apply(*record, options), ...);
    return try_start(std::move(record));
  }
  /// Starts when the work given to the CUDA stream so far has ended.
  template <class... Options>
  Run submit_after(CudaStream stream, const Executable& executable, const Options&... options) {
    auto record = make_record(executable);
    (apply(*record, options), ...);
    return start_after(stream, std::move(record));
  }

  /// Zeroed device memory for n values. May park the kernel to take more from the device. Throws CapacityError or
  /// DeviceError if there is not enough.
  template <class T>
  Buffer<T> allocate(std::size_t n) {
    return Buffer<T>(core(), n);
  }
  template <class T>
  Buffer<T> upload(const std::vector<T>& values) {
    Buffer<T> buffer(core(), values.size());
    if (!values.empty()) buffer.write(values);
    return buffer;
  }

  bool on_gpu() const;
  std::uint32_t workers() const;
  std::string device() const;
  Stats stats();
  /// Waits for runs in flight, cancels those that do not end within Options::shutdown_timeout, stops the kernel. Meanwhile other
  /// threads may wait and submit: what comes too late is refused, or ends with Status::aborted. Buffers can still be read. In a
  /// child of fork() the runtime is not there to be used, and this does nothing.
  void shutdown();

 private:
  const std::shared_ptr<Core>& core() const;
  Executable load(const Graph& graph, const Compiled* how);
  std::shared_ptr<RunRecord> make_record(const Executable& executable) const;
  Run start(std::shared_ptr<RunRecord> record);
  std::optional<Run> try_start(std::shared_ptr<RunRecord> record);
  Run start_after(CudaStream stream, std::shared_ptr<RunRecord> record);

  static void apply(RunRecord& run, Repeat repeat);
  static void apply(RunRecord& run, Priority priority);
  static void apply(RunRecord& run, Traced);
  template <class T>
  static void apply(RunRecord& run, const ParamValue<T>& value) {
    set_param(run, value.param.graph, value.param.offset, &value.value, sizeof(T));
  }
  static void set_param(RunRecord& run, std::uint32_t graph, std::uint32_t offset, const void* value, std::size_t bytes);

  std::shared_ptr<Core> core_;
};

}  // namespace flywheel
