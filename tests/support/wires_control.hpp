// Wires by which the last of several tasks goes on with what all have left: to a continuation, and at the parts of a product.
// See wires.hpp.
#pragma once

#include "runtime/ready/spawn.hpp"
#include "support/wires_device_state.hpp"

namespace flywheel::testing::views {

/// Three tasks before one continuation write a cell each, and in three rounds of four one of them fails. The last one reads
/// all cells and whether one has failed, gives the record back, and takes it again, plainly, for the next round.
inline bool continuation() {
  constexpr std::uint32_t kBefore = 3;
  DeviceStateShape shape;
  shape.spawn_capacity = 1;  // so each round has the same record
  TestDeviceState device(shape);
  const DeviceState& dev = device.dev;
  TestGraph<WireTasks> graph;
  graph.add(Tick{nullptr});
  const RunConstants run = device.load(graph);
  RunState& state = device.open(run);
  const TaskHeader parent = dev.records[run.first_record].header;
  TaskHeader& header = dev.records[dev.spawn_base].header;
  name_word("arrivals", header.edge_predecessors);
  const auto take = [&] {
    const Tick task{nullptr};
    const std::uint32_t record = take_continuation<P>(dev, 0, parent, 0, &task, sizeof(task), Priority::inherit);
    for (std::uint32_t i = 1; i < kBefore; ++i) expect_spawned<P>(dev, state, parent, record);
    return record == dev.spawn_base;
  };
  std::uint32_t cells[kBefore] = {};
  std::atomic<std::uint32_t> round{0};
  Flaws flaws;
  flaws.add(!take());
  run_together(kBefore, [&](std::uint32_t self) {
    for (std::uint32_t r = 0; r < kCargo; ++r) {
      cells[self] = r;
      const Arrival arrival = arrive_at_continuation<P>(header, r % 4 == self);
      if (arrival.last) {
        for (const std::uint32_t cell : cells) flaws.add(cell != r);
        flaws.add(arrival.failed != (r % 4 < kBefore));
        recycle_spawned<P>(dev, dev.spawn_base, Views<P>{dev}.wait(0));
        flaws.add(!take());
        round.store(r + 1, std::memory_order_release);
      } else {
        flaws.add(!wait_for([&] { return round.load(std::memory_order_acquire) > r; }));
      }
    }
  });
  return flaws.none();
}

/// Three tasks write a part each and arrive. The last one reads all parts; the next round is another run.
inline bool parts() {
  constexpr std::uint32_t kParts = 3;
  TestDeviceState device;
  RunState& state = device.open(RunConstants{});
  std::uint64_t arrivals = 0;
  name_word("arrivals", arrivals);
  std::uint32_t cells[kParts] = {};
  std::atomic<std::uint32_t> round{0};
  Flaws flaws;
  run_together(kParts, [&](std::uint32_t self) {
    TaskContext context{&device.dev, nullptr, &state, {}, self, {}};
    const BlockCore<P, WireTasks> block(context);
    for (std::uint32_t r = 0; r < kCargo; ++r) {
      cells[self] = r;
      if (block.arrives_last(arrivals, kParts)) {
        for (const std::uint32_t cell : cells) flaws.add(cell != r);
        state.line.constants.generation = r + 1;
        round.store(r + 1, std::memory_order_release);
      } else {
        flaws.add(!wait_for([&] { return round.load(std::memory_order_acquire) > r; }));
      }
    }
  });
  return flaws.none();
}

}  // namespace flywheel::testing::views
