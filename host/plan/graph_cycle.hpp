// The predecessors and successors of a graph's tasks, and its cycles. Included by graph_image.cpp and
// schedule_order.cpp.
#pragma once

#include <string>
#include <vector>

#include "graph.hpp"

namespace flywheel::detail {

/// A list of graph-local task indices for each task.
using TaskLists = std::vector<std::vector<std::uint32_t>>;

/// The predecessors of each task, without duplicates.
TaskLists predecessors_of(const Graph& graph);
/// The successors of each task.
TaskLists successors_of(const TaskLists& predecessors);
/// The tasks of one cycle as text, "3 (Type) -> 5 (Type) -> 3 (Type)"; empty if there is none.
std::string find_cycle(const Graph& graph);

}  // namespace flywheel::detail
