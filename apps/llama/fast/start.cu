#include "apps/llama/fast/start.hpp"

#include "apps/llama/bench/fill_random.cuh"
#include "apps/llama/fast/attend.cuh"
#include "apps/llama/fast/choose.cuh"
#include "apps/llama/fast/gate.cuh"
#include "apps/llama/fast/project.cuh"

namespace flywheel::llama {

Runtime start_fast_runtime(const Options& options) {
  return start<FastEmbed, FastProject, FastAttend, FastGateUp, FastResidual, FastLogits, FastChoose,
               FillRandom>(options);
}

}  // namespace flywheel::llama
