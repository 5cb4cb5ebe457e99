// From a Graph to the records that the device reads. The loader makes an image and gives it its place.
#pragma once

#include <vector>

#include "../plan/graph.hpp"
#include "../plan/schedule_image.hpp"
#include "../../runtime/records/entry.hpp"

namespace flywheel {

/// Records and edges of one graph in the form that the device reads, indices already relative to the arenas.
struct GraphImage {
  std::vector<TaskRecord> records;
  std::vector<Edge> edges;  // successors of all tasks, then the roots
  std::vector<std::uint64_t> counters;
  std::vector<Phase> phases;
  ScheduleImage schedule;  // compiled graphs
  ExecRecord exec{};
  RunConstants run{};  // what all runs of the graph have in common
};

/// Throws GraphError for a cycle, an unknown task type or an empty graph.
GraphImage make_image(const Graph& graph, const KernelEntry& entry);
/// The same for a graph that is compiled. Throws GraphError, see make_schedule(), and what check_operands() throws.
GraphImage compile_image(const Graph& graph, const KernelEntry& entry, std::uint32_t workers, const Compiled& how);
/// Its last step, the only way from a plan to what workers read. Throws GraphError for a plan that is not proven right.
GraphImage image_of_plan(const SchedulePlan& plan, const Graph& graph, const KernelEntry& entry);

}  // namespace flywheel
