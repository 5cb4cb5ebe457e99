// Checks the operands that tasks declare against the limits of pages and of their copies, before anything runs.
// Included by graph_image.cpp and operand_check.cpp.
#pragma once

#include "graph.hpp"

namespace flywheel::detail {

/// Checks operand_bytes(), dependents() and dependent_pages() of all tasks. Throws UsageError or CapacityError that
/// names the first task at fault.
void check_operands(const Graph& graph);

}  // namespace flywheel::detail
