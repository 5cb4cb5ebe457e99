// One decode step of up to 16 texts as a graph to be compiled.
#pragma once

#include <vector>

#include "apps/llama/tuned/memory.hpp"
#include "apps/llama/tuned/streamed_weights.hpp"

namespace llama {

/// Tasks of one type that work side by side.
struct StageTasks {
  const char* name;
  std::vector<std::uint32_t> tasks;  // as Graph::add() numbered them: one after the other
};

/*  [ TunedProject qkv -> TunedAttend -> TunedResidual -> TunedGateUp -> TunedResidual ] -> TunedLogits -> TunedChoose
 *      a worker         a key head     a worker        a worker      a worker          a worker     a text
 *                       and part
 *
 *  The part in brackets once for each layer. TunedChoose leaves the next step's input, so passes of the graph write a
 *  text. Before the first, `embed` puts the first token's embedding in its place.  */
struct TunedGraph {
  Graph decode;
  Graph embed;
  std::vector<StageTasks> stages;  // of `decode`, in order: a stage may begin when all of the one before have ended
};

/// How many sequences a step has that writes so many texts: the next power of two. Throws RequestError for none and for
/// more than kMostWideTexts. Steps of more than kMostSequences are those of WideStep.
int sequences_for(int texts);

/// Throws RequestError for a model that has no tuned tasks: weights that are not bf16 or no finite
/// numbers, heads of a size or number that the tensor core kernels do not know, or windows of more than
/// AttendTask::kMostWindow positions in a longer context. Then the portable decode graph is what there is.
TunedGraph build_tuned_graph(const Runtime& runtime, const Config& config, const StreamedWeights& weights, TunedMemory& memory);
/// The same for stages that run one by one, a task in each of so many places: matrices are shared out evenly.
TunedGraph build_tuned_graph(int places, const Config& config, const StreamedWeights& weights, TunedMemory& memory);

/*  [ TunedProject qkv -> TunedAppend -> TunedAttendCached -> TunedResidual -> TunedGateUp -> TunedResidual ] -> TunedNextChunk
 *      a worker          a key head     a position,          a worker        a worker      a worker            a position
 *                                       key head and part
 *
 *  The part in brackets once for each layer; of the last one the first two stages. A pass reads a chunk of a text's prompt and
 *  leaves the next chunk's input; `embed` leaves the first one's. The passes are those of PromptMemory::chunks.  */
/// Reads prompts into the caches of `texts`, of a model that build_tuned_graph() takes.
TunedGraph build_prompt_graph(const Runtime& runtime, const Config& config, const StreamedWeights& weights,
                              const TunedMemory& texts, PromptMemory& memory);

/// Shared memory for block.scratch() that the tasks of steps with up to so many sequences need.
std::uint32_t tuned_scratch_bytes(const Config& config, bool on_gpu, int context, int sequences = kMostSequences);

}  // namespace llama
