// What a compiled decode works in: activations of all sequences, KV cache, tables, states.
#pragma once

#include <flywheel/flywheel.hpp>

#include <vector>

#include "apps/llama/checkpoint/config.hpp"
#include "apps/llama/tuned/cache.cuh"
#include "apps/llama/tuned/choose.cuh"
#include "apps/llama/tuned/partials.cuh"

namespace llama {

using namespace flywheel;

struct TunedMemory {
  /// `room`: positions to have room for, of each of `count` (1, 2, 4 or 8) texts.
  TunedMemory(Runtime& runtime, const Config& config, int room, int count);

  int positions;  // as asked for
  int context;    // the same, but a multiple of 16
  int sequences;
  int splits;  // parts of the context that attention is spread over
  // Stamped words, of each stage its own: see runtime/base/stamped.hpp. Stage 0 of the residual stream is the embedding, each
  // layer makes two more.
  int stages, squares_of_stage;
  Buffer<Stamped> x;                // [stages][sequences][hidden]: the residual stream
  Buffer<Stamped> packed_x;         // [stages]: what tiles are multiplied with, see PackedOutput
  Buffer<Stamped> squares;          // [stages][parts][sequences], see NormInput
  Buffer<Stamped> qkv;              // [layers][sequences][heads + 2 kv heads][head_dim]
  Buffer<Stamped> packed_results;   // [layers]: of attention
  Buffer<Stamped> packed_inner;     // [layers]
  Buffer<float> inner;              // [sequences][intermediate]: of the portable tasks
  Buffer<float> logits;             // [sequences][vocabulary]
  Buffer<Stamped> parts;            // [layers]: see Partials
  Buffer<BestWords> best;           // of TunedLogits, see best_words()
  Buffer<std::int32_t> first_rows;  // of each task of TunedLogits, and where the last one ends
  Buffer<std::uint32_t> prompt;     // [sequences][context]
  Buffer<std::uint32_t> ends;
  Buffer<float> rope;
  Buffer<StepState> states;
  Buffer<TunedText> texts;        // [sequences]
  Buffer<std::uint32_t> writing;  // one: see ChoiceMemory
  Buffer<ChoiceMemory> choice;
  std::vector<Buffer<Half>> keys, values_cache;  // of each layer

  Partials partials(const Config& config, std::size_t layer) const;
  void forget_values();                                      // in the cache, of all positions
  void provide_best(const std::vector<std::int32_t>& rows);  // first_rows

 private:
  Runtime& runtime_;
};

}  // namespace llama
