// A run: one execution (or a device-side loop of executions) of a loaded graph.
#pragma once

#include <cstdint>

#include "../base/platform.hpp"
#include "../base/status.hpp"

namespace flywheel {

inline constexpr std::uint32_t kParamBytes = 256;  // run parameters, all together
inline constexpr std::uint32_t kRunWords = 16;     // 32-bit words of RunConstants

/// What does not change while a run lives. The host's message *is* this: the inbox poller only copies it.
struct alignas(16) RunConstants {
  std::uint32_t op;  // an InboxOp
  std::uint32_t slot;
  std::uint32_t generation;  // tells this run from earlier ones in the same slot
  std::uint32_t repeat;      // iterations to run
  std::uint32_t priority;    // a Priority, never inherit
  std::uint32_t param_bytes;
  std::uint32_t exec;
  std::uint32_t serial;  // of the loaded graph: never two the same, unlike places in arenas
  std::uint32_t first_record;
  std::uint32_t sinks;       // tasks without successors: an iteration ends when all of them have
  std::uint32_t root_count;
  std::uint32_t first_root;  // in the edge arena: roots are stored like edges
  std::uint32_t flags;       // GraphFlags
  std::uint32_t root_task;   // graph-local index of the only root, if there is one
  std::uint32_t counters[2]; // address of this run's bank: low half, high half

  FLYWHEEL_TASK std::uint64_t* bank() const {
    return reinterpret_cast<std::uint64_t*>((std::uint64_t{counters[1]} << 32) | counters[0]);
  }
};
static_assert(sizeof(RunConstants) == kRunWords * 4);

enum GraphFlags : std::uint32_t {
  kRootsUniform = 1,  // every root inherits the run's priority
  kRootsDense = 2,    // root i is task i
  kPhased = 4,        // phases order the tasks; there are no edges
  kCompiled = 8,      // every worker follows a stream of its own
  kPack = 16,         // with kPhased: every worker packs the operands of its stream
  kTraced = 32,       // compiled: write down who did what when
  kAllWorkers = kPhased | kCompiled,
};

/// One cache line: the constants, and the words every task looks at before it starts.
struct alignas(128) RunLine {
  RunConstants constants;
  std::uint32_t cancelled;  // set by the inbox poller
  std::uint32_t stop;       // a task asked for no further iteration
  std::uint32_t iteration;
  std::uint32_t reserved;
  std::uint64_t fault;         // {code:32 | local task + 1:32} of the first failure, 0 if none
  std::uint64_t barrier_base;  // phased runs: the grid barrier when the run began
  std::uint64_t reserved_too[4];
};
static_assert(sizeof(RunLine) == 128);

/// One slot in device memory for each run in flight.
struct RunState {
  RunLine line;
  alignas(128) std::uint32_t outstanding;  // sinks and spawned tasks still to finish in this iteration
  alignas(128) std::uint64_t roots;        // {roots:32 | next to take:32}, see roots.hpp
  alignas(128) std::uint64_t emitted;      // tickets of the value stream; go on counting from run to run
  std::uint64_t emit_limit;                // tickets below this have space
  alignas(128) unsigned char params[kParamBytes];
};

/// A worker's own copy of what a task needs of the line.
template <class P>
FLYWHEEL_TASK void copy_line(RunLine& to, RunLine& from) {
  auto* words = reinterpret_cast<std::uint64_t*>(&from.constants);
  auto* mine = reinterpret_cast<std::uint64_t*>(&to.constants);
  // Relaxed: the constants were acquired with the task; the other two are hints that may be a moment old.
  for (std::uint32_t i = 0; i < kRunWords / 2; ++i) mine[i] = P::device(words[i]).load(Order::relaxed);
  to.cancelled = P::device(from.cancelled).load(Order::relaxed);
  to.iteration = P::device(from.iteration).load(Order::relaxed);
}

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
  P::device(run.line.fault).compare_exchange(0, (std::uint64_t{code} << 32) | (local + 1), Order::relaxed);
}

}  // namespace flywheel
