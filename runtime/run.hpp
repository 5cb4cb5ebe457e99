// A run: one execution (or a device-side loop of executions) of a loaded graph.
#pragma once

#include <cstdint>

#include "runtime/status.hpp"

namespace flywheel {

inline constexpr std::uint32_t kParamBytes = 256;  // run parameters, all together
inline constexpr std::uint32_t kStopRequested = 1;

/// One slot in device memory for each run in flight.
struct alignas(128) RunState {
  // Written by the door before it publishes the first task, constant until the run is complete.
  std::uint32_t exec;
  std::uint32_t generation;  // tells this run from earlier ones in the same slot
  std::uint32_t first_record;
  std::uint32_t first_edge;
  std::uint32_t sinks;
  std::uint32_t priority;    // a Priority, never inherit
  std::uint32_t repeat;      // iterations to run
  std::uint32_t param_bytes;
  std::uint64_t* counters;     // this run's bank
  std::uint64_t barrier_base;  // phased runs: the grid barrier when the run began

  // Changing. Words that many workers write lie on lines of their own.
  alignas(128) std::uint32_t outstanding;  // sinks and spawned tasks still to finish in this iteration
  alignas(128) std::uint32_t cancelled;    // set by the door, read before each task
  std::uint32_t stop;                      // a task asked for no further iteration
  std::uint32_t iteration;
  std::uint64_t fault;                     // {code:32 | local task + 1:32} of the first failure, 0 if none
  alignas(128) std::uint64_t emitted;      // tickets of the value stream
  std::uint64_t emit_limit;                // tickets below this have space
  alignas(128) unsigned char params[kParamBytes];
};

/// Where the host learns that a run is over. In host memory that the GPU writes; one writer, written once a run.
struct alignas(64) CompletionSlot {
  std::uint64_t word;        // {generation:32 | status code:32}
  std::uint32_t fault_task;  // graph-local index + 1 of the task that failed, 0 if none
  std::uint32_t iterations;  // completed
  std::uint64_t emitted;     // stream tickets taken in this slot so far; valid after a failed or repeated run
};

FLYWHEEL_TASK constexpr std::uint64_t completion_word(std::uint32_t generation, std::uint32_t code) {
  return (std::uint64_t{generation} << 32) | code;
}

/// Remembers the first failure of a run; later ones change nothing.
template <class P>
FLYWHEEL_TASK void record_fault(RunState& run, std::uint32_t code, std::uint32_t local) {
  // Relaxed: the finisher of the run reads it after acquiring every task's arrival.
  P::device(run.fault).compare_exchange(0, (std::uint64_t{code} << 32) | (local + 1), Order::relaxed);
}

}  // namespace flywheel
