// A model that is quick to compute, for tests that need no weights of their own.
#pragma once

#include "apps/llama/checkpoint/config.hpp"

namespace llama {

/// Each test says what it needs otherwise.
inline Config small_config() {
  Config config;
  config.hidden_size = 64;
  config.intermediate_size = 160;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 32;
  config.vocab_size = 300;
  config.max_position_embeddings = 512;
  config.tie_word_embeddings = true;
  config.eos_token_ids = {1};
  return config;
}

}  // namespace llama
