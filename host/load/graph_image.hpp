// Translates a Graph into the records that workers read. The loader makes an image and copies it to device memory.
#pragma once

#include <vector>

#include "../../runtime/records/entry.hpp"
#include "../plan/graph.hpp"
#include "../plan/schedule_image.hpp"

namespace flywheel::detail {

/// Records and edges of one graph in the form that workers read. Indices of edges and records start at 0; the loader
/// adds the graph's place in the arenas.
struct GraphImage {
  std::vector<TaskRecord> records;
  std::vector<Edge> edges;  // the successors of all tasks, then the roots
  std::vector<std::uint64_t> counters;
  std::vector<Phase> phases;
  ScheduleImage schedule;  // of a compiled graph
  ExecRecord exec{};
  RunConstants run{};  // the same for all runs of the graph
};

/// The image of a dynamic or phased graph. Throws GraphError for a cycle, an unknown task type, an empty graph, and for
/// gangs or placed tasks, which need a compiled graph.
GraphImage make_image(const Graph& graph, const KernelEntry& entry);
/// The image of a compiled graph for `workers` workers. Throws GraphError like make_schedule(), and what
/// check_operands() throws.
GraphImage compile_image(const Graph& graph, const KernelEntry& entry, std::uint32_t workers, const Compiled& how);
/// The last step of compile_image(): the image of a plan. It proves the plan with validate_schedule() first, which
/// throws GraphError.
GraphImage image_of_plan(const SchedulePlan& plan, const Graph& graph, const KernelEntry& entry);

}  // namespace flywheel::detail
