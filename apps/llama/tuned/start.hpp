// The runtime that knows the tuned task types. A header without them: nvcc compiles them once, in start.cu.
#pragma once

#include <flywheel/flywheel.hpp>

namespace llama {

using namespace flywheel;

/// As flywheel::start(), for the tasks of a compiled decode.
Runtime start_tuned_runtime(const Options& options = {});

}  // namespace llama
