// How the tuned decode reads prompts.
#pragma once

#include "apps/llama/checkpoint/config.hpp"

namespace llama {

enum class PromptWay {
  best,            // products on a GPU, for prompts that take longer in chunks; else chunks
  products,        // by matrix products, many positions at once; models that those do not compute, in chunks
  chunks,          // several positions in a pass, which has an operand stream of its own
  token_by_token,  // by the steps that write
};

/// Positions of a pass over a prompt: 2, 4 or 8, the fewer the more scratch memory their products would take from all tasks; 0
/// for token_by_token.
int prompt_positions(const Config& config, PromptWay way);

}  // namespace llama
