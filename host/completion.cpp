#include "host/completion.hpp"

#include <algorithm>

#include "host/graph.hpp"
#include "runtime/thrown.hpp"

namespace flywheel {

namespace {
using P = CpuPlatform;

void drain_to(const World& world, RunRecord& run, std::uint64_t end) {
  const Stream<P> stream = Wires<P>{world}.stream(run.slot);
  for (; run.stream_next < end; ++run.stream_next) {
    std::uint64_t value = 0;
    if (stream.read(run.stream_next, value)) run.streamed.push(value);
  }
  // Release: pairs with the acquire in runtime/stream, has_space(): the values are out of their places.
  P::system(*stream.consumed).store(end, Order::release);
}
}  // namespace

bool is_complete(const World& world, const RunRecord& run) {
  // Acquire: pairs with the release store in runtime/completion, end_run(). Results and stream go with it.
  return P::system(world.completions[run.slot].word).load(Order::acquire) >> 32 == run.generation;
}

void drain_stream(const World& world, RunRecord& run) {
  const Stream<P> stream = Wires<P>{world}.stream(run.slot);
  std::uint64_t value = 0;
  while (stream.read(run.stream_next, value)) {
    run.streamed.push(value);
    ++run.stream_next;
  }
}

std::uint64_t collect(const World& world, RunRecord& run, bool told) {
  CompletionSlot& slot = world.completions[run.slot];
  std::scoped_lock lock(run.mutex);
  // Acquire: as in is_complete().
  const auto code = static_cast<std::uint32_t>(P::system(slot.word).load(Order::acquire));
  drain_stream(world, run);
  const bool detailed = code || run.repeat > 1;
  // A task that failed to stream leaves a gap among the tickets: step over it.
  if (detailed) drain_to(world, run, P::system(slot.emitted).load(Order::relaxed));
  if (told) return run.stream_next;
  run.fault_task = detailed ? P::system(slot.fault_task).load(Order::relaxed) : 0;
  run.iterations = detailed ? P::system(slot.iterations).load(Order::relaxed) : 1;
  const unsigned char* results = world.results + std::size_t{run.slot} * world.result_bytes;
  run.results.assign(results, results + run.graph->result_bytes);
  run.code = code;
  if (code == static_cast<std::uint32_t>(Status::task_threw) && run.fault_task)
    run.cause = detail::ThrownTexts::all().take(world, run.slot, run.fault_task - 1);
  // Release: pairs with the acquire in poll(). Under the lock: a reader that still drains the slot's stream must not
  // meet the values of the slot's next run.
  run.phase.store(RunPhase::done, std::memory_order_release);
  return run.stream_next;
}

Trace collect_trace(Engine& engine, const World& world, const RunRecord& run) {
  const std::size_t count = std::size_t{world.workers} * kTraceRoles, capacity = world.trace.capacity;
  std::vector<TraceLane> lanes(count);
  engine.copy_to_host(lanes.data(), world.trace.lanes, count * sizeof(TraceLane));
  std::vector<TraceEvent> events(count * capacity);
  for (std::size_t lane = 0; lane < count; ++lane)
    engine.copy_to_host(events.data() + lane * capacity, world.trace.events + lane * capacity,
                        std::min<std::size_t>(lanes[lane].count, capacity) * sizeof(TraceEvent));
  engine.clear(world.trace.lanes, count * sizeof(TraceLane));  // roles that take no part in the next run write nothing
  std::vector<std::string> names, types;
  for (std::uint32_t task = 0; task < run.graph->task_count; ++task) {
    names.push_back(run.graph->task_name(task));
    types.push_back(type_name(run.graph->types[task]));
  }
  return {world.workers, world.trace.capacity, std::move(lanes), std::move(events), std::move(names), std::move(types),
          run.graph->dependent_bytes};
}

}  // namespace flywheel
