#include "loaded_graph.hpp"

#include "../plan/task_name.hpp"

namespace flywheel::detail {

std::string LoadedGraph::task_name(std::uint32_t local) const {
  const std::uint32_t at = local - first_local;
  if (at >= task_count || types.empty()) return "task " + std::to_string(local);
  if (single) return single_task_text(types[0]);
  return task_text(local, type_of(at), stages.empty() ? std::string() : stages[stage_of.at(at)]);
}

}  // namespace flywheel::detail

namespace flywheel {

std::uint32_t Executable::size() const { return graph_ ? graph_->task_count : 0; }

}  // namespace flywheel
