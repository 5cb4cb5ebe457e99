// What compiled steps work in: activations of all sequences; KV cache, tables, texts.
#pragma once

#include <flywheel/flywheel.hpp>

#include <vector>

#include "apps/llama/checkpoint/config.hpp"
#include "apps/llama/tuned/cache.cuh"
#include "apps/llama/tuned/partials.cuh"
#include "apps/llama/tuned/prompt.cuh"

namespace llama {

using namespace flywheel;

/// Query heads of one key and value head, for one task of attention.
struct HeadSlice {
  int first, count;
};
/// Those of a decode step. A task takes kHeadsTogether heads at once, more of them one after the other: so a key and value head
/// with more has several tasks, if all sequences' fit on so many workers.
std::vector<HeadSlice> head_slices(const Config& config, int workers, int sequences);

/// Activations of all sequences of a step: the texts of the decode, or the positions of a step that reads a prompt.
struct StepMemory {
  /// `context`: positions that attention is to have room for, of each of `sequences` (1, 2, 4, 8 or 16).
  StepMemory(Runtime& runtime, const Config& config, int context, int sequences);

  int sequences;
  int splits;  // parts of the context that attention is spread over
  // Stamped words, of each stage its own: see runtime/base/stamped.hpp. Stage 0 of the residual stream is the embedding, each
  // layer makes two more.
  int stages, squares_of_stage;
  Buffer<Stamped> x;               // [stages][sequences][hidden]: the residual stream
  Buffer<Stamped> packed_x;        // [stages]: what tiles are multiplied with, see PackedOutput
  Buffer<Stamped> squares;         // [stages][parts][sequences], see NormInput
  Buffer<Stamped> qkv;             // [layers][sequences][heads + 2 kv heads][head_dim]
  Buffer<Stamped> packed_results;  // [layers]: of attention
  Buffer<Stamped> packed_inner;    // [layers]
  Buffer<float> inner;             // [sequences][intermediate]: of the portable tasks
  Buffer<Stamped> parts;           // [layers]: see Partials
  Buffer<StepState> states;

  Partials partials(const Config& config, std::size_t layer) const;
};

struct TunedMemory : StepMemory {
  /// `room`: positions to have room for, of each of `sequences` texts, see sequences_for(). `beyond`: positions in the cache
  /// behind those, which steps that read a prompt may write.
  TunedMemory(Runtime& runtime, const Config& config, int room, int sequences, int beyond = 0);

  int positions;                    // as asked for
  int context;                      // with those beyond, a multiple of 16
  Buffer<float> logits;             // [sequences][vocabulary]
  Buffer<BestWords> best;           // of TunedLogits, see best_words()
  Buffer<std::int32_t> first_rows;  // of each task of TunedLogits, and where the last one ends
  Buffer<std::uint32_t> prompt;     // [sequences][context]
  Buffer<std::uint32_t> ends;
  Buffer<float> rope;
  Buffer<TunedText> texts;        // [sequences]
  Buffer<std::uint32_t> writing;  // one: see ChoiceMemory
  Buffer<ChoiceMemory> choice;
  std::vector<Buffer<Half>> keys, values_cache;  // of each layer

  TunedCache cache(std::size_t layer) const { return {keys[layer].data(), values_cache[layer].data()}; }
  void forget_values();                                      // in the cache, of all positions
  void provide_best(const std::vector<std::int32_t>& rows);  // first_rows

 private:
  Runtime& runtime_;
};

/// Of steps that read prompts into the caches of `texts`, which has room for some positions beyond its texts.
struct PromptMemory : StepMemory {
  /// `positions`: of a step (1, 2, 4 or 8).
  PromptMemory(Runtime& runtime, const Config& config, const TunedMemory& texts, int positions);

  Buffer<PromptChunk> chunks;  // of a run's passes, and one more

  /// Adds the chunks of a text's first `count` positions, all or one less: a pass takes longer than a step of the decode, so it
  /// is not made for a single one. Gives how many positions the chunks have.
  std::uint32_t add_chunks(std::vector<PromptChunk>& to, std::uint32_t text, std::size_t count) const;
};

}  // namespace llama
