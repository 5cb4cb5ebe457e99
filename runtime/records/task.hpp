// Task records: fixed-size, relocatable descriptions of tasks, and the items that name them in queues and mailboxes.
//
// The host writes the records of a loaded graph, and spawn() those of spawned tasks; workers read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../base/platform.hpp"

namespace flywheel {

/// Most bytes of a task type's members. Keep larger data in a device buffer and a pointer to it in the task.
inline constexpr std::size_t kTaskArgBytes = 96;
/// TaskHeader::result_offset of a task without a result.
inline constexpr std::uint32_t kNoResult = 0xffffffffu;
/// TaskHeader::result_offset of a single task: its result goes to the completion slot.
inline constexpr std::uint32_t kResultInCompletion = 0xfffffffeu;

/// Ready tasks of a higher priority run first. A running task is never interrupted. `inherit`: the priority of the run.
enum class Priority : std::uint8_t { high = 0, normal = 1, low = 2, inherit = 3 };

namespace detail {
inline constexpr std::uint32_t kPriorities = 3;
inline constexpr std::uint32_t kWorkerWarps = 8;  // of a worker on a GPU, which run the bodies of tasks

enum TaskFlags : std::uint8_t {
  kTaskSpawned = 1,    // the record belongs to the spawn pool and returns there
  kTaskContinued = 2,  // of a spawned task: a continuation waits for it, whose record is `first_edge`, and nothing else does
  kTaskControls = 4,   // some of its edges have a label
  kTaskLoops = 8,      // the last task of a loop: block.again() runs the first one, `edge_task`, once more
  kTaskStandsIn = 16,  // of a spawned task: the continuation of a task of the graph
};

/// What a body has asked of the graph, Outcome::control: these bits and cases, or kContinues and the record of a continuation.
/// What an edge demands, Edge::label: kAnyEdge and cases.
enum ControlBits : std::uint32_t {
  kHasSpawned = 1,        // the body has spawned a task that takes its place
  kAgain = 2,             // it has called again()
  kAnyEdge = 1,           // the successor waits for any of its predecessors, and runs if one has run
  kFirstCase = 4,         // case 0; case n: kFirstCase << n
  kContinues = 1u << 31,  // the body has called then()
};
inline constexpr std::uint32_t kMostCases = 28;
inline constexpr std::uint32_t kCases = ((1u << kMostCases) - 1) * kFirstCase;
inline constexpr std::uint32_t kNoRecord = ~0u;

/// Everything of a task but its arguments.
struct TaskHeader {
  std::uint16_t type;           // index in the kernel's list of task types
  std::uint8_t priority;        // a Priority
  std::uint8_t flags;           // TaskFlags
  std::uint32_t first_edge;     // index in the edge arena
  std::uint32_t edge_count;     // number of successors; 0: the task is a sink
  std::uint32_t result_offset;  // bytes into the run's results, or kNoResult
  std::uint32_t local;          // index in its graph; names the task in reports
  std::uint32_t edge_task;      // these three: a copy of an edge, of the one to await or the first. Most tasks have only one
  std::uint32_t edge_predecessors;  // with kAwaits: the task's worker may await that successor
  std::uint32_t edge_priority;
  // With kTaskControls or kTaskLoops the last three say nothing of an edge: `edge_predecessors` is 0, and the first task of a
  // loop stands there. In a continuation that waits, `edge_predecessors` counts the tasks before it, see
  // arrive_at_continuation(): its other fields are those of the task whose place it takes.

  /// In the count of predecessors, so that a worker that asks for a sole successor without another predecessor asks for both.
  static constexpr std::uint32_t kAwaits = 1u << 31;
  /// Other tasks may arrive in its place even if its body has spawned none: it is one of them, or ends a loop whose earlier
  /// turns have spawned some.
  FLYWHEEL_TASK constexpr bool shares_place() const { return flags & (kTaskSpawned | kTaskLoops); }
  FLYWHEEL_TASK constexpr bool awaits() const { return edge_predecessors & kAwaits && !(flags & kTaskSpawned); }
  FLYWHEEL_TASK constexpr std::uint32_t predecessors_of_edge() const { return edge_predecessors & ~kAwaits; }
};

/// A task: header and arguments. 128 bytes: one cache line, one coalesced read of a warp.
struct alignas(128) TaskRecord {
  TaskHeader header;
  alignas(16) unsigned char args[kTaskArgBytes];
};
static_assert(sizeof(TaskHeader) == 32 && sizeof(TaskRecord) == 128);
/// A TaskRecord as it lies in a message.
struct alignas(16) CarriedRecord {
  unsigned char bytes[sizeof(TaskRecord)];
};

// Batches: tasks without a graph, see runtime/dynamic/task_list.hpp.
inline constexpr std::uint32_t kBatchTasks = 512;  // most tasks of a block
inline constexpr std::uint32_t kBatchBlocks = 64;

/// The type of the library's own task that begins the run of a block, in place of a position in the list of task types.
inline constexpr std::uint16_t kFetchBatchType = 0xffff;
/// Its index in the batch, which names no task of the program.
inline constexpr std::uint32_t kNoLocal = 0xfffffffeu;

/// Its arguments.
struct FetchBatch {
  const TaskRecord* from;  // in pinned memory
  std::uint32_t first;     // in the record arena
  std::uint32_t count;
};

/// An edge to a successor. It holds what the last predecessor needs, so that finishing a task reads one array and not one
/// record for each successor.
struct Edge {
  std::uint32_t task;          // graph-local index of the successor
  std::uint32_t predecessors;  // of the successor; its counter is re-armed with this number
  std::uint32_t priority;      // a Priority
  std::uint32_t label;         // see ControlBits
};
static_assert(sizeof(Edge) == 16);

/// An item of queues and mailboxes: a task of a run. The packed form has 48 bits, never all ones. `skip`: a predecessor
/// failed, so the task is not run, but it still arrives at its successors.
struct Item {
  std::uint32_t record;  // index in the record arena, below 2^31
  std::uint16_t run;     // run slot
  bool skip;

  /// In place of a record: a ticket that tells a worker to take roots of this run, see roots.hpp.
  static constexpr std::uint32_t kRootTicket = 0x7fffffffu;
  /// The same: an idle worker is to look at the broadcast words now, see wake_idle().
  static constexpr std::uint32_t kWakeUp = kRootTicket - 1;

  FLYWHEEL_TASK constexpr std::uint64_t pack() const {
    return (std::uint64_t{run} << 32) | (std::uint64_t{skip} << 31) | record;
  }
  FLYWHEEL_TASK static constexpr Item unpack(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits & 0x7fffffffu), static_cast<std::uint16_t>(bits >> 32), ((bits >> 31) & 1) != 0};
  }
};

}  // namespace detail
}  // namespace flywheel
