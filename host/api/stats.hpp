// What Runtime::stats() returns.
#pragma once

#include <cstdint>
#include <string>

namespace flywheel {

/// Statistics, counted since the start. Workers publish their counts only when they are idle, so the counts of a busy
/// runtime lag behind.
struct Stats {
  std::string device;
  std::uint32_t workers;
  std::uint64_t tasks;       // bodies that ran
  std::uint64_t skipped;     // tasks whose predecessors failed, or whose run was cancelled
  std::uint64_t kept;        // successors that a worker kept for itself
  std::uint64_t handed;      // tasks that were delivered to an idle worker
  std::uint64_t queued;      // tasks that waited in a queue
  std::uint64_t idle_polls;  // polls of idle workers
  std::uint64_t queue_peak;  // most tasks that a push has left in a ready queue; pushes to an empty queue are not counted
  std::uint64_t submitted, completed, direct, peak_live;  // runs; direct: not through the backlog; peak_live: in flight at once
  std::uint64_t singles_submitted, singles_completed;     // tasks submitted one by one, which are no runs
  std::uint64_t launches, parks;                          // of the kernel; equal while it is not resident
  std::uint64_t yields;                                   // of the parks: the kernel gave the GPU back with its work kept
};

}  // namespace flywheel
