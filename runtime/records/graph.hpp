// The parts of a loaded graph besides its task records and edges: its phases, or its compiled schedule.
#pragma once

#include <cstdint>

#include "task.hpp"

namespace flywheel::detail {

/// How a graph runs: by dependency counters, in phases on all workers, or by a schedule compiled for all workers.
enum class GraphKind : std::uint32_t { dynamic = 0, phased = 1, compiled = 2 };

struct Schedule;

/// A phase of a phased graph. Its records are distributed over all workers, or (grid) every worker runs the same record.
struct Phase {
  std::uint32_t first;  // graph-local index of the first record
  std::uint32_t count;
  std::uint32_t grid;  // 1: every worker runs the record at `first`
  std::uint32_t reserved;
};

/// A loaded graph. Immutable while loaded. Everything else that workers need of a graph comes with each run, see RunConstants.
struct alignas(32) ExecRecord {
  const Phase* phases;  // phased graphs
  Schedule* schedule;   // compiled graphs
  std::uint32_t phase_count;
  std::uint32_t reserved;
};
static_assert(sizeof(TaskRecord) % sizeof(ExecRecord) == 0);  // they lie in one arena, in units of a record

}  // namespace flywheel::detail
