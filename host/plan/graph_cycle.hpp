// The cycles of a graph. Included by graph_links.cpp and schedule_order.cpp.
#pragma once

#include <string>

#include "graph.hpp"

namespace flywheel::detail {

/// The tasks of one cycle as text, "3 (Type) -> 5 (Type) -> 3 (Type)"; of a long one the first and the last; empty if there is
/// none.
std::string find_cycle(const Graph& graph);

}  // namespace flywheel::detail
