// Compiled schedules: every worker follows its own stream of instructions, and edges become waits on counters.
//
// The host plans a schedule and loads it (host/plan/schedule_image, host/load/loader); runtime/compiled/compiled.hpp runs it.
#pragma once

#include "../base/platform.hpp"
#include "../base/wait.hpp"
#include "task.hpp"

namespace flywheel::detail {

/// A wait of an instruction. Tasks with the same successors arrive at one counter; each pass of a run adds `arrivals` to it.
struct CounterWait {
  std::uint32_t counter;   // index in the schedule's bank
  std::uint32_t arrivals;  // arrivals in one pass; the wait is for all of them
};

inline constexpr std::uint32_t kNoCounter = 0xffffffffu;
inline constexpr std::uint32_t kInstructionWaits = 12;

enum InstructionFlags : std::uint32_t {
  kSink = 1,           // no task waits for it, and it is the last such of its worker: it arrives at the gate (the grid
                       // barrier between passes), for all before it
  kOnlyWaits = 2,      // no task: holds waits that do not fit in the next instruction
  kAfterPrevious = 4,  // it reads what the previous instruction of the same worker stores
  kInGang = 16,        // other tasks wait for it while they run
  kEarly = 8,          // its parts begin at once and wait themselves for its predecessors, see operands.hpp
};

/// One task of one worker, with everything that the worker needs to run it. 256 bytes: two cache lines.
struct alignas(128) Instruction {
  TaskRecord record;            // the edges in its header are not used
  std::uint32_t signal;         // the counter to arrive at, or kNoCounter
  std::uint32_t wait_count;     // of `waits`
  std::uint32_t operand_bytes;  // of its part of the operand stream
  std::uint32_t flags;          // InstructionFlags
  CounterWait waits[kInstructionWaits];
  std::uint32_t dependent_pages;
  std::uint32_t reserved[3];
};
static_assert(sizeof(Instruction) == 256);

/// What a worker's load role needs to know of a task with operands.
struct OperandTask {
  std::uint32_t instruction;      // index in the worker's stream
  std::uint32_t constant_bytes;   // of its part of the operand stream, padded
  std::uint32_t dependent_pages;  // pages after those, fetched once the task's predecessors are done
  std::uint32_t reserved;
};

/// One worker's part of a schedule.
struct WorkerStream {
  const Instruction* instructions;
  unsigned char* operands;  // its operand stream: constant operands of its tasks, in the order of use
  const OperandTask* operand_tasks;
  std::uint32_t operand_task_count;
  std::uint32_t count;  // of instructions
};

/// A loaded schedule. Immutable except for `counters`, `passes`, `runs` and `left`.
///
/// Counters are not reset between passes or runs. Pass p, counted from 0 over all passes of all runs, waits for (p + 1) *
/// arrivals. A pass begins when all sinks of the previous pass have arrived at the gate, so an arrival of a later pass cannot
/// replace a missing one of this pass. The host admits one collective run at a time, so two runs of a schedule never overlap.
struct Schedule {
  WorkerStream* streams;    // one a worker; or so many one after the other for each of its warps, see `warps`
  std::uint64_t* counters;  // each on a cache line of its own: {failed arrivals:16 | arrivals:48}, then the sent word
  std::uint64_t passes;     // passes of earlier runs; written by the leader when a run ends or is suspended
  std::uint64_t runs;       // runs that have ended, and suspensions; likewise
  std::uint64_t left;       // departures of workers from all runs so far, see leave_compiled()
  std::uint32_t counter_count;
  std::uint32_t sinks;   // arrivals at the gate in a pass
  std::uint32_t leader;  // the stream whose worker notifies the host; it has a sink
  std::uint32_t
      bare;  // 1: no task has parts or operands, and none is early; a GPU runs it as a bare run, device/compiled/bare.cuh
  // Not 0: all are warp tasks, and so many warps of each worker follow a stream of their own, device/compiled/warps.cuh. Stream
  // `warp * workers + worker` is that of a worker's warp.
  std::uint32_t warps;
};

inline constexpr std::uint32_t kCounterStride = 16;  // words from one counter to the next
/// Index of the sent word beside a counter: the number of tasks that have sent their results, see signal_sent(). It is a
/// hint, because results that early tasks wait for carry stamps. It is reset only after a failure.
inline constexpr std::uint32_t kSentWord = 1;
/// What the arrival of a failed task adds to a counter besides 1, and the bits of the arrivals.
inline constexpr std::uint64_t kFailedSignal = std::uint64_t{1} << 48;
inline constexpr std::uint64_t kArrivals = kFailedSignal - 1;

}  // namespace flywheel::detail
