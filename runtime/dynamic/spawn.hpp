// Tasks that spawn tasks. BlockCore::spawn() calls spawn_task(), the finisher recycle_spawned().
//
// A spawned task takes its parent's place: it has the parent's successors, so every task that waits for the parent also
// waits for it. The parent arrives only after its body, so while the body runs the successors' counters (for a sink:
// the run's count of outstanding sinks) cannot reach zero. Raising them by one therefore needs no ordering.
#pragma once

#include <cstring>

#include "../base/counter.hpp"
#include "ready.hpp"

namespace flywheel::detail {

/// Raises by one what the parent's successors wait for, or what the run waits for if the parent is a sink.
template <class P>
FLYWHEEL_TASK void expect_spawned(const DeviceState& dev, RunState& run, const TaskHeader& parent) {
  if (parent.edge_count == 0) {
    // Relaxed: pairs with arrive_sink(). The parent's own arrival comes later and releases it; see expect_one_more().
    P::device(run.outstanding).add(1, Order::relaxed);
    return;
  }
  for (std::uint32_t e = 0; e < parent.edge_count; ++e)
    expect_one_more<P>(run.line.constants.bank()[dev.edges[parent.first_edge + e].task]);
}

/// Spawns one task in the parent's run; any thread of the block calls. False if the pool has no free record, or if a
/// wait was given up because the runtime was aborted.
template <class P>
FLYWHEEL_COLD bool spawn_task(const DeviceState& dev, std::uint32_t worker, std::uint16_t run_slot, const TaskHeader& parent,
                              std::uint32_t type, const void* args, std::size_t bytes, Priority priority) {
  const Views<P> views{dev};
  const WaitContext wait = views.wait(worker);
  std::uint64_t index = 0;
  // pop() acquires the record: pairs with push() in recycle_spawned(), which comes after the record's last read.
  // size_hint() is relaxed; it spares an empty pool the two atomics of a try.
  if (!views.spawn_pool().size_hint() || !views.spawn_pool().pop(1, &index, wait)) return false;
  RunState& run = dev.runs[run_slot];
  TaskRecord& record = dev.records[dev.spawn_base + index];
  record.header = parent;
  record.header.type = static_cast<std::uint16_t>(type);
  record.header.priority = static_cast<std::uint8_t>(priority);
  record.header.flags = kTaskSpawned;
  record.header.result_offset = kNoResult;
  memcpy(record.args, args, bytes);
  expect_spawned<P>(dev, run, parent);
  const Item item{dev.spawn_base + static_cast<std::uint32_t>(index), run_slot, false};
  const std::uint64_t packed = item.pack();
  // Releases the record and what this thread wrote before: see Ready::publish().
  return publish_items<P>(dev, worker, 1, level_of(record.header.priority, run.line.constants.priority), &packed);
}

/// Returns the record of a finished spawned task to the pool; nothing reads it any more. push() releases it: pairs with
/// pop() in spawn_task().
template <class P>
FLYWHEEL_COLD void recycle_spawned(const DeviceState& dev, std::uint32_t record, const WaitContext& wait) {
  Views<P>{dev}.spawn_pool().push(
      1, [&](std::uint32_t) { return record - dev.spawn_base; }, wait);
}

}  // namespace flywheel::detail
