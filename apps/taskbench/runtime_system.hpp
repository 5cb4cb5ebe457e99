// The runtime's executions of a problem, in any runtime that has the task types PointTask and EarlyPointTask.
#pragma once

#include "apps/taskbench/system.hpp"

namespace taskbench {

/// `name`: one of runtime_names(). The runtime outlives the system. Errors: std::invalid_argument for another name.
std::unique_ptr<System> make_runtime_system(flywheel::Runtime& rt, const std::string& name, const Problem& problem);

}  // namespace taskbench
