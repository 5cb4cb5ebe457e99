// Tasks that spawn tasks: BlockCore::spawn() calls spawn_task(), BlockCore::then() take_continuation(), and whoever finishes a
// spawned task recycle_spawned().
//
// A spawned task takes its parent's place: it has the parent's successors, so every task that waits for the parent also
// waits for it. The parent arrives only after its body, so while the body runs the successors' counters (for a sink:
// the run's count of outstanding sinks) cannot reach zero. Raising them by one therefore needs no ordering.
//
// A continuation takes the place of the task whose body called then(), and that task and all that it spawns from then on wait
// for nothing but to let the continuation run. It has its counter in its own header, where other records have a copy of an
// edge: see TaskHeader. Continuations nest: what a spawned task spawns waits for the same one, unless it has its own.
#pragma once

#include "../base/counter.hpp"
#include "ready.hpp"

namespace flywheel::detail {

/// In a waiting continuation's count of the tasks before it: one of them has failed.
inline constexpr std::uint32_t kFailedBefore = 1u << 31;

/// The record of the continuation that waits for a task, and for what its body spawns; kNoRecord: none does. `control`: what
/// the body has asked for, see Outcome.
FLYWHEEL_TASK constexpr std::uint32_t continuation_of(const TaskHeader& task, std::uint32_t control) {
  if (control & kContinues) return control & ~kContinues;
  return task.flags & kTaskContinued ? task.first_edge : kNoRecord;
}

/// Raises by `count` what tasks wait for that come after the parent: its continuation, its successors, or the run of a sink.
template <class P>
FLYWHEEL_TASK void expect_spawned(const DeviceState& dev, RunState& run, const TaskHeader& parent, std::uint32_t continuation,
                                  std::uint32_t count = 1) {
  // Relaxed, all: pair with arrive_sink(), arrive_at_continuation() and arrive(). The parent's own arrival comes later and
  // releases it; see expect_more().
  if (continuation != kNoRecord) {
    P::device(dev.records[continuation].header.edge_predecessors).add(count, Order::relaxed);
    return;
  }
  if (parent.edge_count == 0) {
    P::device(run.outstanding).add(count, Order::relaxed);
    return;
  }
  for (std::uint32_t e = 0; e < parent.edge_count; ++e)
    expect_more<P>(run.line.constants.bank()[dev.edges[parent.first_edge + e].task], count);
}

/// Fills a record of a task that the parent spawns. `continuation`: where it arrives, or kNoRecord for the parent's place.
FLYWHEEL_TASK inline void fill_record(TaskRecord& record, const TaskHeader& parent, std::uint32_t continuation,
                                      std::uint32_t type, const void* args, std::size_t bytes, Priority priority) {
  record.header = parent;
  record.header.type = static_cast<std::uint16_t>(type);
  record.header.priority = static_cast<std::uint8_t>(priority);
  record.header.flags = kTaskSpawned | (parent.flags & (kTaskContinued | kTaskControls));
  record.header.result_offset = kNoResult;
  if (continuation != kNoRecord) {
    record.header.flags = kTaskSpawned | kTaskContinued;
    record.header.first_edge = continuation;
    record.header.edge_count = 1;
  }
  memcpy(record.args, args, bytes);
}

/// Takes a record from the pool and fills it. kNoRecord if the pool has none, or if a wait was given up because the runtime was
/// aborted.
template <class P>
FLYWHEEL_TASK std::uint32_t take_record(const DeviceState& dev, std::uint32_t worker, const TaskHeader& parent,
                                        std::uint32_t continuation, std::uint32_t type, const void* args, std::size_t bytes,
                                        Priority priority) {
  const Views<P> views{dev};
  std::uint64_t index = 0;
  // pop() acquires the record: pairs with push() in recycle_spawned(), which comes after the record's last read.
  // size_hint() is relaxed; it spares an empty pool the two atomics of a try.
  if (!views.spawn_pool().size_hint() || !views.spawn_pool().pop(1, &index, views.wait(worker))) return kNoRecord;
  fill_record(dev.records[dev.spawn_base + index], parent, continuation, type, args, bytes, priority);
  return dev.spawn_base + static_cast<std::uint32_t>(index);
}

/// Spawns one task in the parent's run; any thread of the block calls. `control`: as for continuation_of(). False if the pool
/// has no free record, or if a wait was given up because the runtime was aborted.
template <class P>
FLYWHEEL_COLD bool spawn_task(const DeviceState& dev, std::uint32_t worker, std::uint16_t run_slot, const TaskHeader& parent,
                              std::uint32_t control, std::uint32_t type, const void* args, std::size_t bytes,
                              Priority priority) {
  const std::uint32_t continuation = continuation_of(parent, control);
  const std::uint32_t index = take_record<P>(dev, worker, parent, continuation, type, args, bytes, priority);
  if (index == kNoRecord) return false;
  RunState& run = dev.runs[run_slot];
  expect_spawned<P>(dev, run, parent, continuation);
  const std::uint64_t packed = Item{index, run_slot, false}.pack();
  // Releases the record and what this thread wrote before: see Ready::publish().
  return publish_items<P>(dev, worker, 1, level_of(static_cast<std::uint32_t>(priority), run.line.constants.priority), &packed);
}

/// Makes the continuation of the running task; one thread of the block calls. Its record, or kNoRecord as take_record().
template <class P>
FLYWHEEL_COLD std::uint32_t take_continuation(const DeviceState& dev, std::uint32_t worker, const TaskHeader& parent,
                                              std::uint32_t type, const void* args, std::size_t bytes, Priority priority) {
  const std::uint32_t index = take_record<P>(dev, worker, parent, kNoRecord, type, args, bytes, priority);
  if (index == kNoRecord) return kNoRecord;
  TaskHeader& header = dev.records[index].header;
  const bool stands_in = !(parent.flags & kTaskSpawned) || parent.flags & kTaskStandsIn;
  header.flags |= (stands_in ? kTaskStandsIn : 0) | (parent.flags & kTaskLoops);
  // Plain: other threads of the block spawn behind a sync(), and those tasks acquire their own publication.
  header.edge_predecessors = 1;  // the running task
  return index;
}

/// Reports to a continuation that one of the tasks before it has ended. The last one publishes the continuation.
template <class P>
FLYWHEEL_TASK Arrival arrive_at_continuation(TaskHeader& continuation, bool failed) {
  std::uint32_t& before = continuation.edge_predecessors;
  // Relaxed: pairs with the last arrival, at the same word, which comes after this task's own.
  if (failed) P::device(before).set(kFailedBefore, Order::relaxed);
  // Release and acquire: pairs with the other arrivals here, as in arrive() in counter.hpp, for the same reason. Not relaxed
  // between fences: whoever runs the continuation reads the whole record plainly, and a release fence does not cover the
  // arrival behind it.
  const std::uint32_t now = P::device(before).fetch_add(~0u, Order::acq_rel) - 1;
  const bool last = !(now & ~kFailedBefore);
  return {last, last && now != 0};
}

/// Returns the record of a finished spawned task to the pool; nothing reads it any more. push() releases it: pairs with
/// pop() in take_record().
template <class P>
FLYWHEEL_COLD void recycle_spawned(const DeviceState& dev, std::uint32_t record, const WaitContext& wait) {
  Views<P>{dev}.spawn_pool().push(
      1, [&](std::uint32_t) { return record - dev.spawn_base; }, wait);
}

}  // namespace flywheel::detail
