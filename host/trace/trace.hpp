// Trace: what every worker did in a run and when. A program gets it from Run::trace(), views it in a browser, reads it
// as a report, or gives its costs to Compiled.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../../runtime/records/trace.hpp"

namespace flywheel {

/// The largest value of TraceSpan::bytes_kib; it stands for all larger ones too.
inline constexpr std::uint32_t kManyKib = 0xffff;

/// Something that one role of one worker did, in ns since the first event of the run.
struct TraceSpan {
  std::uint32_t worker;
  TraceRole role;
  TraceKind kind;
  std::uint32_t task;  // graph-local index, as Graph::add() gave it
  std::uint32_t pass;
  double begin_ns;
  double end_ns;
  std::uint32_t bytes_kib;  // operands that a body took, in KiB; kManyKib: that many or more
};

namespace detail {
struct TraceClock;
}  // namespace detail

/// The trace of a run that has ended.
///
///   std::ofstream("trace.json") << run.trace().chrome_json();
class Trace {
 public:
  Trace() = default;
  /// Takes what the device has written: `tracks` holds workers x kTraceRoles, and `events` holds `capacity` events for
  /// each track. Names, types and `dependent_bytes` are by graph-local index. `dependent_bytes` are operands that other
  /// tasks write, and may be empty; events count the constant operands. Throws UsageError if the sizes do not fit
  /// together.
  Trace(std::uint32_t workers, std::uint32_t capacity, std::vector<detail::TraceTrack> tracks,
        std::vector<detail::TraceEvent> events, std::vector<std::string> task_names, std::vector<std::string> task_types,
        std::vector<std::uint32_t> dependent_bytes = {});

  /// All spans, sorted by begin. A span within another one comes after it.
  const std::vector<TraceSpan>& spans() const& { return spans_; }
  std::vector<TraceSpan> spans() && { return std::move(spans_); }
  /// The number of events for which there was no room: Options::trace_events was too small.
  std::uint64_t dropped() const { return dropped_; }
  /// The number of events that no role can have written. A track that claims more events than fit counts as full of
  /// them.
  std::uint64_t ignored() const { return ignored_; }
  std::uint32_t workers() const { return workers_; }
  /// The name of a task: "task 7 (Saxpy)".
  std::string task_name(std::uint32_t task) const;
  /// The name of a task's type: "Saxpy".
  const std::string& task_type(std::uint32_t task) const;

  /// The trace as JSON for ui.perfetto.dev and chrome://tracing: one line for each worker and role, one box for each
  /// span.
  std::string chrome_json() const;
  /// A report of where the time goes, as text: the run as a whole (Macro), its task types and bubbles (Meso), single
  /// waits and tasks (Micro).
  std::string report() const;
  /// For Compiled::costs: the mean time in ns of each task's body, by graph-local index, without its waits for
  /// predecessors; 0 for a task that never ran.
  std::vector<double> costs() const;

 private:
  void add_track(std::uint32_t index, const detail::TraceTrack& track, const detail::TraceEvent* events,
                 const detail::TraceClock& clock);
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
};

/// The name of a role: "control", "load", "compute", "store".
const char* describe(TraceRole role);
/// The name of what a role did.
const char* describe(TraceKind kind);

}  // namespace flywheel
