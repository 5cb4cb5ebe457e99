// Runs: one execution, or a device-side loop of executions, of a loaded graph.
//
// The host sends RunConstants through the inbox, workers use the RunState of the run's slot in device memory, and the
// last task writes the CompletionSlot in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../base/platform.hpp"
#include "../base/status.hpp"

namespace flywheel::detail {

inline constexpr std::uint32_t kParamBytes = 256;      // for all parameters of a run
inline constexpr std::uint32_t kRunWords = 16;         // 32-bit words of RunConstants
inline constexpr std::uint32_t kInlineBytes = 128;     // of a record, or of parameters, that travel in the submit message
inline constexpr std::uint32_t kMostPredecessors = 4;  // runs that one run waits for on the device
inline constexpr std::uint32_t kMostValues = 4;        // results of theirs that it takes as parameters there

/// The values that do not change while a run lives. The host sends them as the submit message; the inbox poller copies them.
struct alignas(16) RunConstants {
  std::uint32_t op;            // an InboxOp
  std::uint32_t slot;          // run slot
  std::uint32_t generation;    // distinguishes this run from earlier runs in the same slot
  std::uint32_t repeat;        // iterations to run
  std::uint32_t priority;      // a Priority, never inherit
  std::uint32_t param_bytes;   // of the run's parameters
  std::uint32_t exec;          // index of the ExecRecord
  std::uint32_t serial;        // of the loaded graph: unique, unlike positions in arenas
  std::uint32_t first_record;  // index in the record arena
  std::uint32_t sinks;         // tasks without successors: an iteration ends when all of them are done
  std::uint32_t root_count;    // tasks without predecessors
  std::uint32_t first_root;    // index in the edge arena: roots are stored like edges
  std::uint32_t flags;         // GraphFlags
  std::uint32_t root_task;     // graph-local index of the only root, if there is one
  std::uint32_t counters[2];   // address of this run's bank of dependency counters: low half, high half

