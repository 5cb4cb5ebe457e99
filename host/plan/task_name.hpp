// The name of a task in messages and traces.
#pragma once

#include "graph.hpp"

namespace flywheel::detail {

/// "task 3 (Divide)" or, with a stage, "task 3 (Divide, stage qkv)".
inline std::string task_text(std::uint32_t task, std::type_index type, const std::string& stage) {
  return "task " + std::to_string(task) + " (" + type_name(type) + (stage.empty() ? "" : ", stage " + stage) + ")";
}
/// "a single task (Divide)": one that was submitted without a graph.
inline std::string single_task_text(std::type_index type) { return "a single task (" + type_name(type) + ")"; }
/// The name of a task of a graph.
inline std::string name_of(const Graph& graph, std::uint32_t task) {
  const GraphNode node = graph.nodes()[task];
  return task_text(task, node.type, graph.stages()[node.stage]);
}

}  // namespace flywheel::detail
