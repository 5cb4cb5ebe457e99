// How to start a runtime for the tuned decode of a model.
#pragma once

#include "apps/llama/decode/options.hpp"
#include "apps/llama/tuned/prompt_way.hpp"

namespace llama {

/// What is to have room.
struct TunedRoom {
  int context = 0;  // positions
  int texts = 1;    // at once
  int decodes = 1;  // operand streams and caches beside the loaded weights
  PromptWay prompts = PromptWay::best;
  std::int64_t pool = 0;  // positions of the cache that all texts share; 0: `context` for each
};

/// The pool of a decode that has `free_bytes` of device memory: `context` for each text, or as many positions as that leaves,
/// but room for one text.
std::int64_t pool_within(const Config& config, TunedRoom room, std::size_t free_bytes);

/// `options` with a definite target, scratch memory for the tuned tasks, and a heap that need not grow: the weights as
/// loaded, and streams, caches and activations of `room`. Any window but kBestWindow stays.
Options tuned_options(const Config& config, const TunedRoom& room, Options options = {});

}  // namespace llama
