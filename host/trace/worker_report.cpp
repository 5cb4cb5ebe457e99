// Writes a report of where the time of a run goes that is not compiled: what each worker did, and why it did not.
#include "worker_report.hpp"

#include <fmt/format.h>

#include <iterator>
#include <map>

#include "ready_times.hpp"
#include "report_parts.hpp"

namespace flywheel::detail {

namespace {

/// What a worker did with its time, in ns.
struct WorkerTimes {
  std::uint32_t worker = 0;
  std::size_t bodies = 0;
  double busy = 0;        // in bodies, without meetings in them
  double meeting = 0;     // waiting for the others at meetings
  double with_ready = 0;  // in none of these while a task was ready
  double idle = 0;        // in none of these, and none was
};

class WorkerReport {
 public:
  explicit WorkerReport(const Trace& trace);
  std::string text();

 private:
  void add_queue();
  void add_workers();
  void add_gap(WorkerTimes& of, double begin, double end);
  double ready_until(double ns) const;
  bool is_dynamic() const { return trace_.graph().kind == GraphKind::dynamic; }

  void macro();
  void types();
  void causes();
  void queue();
  void workers();
  void longest();
  void critical();
  std::vector<const ReadyTask*> critical_path() const;

  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  double percent_of_workers(double ns) const { return 100 * ratio(std::max(0.0, ns), run_ns_ * trace_.workers()); }

  const Trace& trace_;
  const ReadyTimes times_;
  std::string text_;
  double run_ns_ = 0;
  std::uint32_t passes_ = 0;
  std::vector<WorkerTimes> workers_;
  WorkerTimes all_;
  // The queue of ready tasks, as a function of time.
  std::vector<QueueLength> lengths_;
  std::vector<double> with_ready_;  // up to each of these: ns in which a task was ready
  double mean_length_ = 0;
  std::uint32_t most_ = 0;
};

WorkerReport::WorkerReport(const Trace& trace) : trace_(trace), times_(trace), workers_(trace.workers()) {
  for (const TraceSpan& span : trace.spans()) {
    run_ns_ = std::max(run_ns_, span.end_ns);
    passes_ = std::max(passes_, span.pass + 1);
  }
  add_queue();
  add_workers();
}

void WorkerReport::add_queue() {
  lengths_ = trace_.queue_lengths();
  double ready = 0, area = 0;
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    with_ready_.push_back(ready);
    const double ns = (i + 1 < lengths_.size() ? lengths_[i + 1].at_ns : run_ns_) - lengths_[i].at_ns;
    if (lengths_[i].tasks) ready += ns;
    area += ns * lengths_[i].tasks;
    most_ = std::max(most_, lengths_[i].tasks);
  }
  mean_length_ = ratio(area, run_ns_);
}

/// For how long, from the begin of the run to a moment, a task was ready.
double WorkerReport::ready_until(double ns) const {
  const auto after = std::ranges::upper_bound(lengths_, ns, {}, &QueueLength::at_ns);
  if (after == lengths_.begin()) return 0;
  const auto at = static_cast<std::size_t>(after - lengths_.begin()) - 1;
  return with_ready_[at] + (lengths_[at].tasks ? ns - lengths_[at].at_ns : 0);
}

void WorkerReport::add_gap(WorkerTimes& of, double begin, double end) {
  if (end <= begin) return;
  const double with_ready = is_dynamic() ? std::clamp(ready_until(end) - ready_until(begin), 0.0, end - begin) : 0;
  of.with_ready += with_ready;
  of.idle += end - begin - with_ready;
}

/// Spans come by their begin. A meeting may lie in a body.
void WorkerReport::add_workers() {
  std::vector<double> until(trace_.workers(), 0);
  for (std::uint32_t worker = 0; worker < trace_.workers(); ++worker) workers_[worker].worker = worker;
  for (const TraceSpan& span : trace_.spans()) {
    WorkerTimes& of = workers_[span.worker];
    const bool is_body = span.kind == TraceKind::body;
    add_gap(of, until[span.worker], span.begin_ns);
    of.bodies += is_body;
    (is_body ? of.busy : of.meeting) += length(span);
    if (!is_body && span.begin_ns < until[span.worker]) of.busy -= length(span);
    until[span.worker] = std::max(until[span.worker], span.end_ns);
  }
  for (WorkerTimes& of : workers_) {
    add_gap(of, until[of.worker], run_ns_);
    all_.bodies += of.bodies;
    all_.busy += of.busy;
    all_.meeting += of.meeting;
    all_.with_ready += of.with_ready;
    all_.idle += of.idle;
  }
}

std::string WorkerReport::text() {
  macro();
  print("\nMeso: task types and idle time\n");
  types();
  causes();
  queue();
  print("\nMicro: workers and single tasks\n");
  workers();
  longest();
  critical();
  return std::move(text_) + loss_text(trace_);
}

void WorkerReport::macro() {
  const auto ran = std::ranges::count_if(workers_, [](const WorkerTimes& of) { return of.bodies != 0; });
  print("Macro: the run as a whole\n");
  print("  span                {:.3f} ms\n  passes              {}\n", run_ns_ / 1e6, passes_);
  print("  bodies              {}\n", all_.bodies);
  print("  workers             {} of {} ran tasks\n", ran, trace_.workers());
  print("  in bodies           {:.1f} % of worker-time ({} x the span)\n", percent_of_workers(all_.busy), trace_.workers());
}

void WorkerReport::types() {
  std::map<std::string, Times> types;
  std::size_t width = 4;
  for (const TraceSpan& span : trace_.spans()) {
    if (span.kind != TraceKind::body) continue;
    const std::string& type = trace_.task_type(span.task);
    types[type].add(length(span));
    width = std::max(width, type.size());
  }
  std::vector<std::pair<const std::string, Times>*> rows;
  for (auto& row : types) {
    std::ranges::sort(row.second.ns);
    rows.push_back(&row);
  }
  std::ranges::stable_sort(rows, std::greater{}, [](const auto* row) { return row->second.total; });
  print("  {:{}}  {:>8}  {:>12}  {:>9}  {:>9}  {:>9}  {:>9}\n", "type", width, "count", "total us", "mean us", "p50 us",
        "p99 us", "most us");
  for (const auto* row : rows) {
    const Times& times = row->second;
    print("  {:{}}  {:8}  {:12.2f}  {:9.2f}  {:9.2f}  {:9.2f}  {:9.2f}\n", row->first, width, times.ns.size(),
          times.total / 1e3, times.mean() / 1e3, times.percentile(50) / 1e3, times.percentile(99) / 1e3, times.ns.back() / 1e3);
  }
}

void WorkerReport::causes() {
  print("  worker-time, each moment counted once:\n");
  print("    bodies                                 {:5.1f} %\n", percent_of_workers(all_.busy));
  if (is_dynamic()) {
    print("    no task ready                          {:5.1f} %\n", percent_of_workers(all_.idle));
    print("    queues, while a task was ready         {:5.1f} %\n", percent_of_workers(all_.with_ready));
  } else {
    print("    waiting for the others at meetings     {:5.1f} %\n", percent_of_workers(all_.meeting));
    print("    between bodies and meetings            {:5.1f} %\n", percent_of_workers(all_.idle));
  }
}

void WorkerReport::queue() {
  if (lengths_.empty()) return;
  print("  ready tasks that had not begun           mean {:.2f}, most {}\n", mean_length_, most_);
}

void WorkerReport::workers() {
  constexpr std::size_t kShown = 16;  // the busiest and the least busy half of them
  std::vector<WorkerTimes> rows = workers_;
  std::ranges::stable_sort(rows, std::greater{}, &WorkerTimes::busy);
  print("  worker     tasks       busy us  {:>14}  {:>14}\n", is_dynamic() ? "no task us" : "meetings us",
        is_dynamic() ? "queues us" : "between us");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool hidden = rows.size() > kShown && i >= kShown / 2 && i < rows.size() - kShown / 2;
    if (hidden && i == kShown / 2) print("     ... {} more\n", rows.size() - kShown);
    if (hidden) continue;
    const WorkerTimes& of = rows[i];
    print("  {:6}  {:8}  {:12.2f}  {:14.2f}  {:14.2f}\n", of.worker, of.bodies, of.busy / 1e3,
          (is_dynamic() ? of.idle : of.meeting) / 1e3, (is_dynamic() ? of.with_ready : of.idle) / 1e3);
  }
  const double most = rows.empty() ? 0 : rows.front().busy;
  print("  imbalance           {:.2f} (most over mean)\n", ratio(most * trace_.workers(), all_.busy));
}

