// The wires of a compiled run: a counter between two workers, the gate between two passes, and the word by
// which workers that have nothing to do leave. See wires.hpp.
#pragma once

#include "support/launch.hpp"
#include "support/test_schedule.hpp"
#include "support/wires.hpp"

namespace flywheel::testing::views {

/// Writes the pass into the cell of its parity, in plain memory.
struct Put {
  std::uint32_t* cells;
  template <class Block>
  void operator()(Block& block) const {
    cells[block.iteration() % 2] = block.iteration();
  }
};
/// Looks whether the pass before has written its cell.
struct Look {
  const std::uint32_t* cells;
  template <class Block>
  void operator()(Block& block) const {
    const std::uint32_t pass = block.iteration();
    if (pass && cells[(pass - 1) % 2] != pass - 1) block.fail(1);
  }
};
/// Looks whether this pass has.
struct LookNow {
  const std::uint32_t* cells;
  template <class Block>
  void operator()(Block& block) const {
    if (cells[block.iteration() % 2] != block.iteration()) block.fail(1);
  }
};
using CompiledWireTasks = TaskList<Put, Look, LookNow>;

/// Runs it a few times; true if every run ended well.
inline bool run_schedule(TestDeviceState& hand, TestSchedule<CompiledWireTasks>& schedule, std::uint32_t repeat) {
  const RunConstants run = schedule.load();
  Launch<CompiledWireTasks, P> launch(hand);
  for (std::uint32_t r = 0; r < 10; ++r)
    if (launch.run(run, 0, repeat)) return false;
  launch.park();
  return schedule.schedule().runs == 10 && schedule.schedule().passes == 10 * repeat;
}

/// Worker 0 puts, worker 1 looks in the same pass.
inline bool predecessors() {
  TestDeviceState hand;
  TestSchedule<CompiledWireTasks> schedule(hand);
  name_words("counters", schedule.counters().data(), schedule.counters().size() * 8);
  std::uint32_t cells[2] = {7, 7};
  schedule.add(0, Put{cells}, 0);
  schedule.add(1, LookNow{cells}, kNoCounter, {{0, 1}});
  return run_schedule(hand, schedule, 20);
}

/// Worker 0 puts in one pass what worker 1 looks at in the next; the next but one overwrites it. Both tasks
/// are sinks and meet only at the gate.
inline bool gate() {
  TestDeviceState hand;
  TestSchedule<CompiledWireTasks> schedule(hand);
  name_word("gate", hand.dev.control->barrier.value);
  std::uint32_t cells[2] = {};
  schedule.add(0, Put{cells}, kNoCounter);
  schedule.add(1, Look{cells}, kNoCounter);
  return run_schedule(hand, schedule, 20);
}

/// Worker 2 has no task: it only reads what the schedule has seen before, and leaves. Then the leader writes
/// that.
inline bool leaving() {
  TestDeviceState hand;
  TestSchedule<CompiledWireTasks> schedule(hand);
  name_word("left", schedule.schedule().left);
  std::uint32_t cells[2] = {};
  schedule.add(0, Put{cells}, kNoCounter);
  return run_schedule(hand, schedule, 3);
}

}  // namespace flywheel::testing::views
