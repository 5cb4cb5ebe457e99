// What a compiled decode works in: activations of all sequences, KV cache, tables, states.
#pragma once

#include <flywheel/flywheel.hpp>

#include <vector>

#include "apps/llama/fast/cache.cuh"
#include "apps/llama/fast/choose.cuh"
#include "apps/llama/fast/partials.cuh"
#include "apps/llama/files/config.hpp"

namespace flywheel::llama {

struct FastMemory {
  /// `context`: positions to have room for, of each of `sequences` (1, 2, 4 or 8) texts.
  FastMemory(Runtime& runtime, const Config& config, int context, int sequences);

  int context;    // a multiple of 16
  int sequences;
  int splits;     // parts of the context that attention is spread over
  Buffer<float> x;        // [sequences][hidden]: the residual stream
  Buffer<float> qkv;      // [sequences][heads + 2 kv heads][head_dim]
  Buffer<float> inner;    // [sequences][intermediate]: of the portable tasks
  Buffer<std::uint16_t> packed_x, packed_inner;  // what tiles are multiplied with, see pack()
  Buffer<float> squares;  // see NormInput
  Buffer<float> logits;   // [sequences][vocabulary]
  Buffer<float> parts;    // see Partials
  Buffer<std::uint64_t> best;  // [sequences][tasks of FastLogits]
  Buffer<std::uint32_t> mass;
  Buffer<std::uint32_t> prompt;  // [sequences][context]
  Buffer<std::uint32_t> ends;
  Buffer<float> rope;
  Buffer<StepState> states;
  Buffer<ChoiceMemory> choice;
  std::vector<Buffer<Half>> keys, values_cache;  // of each layer

  Partials partials(const Config& config) const;
  void provide_best(int tasks);

 private:
  Runtime& runtime_;
};

}  // namespace flywheel::llama
