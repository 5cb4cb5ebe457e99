// Who waits for whom in a graph, and whether they go round in a cycle.
#pragma once

#include <string>
#include <vector>

#include "graph.hpp"

namespace flywheel {

/// Graph-local indices of tasks, by task.
using TaskLists = std::vector<std::vector<std::uint32_t>>;

/// Each task's predecessors without duplicates.
TaskLists predecessors_of(const Graph& graph);
TaskLists successors_of(const TaskLists& predecessors);
/// The tasks of one cycle, "3 -> 5 -> 3", or empty if there is none.
std::string find_cycle(const Graph& graph);

}  // namespace flywheel