  /// The run's bank of dependency counters.
  FLYWHEEL_TASK std::uint64_t* bank() const {
    return reinterpret_cast<std::uint64_t*>((std::uint64_t{counters[1]} << 32) | counters[0]);
  }
};
static_assert(sizeof(RunConstants) == kRunWords * 4);

enum GraphFlags : std::uint32_t {
  kRootsUniform = 1,                  // every root inherits the run's priority
  kRootsDense = 2,                    // root i is task i
  kPhased = 4,                        // phases order the tasks; there are no edges
  kCompiled = 8,                      // every worker follows its own instruction stream
  kPack = 16,                         // with kPhased: every worker packs the operands of its stream
  kTraced = 32,                       // the workers write a trace
  kInlineRoot = 64,                   // the run begins with the task whose record the message carries, see inbox.hpp
  kFollows = 128,                     // the run is a follower: what the message carries ends with its FollowedRuns
  kTakesValues = 256,                 // a follower some of whose parameters are results of its predecessors
  kCarries = 512,                     // the message carries anything, see Inbox::write()
  kForDirectSlot = 1024,              // the message is all that the worker at the direct slot needs, likewise
  kAllWorkers = kPhased | kCompiled,  // a collective run: all workers take part
};

/// Bits of RunLine::stop, of which a dynamic run uses the first, and of Outcome::stop: the first and the last.
enum StopBits : std::uint32_t {
  kStopCalled = 1,    // a task called stop()
  kStopVoted = 2,     // a sink of this compiled run has voted to end it, or this part of it
  kSuspendAsked = 4,  // the inbox poller asks this collective run to suspend itself, see suspend.hpp
  kTracedBody = 8,    // the body's run is traced, so what follows it is never the short way, see traced.hpp
};

/// Where a suspended collective run goes on: what has run are all passes below `pass`, and the first `phase` phases of that
/// pass. In a compiled run `phase` is 0.
struct ResumePoint {
  std::uint32_t pass;
  std::uint32_t phase;
};

/// One cache line with the constants and the words that a worker reads before it starts a task.
struct alignas(128) RunLine {
  RunConstants constants;
  std::uint32_t cancelled;     // set by the inbox poller
  std::uint32_t stop;          // StopBits; non-zero in a dynamic run: no further iteration runs
  std::uint32_t iteration;     // from 0
  std::uint32_t suspended;     // 1: a collective run that goes on at `resume` when it is announced again
  std::uint64_t fault;         // {code:32 | local task + 1:32} of the first failure; 0 if none
  std::uint64_t barrier_base;  // collective runs: the word of the grid barrier when the run began, see Announcer::announce()
  ResumePoint resume;          // of a collective run; {0, 0} in one that was not suspended
  std::uint64_t meeting_base;  // the same of the word of grid_sync()
  std::uint64_t reserved;
  std::uint64_t followers;  // see followers_word(). Its generations count on from run to run in the slot
};
static_assert(sizeof(RunLine) == 128 && offsetof(RunLine, followers) == 120);

/// The list of the followers of the run in a slot: {last generation that has ended:32 | it failed:1 | first link:31}. A link
/// is a place in FollowState::next, see link_of(); 0: none.
FLYWHEEL_TASK constexpr std::uint64_t followers_word(std::uint32_t ended, bool failed, std::uint32_t link) {
  return (std::uint64_t{ended} << 32) | (std::uint64_t{failed} << 31) | link;
}
FLYWHEEL_TASK constexpr std::uint32_t followers_ended(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
FLYWHEEL_TASK constexpr bool followers_failed(std::uint64_t word) { return (word >> 31) & 1; }
FLYWHEEL_TASK constexpr std::uint32_t followers_link(std::uint64_t word) { return word & ((1u << 31) - 1); }
/// The link of the follower in `slot` in the list of its predecessor `k`.
FLYWHEEL_TASK constexpr std::uint32_t link_of(std::uint32_t slot, std::uint32_t k) { return slot * kMostPredecessors + k + 1; }

/// The followers of a run that has ended.
struct Followers {
  std::uint64_t list;    // followers_word() as the exchange that closed the list returned it, so that the thread waits for that
                         // only when it looks
  std::uint64_t failed;  // 1: the run has failed. No bool: its padding would take registers, too

  /// The first link; 0: none.
  FLYWHEEL_TASK std::uint32_t first() const { return followers_link(list); }
};

/// A parameter of a follower that is a result of a predecessor.
struct FollowedValue {
  std::uint32_t from;  // bytes into the predecessor's results
  std::uint16_t slot;  // of the predecessor
  std::uint8_t to;     // bytes into the parameters
  std::uint8_t bytes;  // at most 8; 0: none
};
static_assert(kParamBytes == 256);

/// What FollowState::waits is throughout if the run has one predecessor: that one's end is the last arrival.
inline constexpr std::uint32_t kOnePredecessor = 1u << 31;

/// What a follower waits for.
struct alignas(128) FollowState {
  std::uint32_t waits;                    // predecessors that have not ended, and 1 while the inbox poller enlists the run
  std::uint32_t failed;                   // 1: a predecessor has failed
  std::uint32_t next[kMostPredecessors];  // the next link in each predecessor's list
  FollowedValue values[kMostValues];      // with kTakesValues
};

/// The state of one run in flight: one run slot in device memory.
struct RunState {
  RunLine line;
  alignas(128) std::uint32_t outstanding;  // sinks, and tasks spawned in their place, that are not done in this iteration
  alignas(128) std::uint64_t roots;        // {number of roots:32 | next root to take:32}, see roots.hpp
  alignas(128) std::uint64_t emitted;      // tickets of the value stream taken so far, counted on from run to run
  std::uint64_t emit_limit;                // tickets below it have a free cell
  alignas(128) unsigned char params[kParamBytes];
  FollowState follow;
};

/// Copies the constants of a run.
template <class P>
FLYWHEEL_TASK void copy_constants(RunConstants& to, RunLine& from) {
  auto* words = reinterpret_cast<std::uint64_t*>(&from.constants);  // 8-byte atomics over pairs of fields, half as many loads
  std::uint64_t copy[kRunWords / 2];
  // Relaxed: pairs with the stores in open_line(), which the worker has acquired together with the task or the follower.
  for (std::uint32_t i = 0; i < kRunWords / 2; ++i) copy[i] = P::device(words[i]).load(Order::relaxed);
  memcpy(&to, copy, sizeof copy);
}

/// Copies to a worker's own line what a task needs of the run's line: the constants, `cancelled` and `iteration`.
template <class P>
FLYWHEEL_TASK void copy_line(RunLine& to, RunLine& from) {
  copy_constants<P>(to.constants, from);
  // Relaxed, both: pair with the store in begin_iteration(), which the worker has acquired together with the task, and with
  // the store of `cancelled` by the inbox poller, which is a hint that may arrive late.
  to.cancelled = P::device(from.cancelled).load(Order::relaxed);
  to.iteration = P::device(from.iteration).load(Order::relaxed);
}

inline constexpr std::uint32_t kInlineResultBytes = 64;

/// The completion of a run, in host memory. One thread of one worker writes it, once a run, with `word` last (end_run()).
struct alignas(128) CompletionSlot {
  std::uint64_t word;        // {generation:32 | status code:32}
  std::uint32_t fault_task;  // graph-local index + 1 of the task that failed; 0 if none. Valid with a status code
  std::uint32_t iterations;  // completed
  std::uint64_t emitted;     // stream tickets taken in this slot so far; valid after a failed or repeated run
  alignas(16) unsigned char result[kInlineResultBytes];  // of a single task, see kResultInCompletion
};

/// The word of a completed run.
FLYWHEEL_TASK constexpr std::uint64_t completion_word(std::uint32_t generation, std::uint32_t code) {
  return (std::uint64_t{generation} << 32) | code;
}

/// Records the first failure of a run; later failures change nothing.
template <class P>
FLYWHEEL_TASK void record_fault(RunState& run, std::uint32_t code, std::uint32_t local) {
  // Relaxed: pairs with the load in complete_run(), by a thread that has acquired the arrival of every task. Loads in
  // begin_iteration() and signal_done() likewise follow the arrivals that they depend on.
  P::device(run.line.fault).compare_exchange(0, (std::uint64_t{code} << 32) | (local + 1), Order::relaxed);
}

}  // namespace flywheel::detail
