// What is left of a loaded graph beside its records and edges: the phases.
#pragma once

#include <cstdint>

#include "task.hpp"

namespace flywheel {

enum class GraphKind : std::uint32_t { dynamic = 0, phased = 1, compiled = 2 };

struct Schedule;

/// A phase of a phased graph: its records are shared out over all workers, or (grid) each worker runs the one record.
struct Phase {
  std::uint32_t first;  // graph-local index of the first record
  std::uint32_t count;
  std::uint32_t grid;   // 1: every worker runs the record at `first`
  std::uint32_t reserved;
};

/// Immutable while loaded. All else that workers need of a graph comes with each run, see RunConstants.
struct ExecRecord {
  const Phase* phases;
  Schedule* schedule;  // compiled graphs
  std::uint32_t phase_count;
  std::uint32_t reserved;
};

}  // namespace flywheel