void WorkerReport::longest() {
  Ranked bodies;
  for (const TraceSpan& span : trace_.spans())
    if (span.kind == TraceKind::body) bodies.emplace_back(length(span), &span);
  bodies = worst(std::move(bodies));
  if (bodies.empty()) return;
  print("  longest tasks:\n");
  for (const auto& [ns, body] : bodies)
    print("    {:10.2f} us  worker {}, pass {}, {}\n", ns / 1e3, body->worker, body->pass, trace_.task_name(body->task));
}

/// From the task that ended last back to a root, always over the predecessor that ended last. Last comes first.
std::vector<const ReadyTask*> WorkerReport::critical_path() const {
  std::map<const TraceSpan*, const ReadyTask*> by_body;
  std::map<std::uint32_t, const ReadyTask*> last_of_pass;
  const ReadyTask* at = nullptr;
  const auto ends_later = [](const ReadyTask& one, const ReadyTask* other) {
    return !other || one.body->end_ns > other->body->end_ns;
  };
  for (const ReadyTask& task : times_.tasks()) {
    by_body[task.body] = &task;
    const ReadyTask*& last = last_of_pass[task.body->pass];
    if (ends_later(task, last)) last = &task;
    if (ends_later(task, at)) at = &task;
  }
  std::vector<const ReadyTask*> path;
  while (at && path.size() < times_.tasks().size()) {
    path.push_back(at);
    const std::uint32_t pass = at->body->pass;
    const auto before = last_of_pass.find(pass - 1);
    if (at->before) at = by_body[at->before];
    else at = pass && before != last_of_pass.end() ? before->second : nullptr;
  }
  return path;
}

void WorkerReport::critical() {
  if (times_.tasks().empty() || !trace_.graph().parts.empty()) return;
  double in_bodies = 0, in_gaps = 0;
  Ranked gaps;
  const std::vector<const ReadyTask*> path = critical_path();
  for (const ReadyTask* task : path) {
    const double gap = task->body->begin_ns - task->ready_ns;
    in_bodies += length(*task->body);
    in_gaps += gap;
    gaps.emplace_back(gap, task->body);
  }
  print("  critical path       {} tasks, {:.2f} us in bodies, {:.2f} us in gaps between them\n", path.size(), in_bodies / 1e3,
        in_gaps / 1e3);
  gaps = worst(std::move(gaps));
  if (!gaps.empty()) print("  critical gaps, from when a task was ready to its begin:\n");
  for (const auto& [ns, body] : gaps)
    print("    {:10.2f} us  worker {}, pass {}, {}\n", ns / 1e3, body->worker, body->pass, trace_.task_name(body->task));
}

}  // namespace

std::string report_by_worker(const Trace& trace) { return WorkerReport(trace).text(); }

}  // namespace flywheel::detail
