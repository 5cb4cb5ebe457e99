// A task of a graph, as messages name it.
#pragma once

#include "host/plan/graph.hpp"

namespace flywheel {

/// "task 3 (Divide)".
inline std::string name_of(const Graph& graph, std::uint32_t task) {
  return "task " + std::to_string(task) + " (" + type_name(graph.nodes()[task].type) + ")";
}

}  // namespace flywheel
