// Compiled schedules: every worker follows a stream of instructions of its own; edges are waits on counters.
#pragma once

#include "../base/platform.hpp"
#include "../base/wait.hpp"
#include "task.hpp"

namespace flywheel {

/// Tasks with the same successors arrive at one counter; each pass of a run adds `arrivals` to it.
struct CounterWait {
  std::uint32_t counter;   // index in the schedule's bank
  std::uint32_t arrivals;  // in one pass: all of them are waited for
};

inline constexpr std::uint32_t kNoCounter = 0xffffffffu;
inline constexpr std::uint32_t kInstructionWaits = 12;

enum InstructionFlags : std::uint32_t {
  kSink = 1,      // nobody waits for it: it arrives at the gate instead
  kOnlyWaits = 2, // no task: a place for waits that did not fit the next instruction
  kAfterPrevious = 4,  // it needs what the instruction before it, on the same worker, stores
  kInGang = 16,   // others wait for it while they run
  kEarly = 8,     // its parts begin at once and wait themselves for the tasks before it, see operands.hpp
};

/// One task of one worker, with all that the worker needs to run it. 256 bytes, so that two lines bring it in.
struct alignas(128) Instruction {
  TaskRecord record;  // the edges in its header are not used
  std::uint32_t signal;        // the counter to arrive at, or kNoCounter
  std::uint32_t wait_count;
  std::uint32_t operand_bytes; // of its operand stream
  std::uint32_t flags;         // InstructionFlags
  CounterWait waits[kInstructionWaits];
  std::uint32_t dependent_pages;
  std::uint32_t reserved[3];
};
static_assert(sizeof(Instruction) == 256);

/// What a loader needs to know of a task with operands.
struct OperandTask {
  std::uint32_t instruction;      // its place in the worker's stream
  std::uint32_t constant_bytes;   // of the operand stream, padded
  std::uint32_t dependent_pages;  // that come after those, once the task's predecessors are done
  std::uint32_t reserved;
};

/// One worker's part.
struct WorkerStream {
  const Instruction* instructions;
  unsigned char* operands;      // its operand stream: what its tasks read and nobody writes, in the order of use
  const OperandTask* operand_tasks;
  std::uint32_t operand_task_count;
  std::uint32_t count;          // instructions
};

/// A loaded schedule. Immutable but for `counters` and `passes`.
///
/// Nothing is reset between passes or runs: counters go on counting. Pass p of all passes that ever were (from 0) waits
/// for (p + 1) * arrivals. A pass begins when all sinks of the one before have arrived at the gate, so no arrival of a
/// later pass can stand in for a missing one of this pass. Only one collective run is let in at a time, so two
/// runs of a schedule never overlap.
struct Schedule {
  WorkerStream* streams;    // one a worker
  std::uint64_t* counters;  // each on a line of its own: {failed arrivals:16 | arrivals:48}, then what was sent
  std::uint64_t passes;     // that earlier runs have gone through; written by the leader as a run ends
  std::uint64_t runs;       // that have ended; likewise
  std::uint64_t left;       // by all workers in all runs so far
  std::uint32_t counter_count;
  std::uint32_t sinks;      // arrivals at the gate in a pass
  std::uint32_t leader;    // the worker that tells the host; it has a sink
  std::uint32_t reserved;
};

inline constexpr std::uint32_t kCounterStride = 16;  // words from one counter to the next
/// The word beside a counter: tasks that have sent their results, see signal_sent(). Only a hint, and never reset but after a
/// failure: results that are waited for early carry stamps.
inline constexpr std::uint32_t kSentWord = 1;
inline constexpr std::uint64_t kFailedSignal = std::uint64_t{1} << 48;
inline constexpr std::uint64_t kArrivals = kFailedSignal - 1;

}  // namespace flywheel
