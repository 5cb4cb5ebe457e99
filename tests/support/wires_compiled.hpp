// The wires of a compiled run: a counter between two workers, the gate between two passes, the word by which workers that
// have nothing to do leave, and the word that tells a gang that one of its tasks has failed. See wires.hpp.
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
/// Writes the pass into plain memory and fails: the other tasks of its gang are told.
struct PutAndFail {
  std::uint32_t* cell;
  template <class Block>
  void operator()(Block& block) const {
    *cell += 1;
    block.fail(kPutCode);
  }
  static constexpr std::uint32_t kPutCode = 7;
};
/// Waits until it is told, and reads what the task that failed has written. It counts as cancelled itself, but the other's
/// code is recorded before.
struct LookWhenCancelled {
  const std::uint32_t* cell;
  std::uint32_t* seen;
  template <class Block>
  void operator()(Block& block) const {
    const Deadline deadline;
    for (std::uint32_t spins = 0; !block.cancelled() && !deadline.passed(); ++spins) P::pause(spins % 512);
    *seen = *cell;
  }
};
using CompiledWireTasks = TaskList<Put, Look, LookNow, PutAndFail, LookWhenCancelled>;

/// Runs it a few times; true if every run ended well.
inline bool run_schedule(TestDeviceState& device, TestSchedule<CompiledWireTasks>& schedule, std::uint32_t repeat) {
  const RunConstants run = schedule.load();
  Launch<CompiledWireTasks, P> launch(device);
  for (std::uint32_t r = 0; r < 10; ++r)
    if (launch.run(run, 0, repeat)) return false;
  launch.park();
  return schedule.schedule().runs == 10 && schedule.schedule().passes == 10 * repeat;
}

/// Worker 0 puts, worker 1 looks in the same pass.
inline bool predecessors() {
  TestDeviceState device;
  TestSchedule<CompiledWireTasks> schedule(device);
  name_words("counters", schedule.counters().data(), schedule.counters().size() * 8);
  std::uint32_t cells[2] = {7, 7};
  schedule.add(0, Put{cells}, 0);
  schedule.add(1, LookNow{cells}, kNoCounter, {{0, 1}});
  return run_schedule(device, schedule, 20);
}

/// Worker 0 puts in one pass what worker 1 looks at in the next; the next but one overwrites it. Both tasks
/// are sinks and meet only at the gate.
inline bool gate() {
  TestDeviceState device;
  TestSchedule<CompiledWireTasks> schedule(device);
  name_word("gate", device.dev.control->barrier.value);
  std::uint32_t cells[2] = {};
  schedule.add(0, Put{cells}, kNoCounter);
  schedule.add(1, Look{cells}, kNoCounter);
  return run_schedule(device, schedule, 20);
}

/// Worker 2 has no task: it only reads what the schedule has seen before, and leaves. Then the leader writes
/// that.
inline bool leaving() {
  TestDeviceState device;
  TestSchedule<CompiledWireTasks> schedule(device);
  name_word("left", schedule.schedule().left);
  std::uint32_t cells[2] = {};
  schedule.add(0, Put{cells}, kNoCounter);
  return run_schedule(device, schedule, 3);
}

/// Worker 0's task fails, worker 1's learns it from cancelled() and reads what the first wrote. The run's code is the first's.
inline bool cancelled() {
  constexpr std::uint32_t kRuns = 10;
  TestDeviceState device;
  TestSchedule<CompiledWireTasks> schedule(device);
  std::uint32_t cell = 0, seen = 0;
  schedule.add(0, PutAndFail{&cell}, kNoCounter).flags |= kInGang;
  schedule.add(1, LookWhenCancelled{&cell, &seen}, kNoCounter).flags |= kInGang;
  const RunConstants run = schedule.load();
  name_word("cancelled", device.dev.runs[0].line.cancelled);
  Launch<CompiledWireTasks, P> launch(device);
  Flaws flaws;
  for (std::uint32_t r = 0; r < kRuns; ++r) {
    flaws.add(launch.run(run) != kUserStatus + PutAndFail::kPutCode);
    flaws.add(seen != r + 1);
  }
  launch.park();
  return flaws.none();
}

}  // namespace flywheel::testing::views
