#include "ready_times.hpp"

#include <algorithm>

namespace flywheel::detail {

namespace {
std::uint64_t key_of(std::uint32_t pass, std::uint32_t task) { return std::uint64_t{pass} << 32 | task; }
}  // namespace

ReadyTimes::ReadyTimes(const Trace& trace) : trace_(trace) {
  if (trace.graph().kind != GraphKind::dynamic) return;
  sort_bodies();
  find_predecessors();
  for (const TraceSpan& span : trace.spans())
    if (span.kind == TraceKind::body && !(span.task & kSpawnedTask)) tasks_.push_back(ready(span));
}

void ReadyTimes::sort_bodies() {
  for (const TraceSpan& span : trace_.spans()) {
    if (span.kind != TraceKind::body) continue;
    bodies_[key_of(span.pass, span.task)].push_back(&span);
    double& end = pass_ends_[span.pass];
    end = std::max(end, span.end_ns);
    if (span.task == kNoTaskOfProgram) fetches_.push_back(span.end_ns);
  }
  for (auto& [key, bodies] : bodies_) std::ranges::sort(bodies, {}, [](const TraceSpan* body) { return body->end_ns; });
  std::ranges::sort(fetches_);
}

void ReadyTimes::find_predecessors() {
  const TracedGraph& graph = trace_.graph();
  for (std::uint32_t task = 0; task + 1 < graph.first_successor.size(); ++task)
    for (std::uint32_t e = graph.first_successor[task]; e < graph.first_successor[task + 1]; ++e) {
      const std::uint32_t successor = graph.successors[e];
      if (successor >= predecessors_.size()) predecessors_.resize(successor + 1);
      predecessors_[successor].push_back(task);
    }
}

/// A pass begins when all of the one before has ended.
double ReadyTimes::pass_begin(std::uint32_t pass) const {
  const auto before = pass ? pass_ends_.find(pass - 1) : pass_ends_.end();
  return before == pass_ends_.end() ? 0 : before->second;
}

/// The library brings the parts of a batch in their order, each by a task of its own.
double ReadyTimes::part_begin(std::uint32_t task) const {
  const std::vector<std::uint32_t>& parts = trace_.graph().parts;
  const auto part = static_cast<std::size_t>(std::ranges::upper_bound(parts, task) - parts.begin());
  return part && part <= fetches_.size() ? fetches_[part - 1] : 0;
}

ReadyTask ReadyTimes::ready(const TraceSpan& body) const {
  ReadyTask task = trace_.graph().parts.empty() ? ready_in_graph(body) : ReadyTask{&body, part_begin(body.task), nullptr};
  task.ready_ns = std::min(task.ready_ns, body.begin_ns);  // clocks of workers differ by up to a step
  return task;
}

/// Of a predecessor that a loop has run several times, the last time before the body counts; one that was passed over has none.
ReadyTask ReadyTimes::ready_in_graph(const TraceSpan& body) const {
  constexpr double kStepNs = 2000;
  ReadyTask task{&body, pass_begin(body.pass), nullptr};
  if (body.task >= predecessors_.size()) return task;
  for (const std::uint32_t predecessor : predecessors_[body.task]) {
    const auto found = bodies_.find(key_of(body.pass, predecessor));
    if (found == bodies_.end()) continue;
    const Bodies& before = found->second;
    const auto over = [&](const TraceSpan* one) { return one->end_ns <= body.begin_ns + kStepNs; };
    const auto end = std::partition_point(before.begin(), before.end(), over);
    if (end == before.begin()) continue;
    const TraceSpan* const last = *(end - 1);
    if (!task.before || last->end_ns > task.before->end_ns) task.before = last;
  }
  if (task.before) task.ready_ns = task.before->end_ns;
  return task;
}

}  // namespace flywheel::detail

namespace flywheel {

std::vector<QueueLength> Trace::queue_lengths() const {
  std::vector<std::pair<double, std::int32_t>> changes;
  const detail::ReadyTimes times(*this);
  for (const detail::ReadyTask& task : times.tasks()) {
    changes.emplace_back(task.ready_ns, 1);
    changes.emplace_back(task.body->begin_ns, -1);
  }
  std::ranges::sort(changes);
  std::vector<QueueLength> lengths;
  std::int64_t length = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    length += changes[i].second;
    if (i + 1 < changes.size() && changes[i + 1].first == changes[i].first) continue;
    const auto tasks = static_cast<std::uint32_t>(length);
    if (lengths.empty() || lengths.back().tasks != tasks) lengths.push_back({changes[i].first, tasks});
  }
  return lengths;
}

}  // namespace flywheel
