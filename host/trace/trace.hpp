// Trace: what every worker did in a run and when. A program gets it from Run::trace(), views it in a browser, reads it
// as a report, or gives its costs to Compiled.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../../runtime/records/graph.hpp"
#include "../../runtime/records/trace.hpp"

namespace flywheel {

/// The largest value of TraceSpan::bytes_kib; it stands for all larger ones too.
inline constexpr std::uint32_t kManyKib = 0xffff;

/// Something that one role of one worker did, in ns since the first event of the run.
struct TraceSpan {
  std::uint32_t worker;
  TraceRole role;
  TraceKind kind;
  std::uint32_t
      task;  // graph-local index, as Graph::add() gave it, or index in the batch; or see kSpawnedTask, kNoTaskOfProgram
  std::uint32_t pass;
  double begin_ns;
  double end_ns;
  std::uint32_t bytes_kib;  // operands that a body took, in KiB; kManyKib: that many or more
};

/// How many tasks were ready and had not begun, from a moment on.
struct QueueLength {
  double at_ns;
  std::uint32_t tasks;
};

namespace detail {
struct TraceClock;

/// What a trace has to know of what ran.
struct TracedGraph {
  GraphKind kind = GraphKind::compiled;
  std::vector<std::string> kernel_types;  // names of the kernel's task types, by position: spawned tasks have no more
  // A dynamic graph: the successors of task i are successors[first_successor[i] .. first_successor[i + 1] - 1].
  std::vector<std::uint32_t> first_successor, successors;
  std::vector<std::uint32_t> parts;  // a batch: the index of each part's first task
};
}  // namespace detail

/// The trace of a run that has ended.
///
///   std::ofstream("trace.json") << run.trace().chrome_json();
class Trace {
 public:
  Trace() = default;
  /// Takes what the device has written: `tracks` holds workers x kTraceRoles, and `events` holds `capacity` events for
  /// each track. Names, types and `dependent_bytes` are by graph-local index. `dependent_bytes` are operands that other
  /// tasks write, and may be empty; events count the constant operands. `graph`: of a run that is not compiled. Throws
  /// UsageError if the sizes do not fit together.
  Trace(std::uint32_t workers, std::uint32_t capacity, std::vector<detail::TraceTrack> tracks,
        std::vector<detail::TraceEvent> events, std::vector<std::string> task_names, std::vector<std::string> task_types,
        std::vector<std::uint32_t> dependent_bytes = {}, detail::TracedGraph graph = {});

  /// All spans, sorted by begin. A span within another one comes after it.
  const std::vector<TraceSpan>& spans() const& { return spans_; }
  std::vector<TraceSpan> spans() && { return std::move(spans_); }
  /// The number of events for which there was no room: Options::trace_events was too small.
  std::uint64_t dropped() const { return dropped_; }
  /// The number of events that no role can have written. A track that claims more events than fit counts as full of
  /// them.
  std::uint64_t ignored() const { return ignored_; }
  std::uint32_t workers() const { return workers_; }
  /// The name of a task: "task 7 (Saxpy)", "a spawned task (Visit)".
  std::string task_name(std::uint32_t task) const;
  /// The name of a task's type: "Saxpy".
  const std::string& task_type(std::uint32_t task) const;

  /// Dynamic graphs and batches: how many tasks were ready and had not begun, whenever that changes, by time. A task is ready
  /// when the last of its predecessors has ended, a root at the begin of its pass; one of a batch when the library has brought
  /// the part that it is in. Spawned tasks are not among them: nobody notes when they become ready. Empty for other runs.
  std::vector<QueueLength> queue_lengths() const;

  /// The trace as JSON for ui.perfetto.dev and chrome://tracing: one line for each worker and role, one box for each
  /// span, and a counter of the ready tasks.
  std::string chrome_json() const;
  /// A report of where the time goes, as text: the run as a whole (Macro), its task types and bubbles (Meso), single
  /// waits and tasks (Micro).
  std::string report() const;
  /// Library use: what it knows of what ran.
  const detail::TracedGraph& graph() const { return graph_; }
  /// For Compiled::costs: the mean time in ns of each task's body, by graph-local index, without its waits for
  /// predecessors; 0 for a task that never ran.
  std::vector<double> costs() const;

 private:
  void add_track(std::uint32_t index, const detail::TraceTrack& track, const detail::TraceEvent* events,
                 const detail::TraceClock& clock, std::uint64_t epoch_ns);
  void add_events(std::uint32_t index, const detail::TraceEvent* events, const detail::TraceEvent* end,
                  const detail::TraceClock& clock);
  void end_meetings(const std::vector<detail::TraceTrack>& tracks, const std::vector<detail::TraceClock>& clocks);
  void find_inputs();
  void begin_at_zero();
  std::uint32_t kib_of(const detail::TraceEvent& event) const;

  std::uint32_t workers_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t ignored_ = 0;
  std::vector<TraceSpan> spans_;
  std::vector<std::string> task_names_;
  std::vector<std::string> task_types_;
  std::vector<std::uint32_t> dependent_bytes_;
  detail::TracedGraph graph_;
};

/// The name of a role: "control", "load", "compute", "store".
const char* describe(TraceRole role);
/// The name of what a role did.
const char* describe(TraceKind kind);

}  // namespace flywheel
