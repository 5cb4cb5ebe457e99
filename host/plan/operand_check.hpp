// What a task says of its operands, held against what pages and their copies can do, before anything runs.
#pragma once

#include "graph.hpp"

namespace flywheel {

/// What the tasks of a compiled graph say of their operands: copies of pages can be made of it. Throws UsageError or
/// CapacityError that names the first task of which that is not so.
void check_operands(const Graph& graph);

}  // namespace flywheel
