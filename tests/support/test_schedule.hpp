// A compiled schedule that a test writes itself, on a TestDeviceState.
#pragma once

#include <cstring>

#include "support/device_state_fixture.hpp"

namespace flywheel::testing {

/// Tasks are added in the order of each worker; workers without any have nothing to do.
template <class List>
class TestSchedule {
 public:
  explicit TestSchedule(TestDeviceState& device, std::uint32_t counters = 8)
      : hand_(device),
        counters_(std::size_t{counters} * kCounterStride),
        instructions_(device.dev.workers) {
    schedule_.counters = counters_.data();
    schedule_.counter_count = counters;
  }

  /// `signal` is the counter it arrives at; kNoCounter makes it a sink.
  template <class Task>
  Instruction& add(std::uint32_t worker, const Task& task, std::uint32_t signal,
                   std::initializer_list<CounterWait> waits = {}) {
    Instruction instruction{};
    instruction.record.header.type = static_cast<std::uint16_t>(List::template index_of<Task>());
    instruction.record.header.result_offset = kNoResult;
    instruction.record.header.local = next_task_++;
    std::memcpy(instruction.record.args, &task, sizeof(Task));
    instruction.signal = signal;
    for (const CounterWait& wait : waits) instruction.waits[instruction.wait_count++] = wait;
    if (signal == kNoCounter) {
      instruction.flags = kSink;
      ++schedule_.sinks;
      schedule_.leader = worker;
    }
    instructions_[worker].push_back(instruction);
    return instructions_[worker].back();
  }

  /// After the last add().
  RunConstants load() {
    for (const auto& stream : instructions_)
      streams_.push_back({stream.data(), nullptr, nullptr, 0, static_cast<std::uint32_t>(stream.size())});
    schedule_.streams = streams_.data();
    RunConstants run = hand_.load(TestGraph<List>{});
    run.flags = kCompiled;
    run.sinks = 1;
    hand_.dev.execs[run.exec].schedule = &schedule_;
    return run;
  }

  Schedule& schedule() { return schedule_; }
  std::vector<std::uint64_t>& counters() { return counters_; }

 private:
  TestDeviceState& hand_;
  Schedule schedule_{};
  std::vector<std::uint64_t> counters_;
  std::vector<std::vector<Instruction>> instructions_;
  std::vector<WorkerStream> streams_;
  std::uint32_t next_task_ = 0;
};

}  // namespace flywheel::testing
