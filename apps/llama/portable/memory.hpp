// What a decode step works in: activations, KV cache, tables and the state of the text.
#pragma once

#include <flywheel/flywheel.hpp>

#include <vector>

#include "apps/llama/checkpoint/config.hpp"
#include "apps/llama/portable/attention.cuh"

namespace llama {

using namespace flywheel;

/// One layer's cache and its owner.
struct CacheBuffer {
  Buffer<float> keys, values;
  KvCache cache{};
};

struct PortableMemory {
  /// `context`: positions to have room for; rounded up to a multiple of 32.
  PortableMemory(Runtime& runtime, const Config& config, int context);

  Buffer<float> x;               // [hidden]: the residual stream
  Buffer<float> qkv;             // [heads + 2 kv heads][head_dim]
  Buffer<float> attended;        // [heads][head_dim]
  Buffer<float> inner;           // [intermediate]
  Buffer<float> logits;          // [vocabulary]
  Buffer<std::uint32_t> prompt;  // [context]
  Buffer<std::uint32_t> ends;    // end-of-text tokens
  Buffer<float> rope;
  Buffer<StepState> state;  // one
  std::vector<CacheBuffer> caches;
};

}  // namespace llama
