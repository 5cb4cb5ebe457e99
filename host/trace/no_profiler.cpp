// Replaces gpu_profiler.cpp where the CUDA Toolkit has no headers of NVTX: there is no profiler then.
#include "profiler.hpp"

namespace flywheel::detail {

void open_profiler_domain() {}
std::uint64_t begin_range(void*, const char*) { return 0; }
void end_range(void*, std::uint64_t) {}

}  // namespace flywheel::detail
