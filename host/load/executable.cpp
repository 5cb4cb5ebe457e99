#include "host/load/executable.hpp"

#include "host/plan/graph.hpp"

namespace flywheel {

std::string LoadedGraph::task_name(std::uint32_t local) const {
  const std::string number = "task " + std::to_string(local);
  return local < types.size() ? number + " (" + type_name(types[local]) + ")" : number;
}

}  // namespace flywheel
