#include "loaded_graph.hpp"

#include "../plan/task_name.hpp"

namespace flywheel::detail {

std::string LoadedGraph::task_name(std::uint32_t local) const {
  if (local >= task_count || types.empty()) return "task " + std::to_string(local);
  return task_text(local, type_of(local), stages[stage_of.at(local)]);
}

}  // namespace flywheel::detail

namespace flywheel {

std::uint32_t Executable::size() const { return graph_ ? graph_->task_count : 0; }

}  // namespace flywheel
