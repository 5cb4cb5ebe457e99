#include "trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "../base/error.hpp"

namespace flywheel {
using namespace detail;

namespace detail {
/// Converts a worker's ticks to ns since a moment that is the same for all workers.
struct TraceClock {
  std::uint64_t ticks0;
  double ns0;
  double rate;  // ns per tick

  double ns(std::uint64_t ticks) const { return ns0 + static_cast<double>(static_cast<std::int64_t>(ticks - ticks0)) * rate; }
};
}  // namespace detail

namespace {

// A GPU's shared clock (globaltimer) advances in steps of up to 1 us, so a reading may be early by that much. Over a
// long run this hardly affects the rate, but each worker's offset stays uncertain by one step. The SMs of a GPU share
// one clock rate, so all workers get the mean rate of those that were measured for long enough. A worker that this puts
// off by more than two steps, one for each of its two readings, has a clock of another kind and keeps its own rate. On
// a CPU, ticks are ns already.
constexpr double kStepNs = 1000;
constexpr double kLongNs = 100 * kStepNs;

double ticks_of(const TraceTrack& track) {
  return track.end.ticks > track.begin.ticks ? static_cast<double>(track.end.ticks - track.begin.ticks) : 0;
}
double ns_of(const TraceTrack& track) {
  return track.end.ns > track.begin.ns ? static_cast<double>(track.end.ns - track.begin.ns) : 0;
}

/// The track of each worker whose two readings are furthest apart.
std::vector<TraceTrack> longest_tracks(const std::vector<TraceTrack>& tracks) {
  std::vector<TraceTrack> longest;
  for (auto role = tracks.begin(); role != tracks.end(); role += kTraceRoles) {
    longest.push_back(*std::max_element(role, role + kTraceRoles, [](const TraceTrack& a, const TraceTrack& b) {
      return std::make_tuple(ticks_of(a), a.count) < std::make_tuple(ticks_of(b), b.count);
    }));
  }
  return longest;
}

/// The mean rate in ns per tick; 0 if no track was long enough to measure it.
double shared_rate(const std::vector<TraceTrack>& tracks) {
  double ticks = 0, ns = 0;
  for (const TraceTrack& track : tracks) {
    if (ticks_of(track) == 0 || ns_of(track) < kLongNs) continue;
    ticks += ticks_of(track);
    ns += ns_of(track);
  }
  return ticks > 0 ? ns / ticks : 0;
}

/// A moment near all moments of the run, so that differences keep their precision as doubles. A worker that took no
/// part has zeros.
std::uint64_t epoch_of(const std::vector<TraceTrack>& tracks) {
  std::uint64_t epoch = 0;
  for (const TraceTrack& track : tracks) epoch = std::max(epoch, track.begin.ns);
  return epoch;
}

/// Fits the clock through the middle of the track's two readings, so that the errors of both have the same weight.
TraceClock fit_clock(const TraceTrack& track, double shared, std::uint64_t epoch_ns) {
  const double ticks = ticks_of(track), ns = ns_of(track);
  const bool alike = shared > 0 && std::abs(shared * ticks - ns) <= 2 * kStepNs;
  const double own = ticks > 0 && ns > 0 ? ns / ticks : 1;
  const double rate = alike ? shared : own;
  const double begin_ns = static_cast<double>(static_cast<std::int64_t>(track.begin.ns - epoch_ns));
  return {track.begin.ticks, begin_ns + (ns - rate * ticks) / 2, rate};
}

bool known(std::uint8_t kind) {
  return (kind > static_cast<std::uint8_t>(TraceKind::none) && kind <= static_cast<std::uint8_t>(TraceKind::store)) ||
         kind == static_cast<std::uint8_t>(TraceKind::meeting);
}

void check_size(const char* what, std::size_t have, std::size_t need) {
  if (have == need) return;
  throw UsageError("Trace: " + std::to_string(have) + " " + what + " given and " + std::to_string(need) +
                   " needed; copy all that TraceBuffers describes");
}

/// True if the span is within the body. False if the span's own body was dropped.
bool is_part_of(const TraceSpan& span, const TraceSpan* body) {
  return body && span.task == body->task && span.pass == body->pass && span.begin_ns >= body->begin_ns &&
         span.end_ns <= body->end_ns;
}

}  // namespace

const char* describe(TraceRole role) {
  static const char* const names[kTraceRoles] = {"control", "load", "compute", "store"};
  return names[static_cast<std::uint32_t>(role)];
}

const char* describe(TraceKind kind) {
  static const char* const names[] = {"nothing", "wait for tasks", "gate", "body", "inputs", "page", "landing", "store"};
  if (kind == TraceKind::meeting) return "meeting";
  return names[static_cast<std::uint32_t>(kind)];
}

Trace::Trace(std::uint32_t workers, std::uint32_t capacity, std::vector<TraceTrack> tracks, std::vector<TraceEvent> events,
             std::vector<std::string> task_names, std::vector<std::string> task_types,
             std::vector<std::uint32_t> dependent_bytes, TracedGraph graph)
    : workers_(workers),
      capacity_(capacity),
      task_names_(std::move(task_names)),
      task_types_(std::move(task_types)),
      dependent_bytes_(std::move(dependent_bytes)),
      graph_(std::move(graph)) {
  check_size("tracks", tracks.size(), std::size_t{workers} * kTraceRoles);
  check_size("events", events.size(), tracks.size() * capacity);
  check_size("task types", task_types_.size(), task_names_.size());
  if (!dependent_bytes_.empty()) check_size("tasks' dependent bytes", dependent_bytes_.size(), task_names_.size());
  const std::vector<TraceTrack> longest = longest_tracks(tracks);
  const double shared = shared_rate(longest);
  const std::uint64_t epoch_ns = epoch_of(longest);
  std::vector<TraceClock> clocks;
  for (const TraceTrack& track : longest) clocks.push_back(fit_clock(track, shared, epoch_ns));
  for (std::uint32_t i = 0; i < tracks.size(); ++i)
    add_track(i, tracks[i], events.data() + std::size_t{i} * capacity, clocks[i / kTraceRoles], epoch_ns);
  end_meetings(tracks, clocks);
  find_inputs();
  begin_at_zero();
}

/// Adds a span of kind `inputs` to each body that began before its control role had seen the predecessors end. Such a
/// task is early, and its body waits until then.
void Trace::find_inputs() {
  const auto key = [](const TraceSpan& span) { return std::make_tuple(span.worker, span.pass, span.task); };
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, double> seen;
  for (const TraceSpan& span : spans_)
    if (span.kind == TraceKind::wait) seen[key(span)] = span.end_ns;
  std::vector<TraceSpan> inputs;
  for (const TraceSpan& body : spans_) {
    const auto wait = body.kind == TraceKind::body ? seen.find(key(body)) : seen.end();
    if (wait == seen.end() || wait->second <= body.begin_ns) continue;
    inputs.push_back({body.worker, body.role, TraceKind::inputs, body.task, body.pass, body.begin_ns,
                      std::min(wait->second, body.end_ns), 0});
  }
  spans_.insert(spans_.end(), inputs.begin(), inputs.end());
}

/// Events in front of a kClockEvent are in ticks of another clock, of the SM that the worker was on then: that event knows it.
void Trace::add_track(std::uint32_t index, const TraceTrack& track, const TraceEvent* events, const TraceClock& clock,
                      std::uint64_t epoch_ns) {
  if (track.count > capacity_) {
    ignored_ += capacity_;
    return;
  }
  dropped_ += track.dropped;
  const TraceEvent* const end = events + track.count;
  for (const TraceEvent* event = events; event != end; ++event) {
    if (event->kind != kClockEvent) continue;
    const std::uint64_t ns = std::uint64_t{event->task} << 32 | event->pass;
    add_events(index, events, event, {event->begin, static_cast<double>(static_cast<std::int64_t>(ns - epoch_ns)), clock.rate});
    events = event + 1;
  }
  add_events(index, events, end, clock);
}

void Trace::add_events(std::uint32_t index, const TraceEvent* events, const TraceEvent* end, const TraceClock& clock) {
  const std::uint32_t worker = index / kTraceRoles, role = index % kTraceRoles;
  for (const TraceEvent* event = events; event != end; ++event) {
    if (event->role != role || !known(event->kind)) {
      ++ignored_;
      continue;
    }
    spans_.push_back({worker, static_cast<TraceRole>(role), static_cast<TraceKind>(event->kind), event->task, event->pass,
                      clock.ns(event->begin), clock.ns(event->begin + event->ticks), kib_of(*event)});
  }
}

/// Phased runs: the meetings that no worker was seen to leave, at which the run ended. They end when the last worker comes.
void Trace::end_meetings(const std::vector<TraceTrack>& tracks, const std::vector<TraceClock>& clocks) {
  constexpr auto kCompute = static_cast<std::uint32_t>(TraceRole::compute);
  std::vector<TraceSpan> last;
  double end_ns = 0;
  for (std::uint32_t worker = 0; worker < workers_; ++worker) {
    const TraceTrack& track = tracks[worker * kTraceRoles + kCompute];
    if (!track.meeting_since) continue;
    const double came = clocks[worker].ns(track.meeting_since);
    end_ns = last.empty() ? came : std::max(end_ns, came);
    last.push_back({worker, TraceRole::compute, TraceKind::meeting, kNoTaskOfProgram, 0, came, 0, 0});
  }
  std::uint32_t pass = 0;
  for (const TraceSpan& span : spans_) pass = std::max(pass, span.pass);
  for (TraceSpan& span : last) {
    span.pass = pass;
    span.end_ns = end_ns;
    spans_.push_back(span);
  }
}

/// The operands of a body in KiB: the constant ones, which the role has counted, and those that other tasks had
/// written.
std::uint32_t Trace::kib_of(const TraceEvent& event) const {
  const bool is_body = event.kind == static_cast<std::uint8_t>(TraceKind::body);
  const std::uint32_t bytes = is_body && event.task < dependent_bytes_.size() ? dependent_bytes_[event.task] : 0;
  return std::min<std::uint32_t>(event.bytes_kib + bytes / 1024 + (bytes % 1024 != 0), kManyKib);
}

void Trace::begin_at_zero() {
  // The kind comes last: a body that only waited for inputs comes before that wait.
  std::sort(spans_.begin(), spans_.end(), [](const TraceSpan& a, const TraceSpan& b) {
    return std::make_tuple(a.begin_ns, -a.end_ns, a.worker, a.role, a.kind) <
           std::make_tuple(b.begin_ns, -b.end_ns, b.worker, b.role, b.kind);
  });
  const double first = spans_.empty() ? 0 : spans_.front().begin_ns;
  for (TraceSpan& span : spans_) {
    span.begin_ns -= first;
    span.end_ns -= first;
  }
}

std::string Trace::task_name(std::uint32_t task) const {
  if (task < task_names_.size()) return task_names_[task];
  if (task == kNoTaskOfProgram) return "the library's task that brings the next ones";
  if (task & kSpawnedTask) return "a spawned task (" + task_type(task) + ")";
  return "task " + std::to_string(task);
}

const std::string& Trace::task_type(std::uint32_t task) const {
  static const std::string unknown = "unknown", library = "(library)";
  if (task < task_types_.size()) return task_types_[task];
  if (task == kNoTaskOfProgram) return library;
  const std::uint32_t type = task & ~kSpawnedTask;
  return task & kSpawnedTask && type < graph_.kernel_types.size() ? graph_.kernel_types[type] : unknown;
}

std::vector<double> Trace::costs() const {
  std::vector<double> ns(task_names_.size(), 0);
  std::vector<double> bodies(ns.size(), 0);
  std::vector<const TraceSpan*> last(workers_, nullptr);
  for (const TraceSpan& span : spans_) {
    if (span.task >= ns.size()) continue;
    if (span.kind == TraceKind::body) {
      last[span.worker] = &span;
      ns[span.task] += span.end_ns - span.begin_ns;
      ++bodies[span.task];
    } else if (span.kind == TraceKind::inputs && is_part_of(span, last[span.worker])) {
      ns[span.task] -= span.end_ns - span.begin_ns;
    }
  }
  for (std::size_t i = 0; i < ns.size(); ++i) ns[i] = bodies[i] > 0 ? std::max(0.0, ns[i] / bodies[i]) : 0;
  return ns;
}

}  // namespace flywheel
