#include "apps/llama/portable/start.hpp"

#include "apps/llama/decode/fill_random.cuh"
#include "apps/llama/portable/attention.cuh"
#include "apps/llama/portable/projections.cuh"
#include "apps/llama/portable/sample.cuh"

namespace llama {

Runtime start_portable_runtime(const Options& options) {
  return start<Embed, ProjectNormed, ProjectResidual, GateUp, Attend, Join, ProjectLogits, Sample, FillRandom>(options);
}

}  // namespace llama
