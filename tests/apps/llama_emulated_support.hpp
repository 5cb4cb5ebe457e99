// The tuned decode through the GPU's kernel, on an emulated GPU.
#pragma once

#include "support/emulated_engine.hpp"

#include "apps/llama/decode/fill_random.cuh"
#include "apps/llama/tuned/attend.cuh"
#include "apps/llama/tuned/choose.cuh"
#include "apps/llama/tuned/gate.cuh"
#include "apps/llama/tuned/graph.hpp"
#include "apps/llama/tuned/prefill_attend.cuh"
#include "apps/llama/tuned/prefill_norm.cuh"
#include "apps/llama/tuned/prefill_turn.cuh"
#include "apps/llama/tuned/project.cuh"
#include "apps/llama/tuned/prompt.cuh"
#include "apps/llama/tuned/wide_tasks.cuh"
#include "device/gemm/gemm.cuh"

namespace llama {

/// Makes the list of task types one that no other file has: where nvcc compiles start.cu, the kernel of that list is its.
struct NobodysTask {
  int nothing;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

inline Runtime emulated_runtime(const Config& config, int context, std::uint32_t pages, bool bulk, std::uint32_t workers = 3) {
  Options options;
  options.workers = workers;
  options.log_level = "error";
  options.operand_pages = pages;
  options.tuning.bulk_copies = bulk;
  options.start_timeout = std::chrono::seconds(60);  // of processors that others keep busy
  options.scratch_bytes = tuned_scratch_bytes(config, true, context);
  return flywheel::testing::start_emulated<
      TunedEmbed, TunedProject, TunedProjectBiased, TunedAttend, TunedAttendWindow, TunedGateUp, TunedResidual, TunedLogits,
      TunedChoose, TunedAppend, TunedAttendCached, TunedNextChunk, WideEmbed, WideAttend, WideChoose, PrefillEmbed, PrefillNorm,
      PrefillGemm, PrefillTurn, PrefillAttend, PrefillTail, PrefillChoose, FillRandom, NobodysTask>(options);
}

}  // namespace llama
