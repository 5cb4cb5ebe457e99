// A loaded graph as the workers see it.
#pragma once

#include <cstdint>

#include "runtime/task.hpp"

namespace flywheel {

enum class GraphKind : std::uint32_t { dynamic = 0, phased = 1 };

/// A phase of a phased graph: its records are shared out over all workers, or (grid) each worker runs the one record.
struct Phase {
  std::uint32_t first;  // graph-local index of the first record
  std::uint32_t count;
  std::uint32_t grid;   // 1: every worker runs the record at `first`
  std::uint32_t reserved;
};

/// Immutable while loaded. Relocatable: indices are relative to arenas, never addresses of records.
struct alignas(128) ExecRecord {
  std::uint32_t kind;          // a GraphKind
  std::uint32_t first_record;  // in the record arena
  std::uint32_t task_count;
  std::uint32_t sinks;         // tasks without successors: the run ends when all of them have
  std::uint32_t root_count;
  std::uint32_t first_root;    // in the edge arena: roots are stored like edges
  std::uint32_t phase_count;
  std::uint32_t uniform_roots;  // 1: every root inherits the run's priority
  std::uint64_t* counters;      // bank b starts at counters + b * task_count
  const Phase* phases;
  std::uint32_t first_edge;     // in the edge arena
  std::uint32_t reserved[19];
};
static_assert(sizeof(ExecRecord) == 128);

}  // namespace flywheel
