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
};

/// `options` with a definite target, scratch memory for the tuned tasks, and a heap that need not grow: the weights as
/// loaded, and streams, caches and activations of `room`. Any window but kBestWindow stays.
Options tuned_options(const Config& config, const TunedRoom& room, Options options = {});

}  // namespace llama
