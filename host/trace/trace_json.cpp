// Writes Chrome's trace event format, which Perfetto reads too ("Trace Event Format", Google, 2016): complete events
// ("X"), counters ("C") and metadata ("M"). Times are in us.
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "trace.hpp"

namespace flywheel {
using namespace detail;

namespace {

/// The text as a JSON string with its quotes. Invalid UTF-8 becomes U+FFFD.
std::string json_quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::uint32_t thread_of(std::uint32_t worker, TraceRole role) {
  return worker * kTraceRoles + static_cast<std::uint32_t>(role);
}

std::string label(const Trace& trace, const TraceSpan& span) {
  if (span.kind == TraceKind::gate || span.kind == TraceKind::meeting) return describe(span.kind);
  const std::string name = trace.task_name(span.task);
  return span.kind == TraceKind::body ? name : fmt::format("{}: {}", describe(span.kind), name);
}

void add_metadata(std::string& json, std::uint32_t worker, TraceRole role) {
  fmt::format_to(std::back_inserter(json),
                 ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":{0},"
                 "\"args\":{{\"name\":\"worker {1} {2}\"}}}}"
                 ",\n{{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":0,\"tid\":{0},"
                 "\"args\":{{\"sort_index\":{0}}}}}",
                 thread_of(worker, role), worker, describe(role));
}

/// Rounds begin and end, not the length, so that spans that nest also nest in the file, which viewers require.
void add_span(std::string& json, const Trace& trace, const TraceSpan& span) {
  const long long begin = std::llround(span.begin_ns), ns = std::llround(span.end_ns) - begin;
  fmt::format_to(std::back_inserter(json),
                 ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"ts\":{}.{:03},\"dur\":{}.{:03},\"pid\":0,\"tid\":{},"
                 "\"args\":{{\"task\":{},\"pass\":{},\"kib\":{}}}}}",
                 json_quoted(label(trace, span)), describe(span.kind), begin / 1000, begin % 1000, ns / 1000, ns % 1000,
                 thread_of(span.worker, span.role), span.task, span.pass, span.bytes_kib);
}

void add_length(std::string& json, const QueueLength& length) {
  const long long at = std::llround(length.at_ns);
  fmt::format_to(std::back_inserter(json),
                 ",\n{{\"name\":\"ready tasks\",\"ph\":\"C\",\"ts\":{}.{:03},\"pid\":0,\"args\":{{\"tasks\":{}}}}}", at / 1000,
                 at % 1000, length.tasks);
}

}  // namespace

std::string Trace::chrome_json() const {
  std::string json =
      "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
      "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"flywheel\"}}";
  json.reserve(json.size() + 180 * spans_.size());
  for (std::uint32_t i = 0; i < workers_ * kTraceRoles; ++i)
    add_metadata(json, i / kTraceRoles, static_cast<TraceRole>(i % kTraceRoles));
  for (const TraceSpan& span : spans_) add_span(json, *this, span);
  for (const QueueLength& length : queue_lengths()) add_length(json, length);
  return json + "\n]}\n";
}

}  // namespace flywheel
