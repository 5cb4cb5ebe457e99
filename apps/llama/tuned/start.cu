#include "apps/llama/tuned/start.hpp"

#include "apps/llama/decode/fill_random.cuh"
#include "apps/llama/tuned/attend.cuh"
#include "apps/llama/tuned/choose.cuh"
#include "apps/llama/tuned/gate.cuh"
#include "apps/llama/tuned/prefill_attend.cuh"
#include "apps/llama/tuned/prefill_norm.cuh"
#include "apps/llama/tuned/prefill_turn.cuh"
#include "apps/llama/tuned/project.cuh"
#include "apps/llama/tuned/prompt.cuh"
#include "apps/llama/tuned/wide_tasks.cuh"

namespace llama {

Runtime start_tuned_runtime(const Options& options) {
  return start<TunedEmbed, TunedProject, TunedProjectBiased, TunedAttend, TunedAttendWindow, TunedGateUp, TunedResidual,
               TunedLogits, TunedChoose, TunedAppend, TunedAttendCached, TunedNextChunk, WideEmbed, WideAttend, WideChoose,
               PrefillEmbed, PrefillNorm, PrefillGemm, PrefillTurn, PrefillAttend, PrefillTail, PrefillChoose, FillRandom>(
      options);
}

}  // namespace llama
