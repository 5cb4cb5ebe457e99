// The rows of a host-only build: none.
#include "apps/measure/limits.hpp"

namespace measure {

Gpu find_gpu() {
  return {.why_not = "no GPU: this build is host-only. Install the CUDA Toolkit and configure with -DFLYWHEEL_CUDA=ON"};
}

std::vector<Measurement> limit_rows(const Effort&) { return {}; }

}  // namespace measure
