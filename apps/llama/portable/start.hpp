// The runtime that knows this program's task types. A header without them: nvcc compiles them once, in
// start.cu.
#pragma once

#include <flywheel/flywheel.hpp>

namespace llama {

using namespace flywheel;

/// As flywheel::start(), for the tasks of a decode step.
Runtime start_portable_runtime(const Options& options = {});

}  // namespace llama
