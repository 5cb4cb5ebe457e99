// Tasks that spawn tasks.
//
// A spawned task takes its parent's place: it inherits the parent's successors, so whatever waits for the parent also
// waits for it. While the parent runs, its own arrival is still to come, so raising the successors' counters (or the
// run's outstanding count, for a sink) by one is safe without any ordering.
#pragma once

#include <cstring>

#include "../base/counter.hpp"
#include "ready.hpp"

namespace flywheel {

/// Raises what the parent's successors, or the run itself, wait for.
template <class P>
FLYWHEEL_TASK void expect_spawned(const DeviceState& dev, RunState& run, const TaskHeader& parent) {
  if (parent.edge_count == 0) {
    P::device(run.outstanding).add(1, Order::relaxed);
    return;
  }
  for (std::uint32_t e = 0; e < parent.edge_count; ++e)
    expect_one_more<P>(run.line.constants.bank()[dev.edges[parent.first_edge + e].task]);
}

/// Any thread of the block. False if the pool has no free record.
template <class P>
FLYWHEEL_COLD bool spawn_task(const DeviceState& dev, std::uint32_t worker, std::uint16_t run_slot,
                              const TaskHeader& parent, std::uint32_t type, const void* args, std::size_t bytes,
                              Priority priority) {
  const Views<P> views{dev};
  const WaitContext wait = views.wait(worker);
  std::uint64_t index = 0;
  // The pop acquires the record: pairs with the push in recycle_spawned(), after its last reader was done.
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
  return publish_items<P>(dev, worker, 1, level_of(record.header.priority, run.line.constants.priority), &packed);
}

/// The record of a finished spawned task goes back to the pool; nobody reads it any more.
template <class P>
FLYWHEEL_COLD void recycle_spawned(const DeviceState& dev, std::uint32_t record, const WaitContext& wait) {
  Views<P>{dev}.spawn_pool().push(1, [&](std::uint32_t) { return record - dev.spawn_base; }, wait);
}

}  // namespace flywheel
