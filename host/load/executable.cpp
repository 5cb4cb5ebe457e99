#include "executable.hpp"

#include "../plan/task_name.hpp"

namespace flywheel::detail {

std::string LoadedGraph::task_name(std::uint32_t local) const {
  if (local >= types.size()) return "task " + std::to_string(local);
  return task_text(local, types[local], stages[stage_of[local]]);
}

}  // namespace flywheel::detail
