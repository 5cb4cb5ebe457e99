// Traces: what every worker did in a run and when, to look at in a browser, to read, and to feed back as costs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../../runtime/records/trace.hpp"

namespace flywheel {

/// So many KiB of operands, or more.
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
  std::uint32_t bytes_kib;  // of operands that a body took; kManyKib for that or more
};

struct TraceClock;

/// The trace of one run that has ended.
class Trace {
 public:
  Trace() = default;
  /// What the device wrote, as copied from it: `lanes` holds workers x kTraceRoles, `events` holds `capacity` for each
  /// lane; names, types and bytes of dependent operands (none if empty; events count the constant ones) are by graph-local
  /// index. Throws UsageError if the sizes do not fit together.
  Trace(std::uint32_t workers, std::uint32_t capacity, std::vector<TraceLane> lanes, std::vector<TraceEvent> events,
        std::vector<std::string> task_names, std::vector<std::string> task_types,
        std::vector<std::uint32_t> dependent_bytes = {});

  /// Sorted by begin; what lies within another comes after it.
  const std::vector<TraceSpan>& spans() const& { return spans_; }
  std::vector<TraceSpan> spans() && { return std::move(spans_); }
  /// Events there was no room for: Options::trace_events was too small.
  std::uint64_t dropped() const { return dropped_; }
  /// Events that no role can have written. A lane that claims more events than fit counts as full of them.
  std::uint64_t ignored() const { return ignored_; }
  std::uint32_t workers() const { return workers_; }
  /// "task 7 (Saxpy)".
  std::string task_name(std::uint32_t task) const;
  const std::string& task_type(std::uint32_t task) const;

  /// For ui.perfetto.dev and chrome://tracing: one line for each worker and role, one box for each span.
  std::string chrome_json() const;
  /// Where the time goes, as text: the run as a whole (Macro), its task types and bubbles (Meso), single waits and
  /// tasks (Micro).
  std::string report() const;
  /// Mean ns of each task's body without its waits for the tasks before it, by graph-local index; 0 for a task that never ran.
  /// For Compiled::costs.
  std::vector<double> costs() const;

 private:
  void add_lane(std::uint32_t index, const TraceLane& lane, const TraceEvent* events, const TraceClock& clock);
  void find_inputs();
  void begin_at_zero();
  std::uint32_t kib_of(const TraceEvent& event) const;

  std::uint32_t workers_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t ignored_ = 0;
  std::vector<TraceSpan> spans_;
  std::vector<std::string> task_names_;
  std::vector<std::string> task_types_;
  std::vector<std::uint32_t> dependent_bytes_;
};

/// "control", "load", "compute", "store".
const char* describe(TraceRole role);
/// What a role did, in a word or two.
const char* describe(TraceKind kind);

}  // namespace flywheel
