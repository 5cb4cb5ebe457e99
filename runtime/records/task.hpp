// Task records: one fixed-size, relocatable description of one piece of work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../base/platform.hpp"

namespace flywheel {

/// Bytes a task type may hold in its members. More belongs in a device buffer that the task points to.
inline constexpr std::size_t kTaskArgBytes = 96;
inline constexpr std::uint32_t kNoResult = 0xffffffffu;

/// Urgent work overtakes what waits in the queue; it never interrupts a task that runs.
enum class Priority : std::uint8_t { high = 0, normal = 1, low = 2, inherit = 3 };
inline constexpr std::uint32_t kPriorities = 3;

enum TaskFlags : std::uint8_t {
  kTaskSpawned = 1,  // the record came from the spawn pool and goes back there
};

struct TaskHeader {
  std::uint16_t type;           // index in the kernel's list of task types
  std::uint8_t priority;        // a Priority
  std::uint8_t flags;           // TaskFlags
  std::uint32_t first_edge;     // in the edge arena
  std::uint32_t edge_count;     // successors; 0 makes this task a sink
  std::uint32_t result_offset;  // bytes into the run's results, or kNoResult
  std::uint32_t local;          // index in its graph: names the task in reports
  std::uint32_t edge_task;          // a copy of edge 0, see Edge: most tasks have no other, and need not fetch it
  std::uint32_t edge_predecessors;
  std::uint32_t edge_priority;
};

/// 128 bytes: one cache line, one coalesced read of a warp.
struct alignas(128) TaskRecord {
  TaskHeader header;
  alignas(16) unsigned char args[kTaskArgBytes];
};
static_assert(sizeof(TaskHeader) == 32 && sizeof(TaskRecord) == 128);

/// An edge names the successor and carries what its last predecessor needs to know, so that finishing a task reads
/// one array and not one record for each successor.
struct Edge {
  std::uint32_t task;          // graph-local index of the successor
  std::uint32_t predecessors;  // how many the successor waits for: its counter is re-armed with this
  std::uint32_t priority;      // a Priority
  std::uint32_t reserved;
};
static_assert(sizeof(Edge) == 16);

/// What travels through queues and mailboxes: which task of which run. Fits 48 bits; never all ones.
/// `skip` says that a predecessor failed: the task is not run, but its successors must still hear of it.
struct Item {
  std::uint32_t record;  // index in the record arena, below 2^31
  std::uint16_t run;     // run slot
  bool skip;

  /// In place of a record: "come and take roots of this run", see roots.hpp.
  static constexpr std::uint32_t kRootTicket = 0x7fffffffu;

  FLYWHEEL_TASK constexpr std::uint64_t pack() const {
    return (std::uint64_t{run} << 32) | (std::uint64_t{skip} << 31) | record;
  }
  FLYWHEEL_TASK static constexpr Item unpack(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits & 0x7fffffffu), static_cast<std::uint16_t>(bits >> 32),
            ((bits >> 31) & 1) != 0};
  }
};

}  // namespace flywheel
