// Writes a report of where the time of a compiled run goes; of others see worker_report.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <map>

#include "report_parts.hpp"
#include "worker_report.hpp"

namespace flywheel {
using namespace detail;

namespace {

class Report {
 public:
  explicit Report(const Trace& trace);
  std::string text();

 private:
  void add_body(const TraceSpan& span);
  Times pass_times() const;
  double covered(std::initializer_list<TraceKind> kinds) const;
  double without_bodies(const TraceSpan& wait) const;
  double median(const TraceSpan& body) const;

  void macro();
  void pass_line();
  void meso();
  void type_table();
  void bubbles();
  void loader();
  void micro();
  void worst_waits();
  void slowest_tasks();
  void balance();
  void tail();

  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  /// A part of the worker-time in percent. Differences of sums may be a rounding error below 0.
  double percent_of_workers(double ns) const { return 100 * ratio(std::max(0.0, ns), run_ns_ * trace_.workers()); }

  const Trace& trace_;
  std::string text_;
  std::map<std::string, Times> types_;
  Times bodies_;
  Spans waits_;
  std::vector<Spans> worker_bodies_;
  std::vector<double> body_ns_;  // of each worker
  std::size_t passes_ = 0;
  bool many_bytes_ = false;
  double run_ns_ = 0;
};

Report::Report(const Trace& trace) : trace_(trace), worker_bodies_(trace.workers()), body_ns_(trace.workers()) {
  std::vector<std::uint32_t> passes;
  for (const TraceSpan& span : trace.spans()) {
    run_ns_ = std::max(run_ns_, span.end_ns);
    // A gate belongs to the pass after it, and after the last pass there is none.
    if (span.kind != TraceKind::gate) passes.push_back(span.pass);
    if (span.kind == TraceKind::body) add_body(span);
    if (span.kind == TraceKind::wait || span.kind == TraceKind::inputs) waits_.push_back(&span);
  }
  std::sort(passes.begin(), passes.end());
  passes_ = static_cast<std::size_t>(std::unique(passes.begin(), passes.end()) - passes.begin());
  for (auto& [name, times] : types_) std::sort(times.ns.begin(), times.ns.end());
}

void Report::add_body(const TraceSpan& span) {
  types_[trace_.task_type(span.task)].add(length(span), span.bytes_kib);
  bodies_.add(length(span), span.bytes_kib);
  worker_bodies_[span.worker].push_back(&span);
  body_ns_[span.worker] += length(span);
  many_bytes_ |= span.bytes_kib >= kManyKib;
}

/// The times from the end of one gate to the end of the next, as each worker saw them.
Times Report::pass_times() const {
  Times times;
  std::vector<const TraceSpan*> last(trace_.workers(), nullptr);
  for (const TraceSpan& span : trace_.spans()) {
    if (span.kind != TraceKind::gate) continue;
    const TraceSpan*& before = last[span.worker];
    if (before && span.pass == before->pass + 1) times.add(span.end_ns - before->end_ns);
    before = &span;
  }
  std::sort(times.ns.begin(), times.ns.end());
  return times;
}

/// The worker-time during which a worker did at least one of these.
double Report::covered(std::initializer_list<TraceKind> kinds) const {
  double ns = 0;
  std::vector<double> until(trace_.workers(), 0);
  for (const TraceSpan& span : trace_.spans()) {
    if (std::find(kinds.begin(), kinds.end(), span.kind) == kinds.end()) continue;
    ns += std::max(0.0, span.end_ns - std::max(span.begin_ns, until[span.worker]));
    until[span.worker] = std::max(until[span.worker], span.end_ns);
  }
  return ns;
}

/// The length of a wait without the worker's bodies: the control role looks ahead while the task before still runs.
double Report::without_bodies(const TraceSpan& wait) const {
  const Spans& bodies = worker_bodies_[wait.worker];
  const auto over = [&](const TraceSpan* body) { return body->end_ns <= wait.begin_ns; };
  double ns = length(wait);
  for (auto at = std::partition_point(bodies.begin(), bodies.end(), over); at != bodies.end() && (*at)->begin_ns < wait.end_ns;
       ++at)
    ns -= std::min((*at)->end_ns, wait.end_ns) - std::max((*at)->begin_ns, wait.begin_ns);
  return ns;
}

/// The median of the bodies of the same type.
double Report::median(const TraceSpan& body) const { return types_.at(trace_.task_type(body.task)).percentile(50); }

std::string Report::text() {
  if (trace_.spans().empty()) {
    print("The trace is empty: was the run submitted with Options::trace_events above 0, and did it end well?\n");
  } else {
    macro();
    meso();
    micro();
  }
  tail();
  return std::move(text_);
}

void Report::macro() {
  print("Macro: the run as a whole\n");
  print("  span                {:.3f} ms\n  passes              {}\n", run_ns_ / 1e6, passes_);
  pass_line();
  const auto idle = std::count(worker_bodies_.begin(), worker_bodies_.end(), Spans{});
  print("  workers             {} of {} ran tasks\n", trace_.workers() - idle, trace_.workers());
  print("  in bodies           {:.1f} % of worker-time ({} x the span)\n", percent_of_workers(covered({TraceKind::body})),
        trace_.workers());
  print("  operands            {}{:.3f} GiB into bodies, {:.1f} GB/s over the span\n", many_bytes_ ? "at least " : "",
        bodies_.bytes / (kKib * kKib * kKib), ratio(bodies_.bytes, run_ns_));
}

void Report::pass_line() {
  const Times times = pass_times();
  if (times.ns.empty()) {
    print("  time a pass         {:.2f} us (the span over the passes)\n", ratio(run_ns_, double(passes_)) / 1e3);
    return;
  }
  print("  time a pass         mean {:.2f} us, p50 {:.2f} us, p99 {:.2f} us ({} gate-to-gate intervals)\n", times.mean() / 1e3,
        times.percentile(50) / 1e3, times.percentile(99) / 1e3, times.ns.size());
}

void Report::meso() {
  print("\nMeso: task types and bubbles\n");
  type_table();
  bubbles();
  loader();
}

void Report::type_table() {
  if (types_.empty()) return print("  no task ran\n");
  std::vector<const std::pair<const std::string, Times>*> rows;
  std::size_t width = 4;
  for (const auto& row : types_) {
    rows.push_back(&row);
    width = std::max(width, row.first.size());
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->second.total > b->second.total; });
  print("  {:{}}  {:>8}  {:>12}  {:>9}  {:>9}  {:>9}  {:>7}  {:>13}\n", "type", width, "count", "total us", "mean us", "p50 us",
        "p99 us", "share", "GB/s a worker");
  for (const auto* row : rows) {
    const Times& times = row->second;
    print("  {:{}}  {:8}  {:12.2f}  {:9.2f}  {:9.2f}  {:9.2f}  {:5.1f} %  {:13.2f}\n", row->first, width, times.ns.size(),
          times.total / 1e3, times.mean() / 1e3, times.percentile(50) / 1e3, times.percentile(99) / 1e3,
          100 * ratio(times.total, bodies_.total), ratio(times.bytes, times.total));
  }
}

void Report::bubbles() {
  using enum TraceKind;
  const double in_body = covered({body}), and_store = covered({body, store});
  const double and_wait = covered({body, store, wait}), and_gate = covered({body, store, wait, gate});
  print("  worker-time, each moment counted once, as the first of these that applies:\n");
  print("    bodies                       {:5.1f} %\n", percent_of_workers(in_body));
  print("      of it, inputs not there yet{:5.1f} %\n", percent_of_workers(covered({inputs})));
  print("    store part                   {:5.1f} %\n", percent_of_workers(and_store - in_body));
  print("    waiting for tasks before it  {:5.1f} %\n", percent_of_workers(and_wait - and_store));
  print("    gate between passes          {:5.1f} %\n", percent_of_workers(and_gate - and_wait));
  print("    none of these                {:5.1f} %\n", percent_of_workers(run_ns_ * trace_.workers() - and_gate));
}

void Report::loader() {
  print("  the loader's share of worker-time:\n");
  print("    waiting for a free page      {:5.1f} %  it is ahead and compute is behind: good\n",
        percent_of_workers(covered({TraceKind::page})));
  print("    waiting for pages to land    {:5.1f} %  memory is the limit: good\n",
        percent_of_workers(covered({TraceKind::landing})));
}

void Report::micro() {
  print("\nMicro: single waits and tasks\n");
  worst_waits();
  slowest_tasks();
  balance();
}

void Report::worst_waits() {
  Ranked waits;
  for (const TraceSpan* wait : waits_)
    waits.emplace_back(wait->kind == TraceKind::wait ? without_bodies(*wait) : length(*wait), wait);
  waits = worst(std::move(waits));
  if (waits.empty()) return print("  nothing waited for tasks\n");
  print("  worst waits, without time in which the worker ran a body before:\n");
  for (const auto& [ns, wait] : waits) {
    print("    {:10.2f} us  worker {}, pass {}, {} (for {})\n", ns / 1e3, wait->worker, wait->pass,
          trace_.task_name(wait->task), wait->kind == TraceKind::wait ? "tasks before it" : "them, inside its body");
  }
}

void Report::slowest_tasks() {
  Ranked bodies;
  for (const Spans& some : worker_bodies_)
    for (const TraceSpan* body : some) bodies.emplace_back(length(*body) - median(*body), body);
  bodies = worst(std::move(bodies));
  if (bodies.empty()) return print("  no task took longer than the median of its type\n");
  print("  slowest tasks, by what they took beyond the median of their type:\n");
  for (const auto& [excess, body] : bodies) {
    print("    {:10.2f} us  worker {}, pass {}, {} (median {:.2f} us, {:.1f} times that)\n", length(*body) / 1e3, body->worker,
          body->pass, trace_.task_name(body->task), median(*body) / 1e3, ratio(length(*body), median(*body)));
  }
}

void Report::balance() {
  const auto [least, most] = std::minmax_element(body_ns_.begin(), body_ns_.end());
  print("  most body time      worker {}, {:.2f} us\n", most - body_ns_.begin(), *most / 1e3);
  print("  least body time     worker {}, {:.2f} us\n", least - body_ns_.begin(), *least / 1e3);
  print("  imbalance           {:.2f} (most over mean)\n", ratio(*most * trace_.workers(), bodies_.total));
}

void Report::tail() { text_ += loss_text(trace_); }

}  // namespace

std::string detail::loss_text(const Trace& trace) {
  std::string text;
  if (trace.ignored())
    text += fmt::format("\n{} events ignored, of no known kind or role: was the trace read before its run ended?\n",
                        trace.ignored());
  if (trace.dropped())
    text += fmt::format("\n{} events dropped, so what came last is missing: raise Options::trace_events\n", trace.dropped());
  return text;
}

std::string Trace::report() const {
  return graph_.kind == GraphKind::compiled || spans_.empty() ? Report(*this).text() : report_by_worker(*this);
}

}  // namespace flywheel
