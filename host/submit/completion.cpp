#include "completion.hpp"

#include <algorithm>
#include <mutex>
#include <span>

#include "../engine/thrown_texts.hpp"
#include "../plan/task_name.hpp"

namespace flywheel::detail {

namespace {
using P = CpuPlatform;

void drain_to(const DeviceState& dev, RunRecord& run, std::uint64_t end) {
  const Stream<P> stream = Views<P>{dev}.stream(run.slot);
  for (; run.stream_next < end; ++run.stream_next) {
    std::uint64_t value = 0;
    if (stream.read(run.stream_next, value)) run.streamed.push(value);
  }
  // Release: pairs with the acquire in runtime/records/stream.hpp, has_space(). The values are read out of their cells
  // before it.
  P::system(*stream.consumed).store(end, Order::release);
}
}  // namespace

bool is_complete(const DeviceState& dev, const RunRecord& run) {
  // Acquire: pairs with the release store in runtime/ready/completion.hpp, end_run(). Results and streamed values are
  // visible after it.
  return P::system(dev.completions[run.slot].word).load(Order::acquire) >> 32 == run.generation;
}

bool ended_well(const DeviceState& dev, const RunRecord& run) {
  // Relaxed: the caller has acquired the word with is_complete(). Ending::abandon() may have overwritten it since, but
  // only with a failure.
  return static_cast<std::uint32_t>(P::system(dev.completions[run.slot].word).load(Order::relaxed)) == 0;
}

void drain_stream(const DeviceState& dev, RunRecord& run, std::size_t most_unread) {
  const Stream<P> stream = Views<P>{dev}.stream(run.slot);
  std::uint64_t value = 0;
  while (run.streamed.size() < most_unread && stream.read(run.stream_next, value)) {
    run.streamed.push(value);
    ++run.stream_next;
  }
}

namespace {
/// What a run leaves in its slot besides its results.
struct Left {
  std::uint32_t code;
  std::uint32_t fault_task;  // 0: none
  std::uint32_t iterations;
  std::string text;  // of the exception that the failed body has thrown
};

/// Reads the rest of the slot. The caller holds run.mutex.
Left take_rest(const DeviceState& dev, RunRecord& run) {
  CompletionSlot& slot = dev.completions[run.slot];
  // Acquire: as in is_complete().
  const auto code = static_cast<std::uint32_t>(P::system(slot.word).load(Order::acquire));
  drain_stream(dev, run, ~std::size_t{0});
  if (!code && run.repeat <= 1) return {0, 0, 1, ""};
  // Relaxed, all three: the device wrote them before the word, which is acquired above; `fault_task` only if there is a code. A
  // task that fails while it streams leaves a gap among the tickets; drain_to() steps over it.
  drain_to(dev, run, P::system(slot.emitted).load(Order::relaxed));
  const std::uint32_t fault_task = code ? P::system(slot.fault_task).load(Order::relaxed) : 0;
  return {code, fault_task, P::system(slot.iterations).load(Order::relaxed),
          code ? take_what_body_threw(dev, run.slot, fault_task - 1) : ""};
}
}  // namespace

bool collect(const DeviceState& dev, RunRecord& run) {
  std::scoped_lock lock(run.mutex);
  // Relaxed: `done` is only stored under this mutex, and the caller has seen `live`.
  if (run.phase.load(std::memory_order_relaxed) != RunPhase::live) return false;
  Left left = take_rest(dev, run);
  run.fault_task = left.fault_task;
  run.iterations = left.iterations;
  const unsigned char* results = dev.results + std::size_t{run.slot} * dev.result_bytes;
  run.results.assign(results, results + run.graph->result_bytes);
  run.code = left.code;
  if (left.code == static_cast<std::uint32_t>(Status::task_threw)) run.cause = std::move(left.text);
  if (left.code == static_cast<std::uint32_t>(Status::predecessor_failed)) run.cause = predecessor_failure(run);
  // Release: pairs with the acquire in Run::done(); the outcome is written before it. The store is under the mutex, so
  // that a thread that drains the slot's stream cannot meet the values of the slot's next run.
  run.phase.store(RunPhase::done, std::memory_order_release);
  run.announce_end();
  return true;
}

void clear_slot(const DeviceState& dev, RunRecord& run) {
  std::scoped_lock lock(run.mutex);
  take_rest(dev, run);
}

std::string failure_text(std::uint32_t code, const std::string& task, const std::string& cause) {
  std::string text = describe(static_cast<Status>(code)).what;
  if (code >= kUserStatus) text += ", " + std::to_string(code - kUserStatus);
  if (!task.empty()) text += ", in " + task;
  if (!cause.empty()) text += " (" + cause + ")";
  return text;
}

std::string predecessor_failure(const RunRecord& run) {
  if (!run.before) return "";
  for (const std::shared_ptr<SingleTask>& one : run.before->singles)
    // Acquire: pairs with finish() and fail() in SingleTasks.
    if (one->done.load(std::memory_order_acquire) && one->code)
      return failure_text(one->code, single_task_text(one->type), one->cause);
  for (const std::shared_ptr<RunRecord>& one : run.before->runs) {
    // Acquire: pairs with the release stores of `done`; what is read below is written before them.
    if (one->phase.load(std::memory_order_acquire) != RunPhase::done || !one->code) continue;
    if (one->code == static_cast<std::uint32_t>(Status::predecessor_failed)) return one->cause;
    return failure_text(one->code, one->fault_task ? one->graph->task_name(one->fault_task - 1) : "", one->cause);
  }
  return "";
}

namespace {
/// The edges of some tasks: the loader has laid them out one task behind the other.
std::vector<Edge> edges_of(Engine& engine, const DeviceState& dev, std::span<const TaskRecord> records) {
  std::uint32_t first = ~0u, end = 0;
  for (const TaskRecord& record : records) {
    if (!record.header.edge_count) continue;
    first = std::min(first, record.header.first_edge);
    end = std::max(end, record.header.first_edge + record.header.edge_count);
  }
  std::vector<Edge> edges(first < end ? end - first : 0);
  if (!edges.empty()) engine.copy_to_host(edges.data(), dev.edges + first, edges.size() * sizeof(Edge));
  return edges;
}

/// The successors of each task of a dynamic graph, as its records in device memory have them.
void copy_edges(Engine& engine, const DeviceState& dev, const LoadedGraph& graph, TracedGraph& to) {
  constexpr std::uint32_t kAtOnce = 4096;
  std::vector<TaskRecord> records;
  to.first_successor.push_back(0);
  for (std::uint32_t first = 0; first < graph.task_count; first += kAtOnce) {
    records.resize(std::min(graph.task_count - first, kAtOnce));
    engine.copy_to_host(records.data(), dev.records + graph.first_record + first, records.size() * sizeof(TaskRecord));
    const std::vector<Edge> edges = edges_of(engine, dev, records);
    for (std::size_t i = 0, next = 0; i < records.size(); next += records[i++].header.edge_count) {
      for (std::uint32_t e = 0; e < records[i].header.edge_count; ++e) to.successors.push_back(edges[next + e].task);
      to.first_successor.push_back(static_cast<std::uint32_t>(to.successors.size()));
    }
  }
}
}  // namespace

Trace collect_trace(Engine& engine, const DeviceState& dev, const TracedWork& work) {
  const std::size_t count = std::size_t{dev.workers} * kTraceRoles, capacity = dev.trace.capacity;
  std::vector<TraceTrack> tracks(count);
  engine.copy_to_host(tracks.data(), dev.trace.tracks, count * sizeof(TraceTrack));
  std::vector<TraceEvent> events(count * capacity);
  for (std::size_t track = 0; track < count; ++track)
    engine.copy_to_host(events.data() + track * capacity, dev.trace.events + track * capacity,
                        std::min<std::size_t>(tracks[track].count, capacity) * sizeof(TraceEvent));
  engine.clear(dev.trace.tracks, count * sizeof(TraceTrack));  // roles that take no part in the next run write nothing
  TracedGraph graph{work.graphs.front()->kind, work.kernel_types, {}, {}, {}};
  std::vector<std::string> names, types;
  for (const std::shared_ptr<LoadedGraph>& part : work.graphs) {
    if (work.of_batch) graph.parts.push_back(part->first_local);
    const std::uint32_t tasks = part->task_count - (work.of_batch ? 1 : 0);  // without the library's own
    for (std::uint32_t task = 0; task < tasks; ++task) {
      names.push_back(part->task_name(part->first_local + task));
      types.push_back(type_name(part->type_of(task)));
    }
  }
  if (!work.of_batch && graph.kind == GraphKind::dynamic) copy_edges(engine, dev, *work.graphs.front(), graph);
  return {dev.workers,
          dev.trace.capacity,
          std::move(tracks),
          std::move(events),
          std::move(names),
          std::move(types),
          work.graphs.front()->dependent_bytes,
          std::move(graph)};
}

}  // namespace flywheel::detail
