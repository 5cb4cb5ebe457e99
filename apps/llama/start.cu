#include "apps/llama/start.hpp"

#include "apps/llama/bench/fill_random.cuh"
#include "apps/llama/tasks/attention.cuh"
#include "apps/llama/tasks/projections.cuh"
#include "apps/llama/tasks/sampling.cuh"

namespace flywheel::llama {

Runtime start_runtime(const Options& options) {
  return start<Embed, ProjectNormed, ProjectResidual, GateUp, Attend, Join, ProjectLogits, Sample,
               FillRandom>(options);
}

}  // namespace flywheel::llama
