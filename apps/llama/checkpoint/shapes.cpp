#include "apps/llama/checkpoint/shapes.hpp"

#include <algorithm>
#include <array>

namespace llama {
namespace {

/// What differs between the models of a family.
struct Sizes {
  int hidden, intermediate, layers, heads, head_dim;
  bool tied;
  int kv_heads = 8;
  int vocabulary = 0;  // 0: the family's
};

Config config_of(const Sizes& sizes) {
  Config config;
  config.hidden_size = sizes.hidden;
  config.intermediate_size = sizes.intermediate;
  config.num_hidden_layers = sizes.layers;
  config.num_attention_heads = sizes.heads;
  config.num_key_value_heads = sizes.kv_heads;
  config.head_dim = sizes.head_dim;
  config.tie_word_embeddings = sizes.tied;
  return config;
}

/// Source: config.json of meta-llama/Llama-3.1-8B, Llama-3.2-1B and Llama-3.2-3B. Their Instruct models end
/// texts with 128008 and 128009 as well.
Config llama3(const Sizes& sizes, double stretch) {
  Config config = config_of(sizes);
  config.family = Family::kLlama;
  config.vocab_size = 128256;
  config.max_position_embeddings = 131072;
  config.rms_norm_eps = 1e-5;
  config.rope_theta = 500000;
  config.rope_scaling = RopeScaling{stretch, 1, 4, 8192};
  config.bos_token_id = 128000;
  config.eos_token_ids = {128001};
  return config;
}

/// Source: config.json of Qwen/Qwen3-0.6B, 1.7B, 4B and 8B (of April 2025; the 2507 releases of the 4B have
/// another rope_theta and context). Their generation_config.json adds 151643 to what ends texts.
Config qwen3(const Sizes& sizes) {
  Config config = config_of(sizes);
  config.family = Family::kQwen3;
  config.vocab_size = 151936;
  config.max_position_embeddings = 40960;
  config.rms_norm_eps = 1e-6;
  config.rope_theta = 1000000;
  config.bos_token_id = 151643;
  config.eos_token_ids = {151645};
  return config;
}

/// Source: config.json of mistralai/Mistral-7B-v0.1, which has a window of 4096, and Mistral-7B-v0.3, which has none.
Config mistral(const Sizes& sizes, double theta, int window) {
  Config config = config_of(sizes);
  config.family = Family::kMistral;
  config.vocab_size = sizes.vocabulary;
  config.max_position_embeddings = 32768;
  config.rms_norm_eps = 1e-5;
  config.rope_theta = theta;
  config.bos_token_id = 1;
  config.eos_token_ids = {2};
  if (window > 0) config.windows.assign(static_cast<std::size_t>(sizes.layers), window);
  return config;
}

/// Source: config.json of Qwen/Qwen2.5-0.5B, 1.5B and 7B. Their Instruct models end texts with 151645, too, and were made for
/// 32768 positions.
Config qwen2(const Sizes& sizes, int context) {
  Config config = config_of(sizes);
  config.family = Family::kQwen2;
  config.vocab_size = sizes.vocabulary;
  config.max_position_embeddings = context;
  config.rms_norm_eps = 1e-6;
  config.rope_theta = 1000000;
  config.bos_token_id = 151643;
  config.eos_token_ids = {151643};
  return config;
}

const auto& shapes() {
  static const std::array all{
      Shape{"llama-3.2-1b", llama3({2048, 8192, 16, 32, 64, true}, 32)},
      Shape{"llama-3.2-3b", llama3({3072, 8192, 28, 24, 128, true}, 32)},
      Shape{"llama-3.1-8b", llama3({4096, 14336, 32, 32, 128, false}, 8)},
      Shape{"mistral-7b-v0.1", mistral({4096, 14336, 32, 32, 128, false, 8, 32000}, 10000, 4096)},
      Shape{"mistral-7b-v0.3", mistral({4096, 14336, 32, 32, 128, false, 8, 32768}, 1000000, 0)},
      Shape{"qwen2.5-0.5b", qwen2({896, 4864, 24, 14, 64, true, 2, 151936}, 32768)},
      Shape{"qwen2.5-1.5b", qwen2({1536, 8960, 28, 12, 128, true, 2, 151936}, 131072)},
      Shape{"qwen2.5-7b", qwen2({3584, 18944, 28, 28, 128, false, 4, 152064}, 131072)},
      Shape{"qwen3-0.6b", qwen3({1024, 3072, 28, 16, 128, true})},
      Shape{"qwen3-1.7b", qwen3({2048, 6144, 28, 16, 128, true})},
      Shape{"qwen3-4b", qwen3({2560, 9728, 36, 32, 128, true})},
      Shape{"qwen3-8b", qwen3({4096, 12288, 36, 32, 128, false})},
  };
  return all;
}

std::int64_t layer_parameters(const Config& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t attention = 2 * hidden * (config.query_size() + config.key_value_size());
  const std::int64_t mlp = 3 * hidden * config.intermediate_size;
  const std::int64_t norms = 2 * hidden + (config.has_qk_norm() ? 2 * config.head_dim : 0);
  return attention + mlp + norms + config.qkv_biases();
}

}  // namespace

const Config* find_shape(std::string_view name) {
  const auto found = std::ranges::find_if(shapes(), [&](const Shape& shape) { return name == shape.name; });
  return found == shapes().end() ? nullptr : &found->config;
}

std::vector<std::string_view> shape_names() {
  std::vector<std::string_view> names;
  for (const Shape& shape : shapes()) names.emplace_back(shape.name);
  return names;
}

std::int64_t parameter_count(const Config& config) {
  const std::int64_t embedding = std::int64_t{config.vocab_size} * config.hidden_size;
  const std::int64_t layers = config.num_hidden_layers * layer_parameters(config);
  return (config.tie_word_embeddings ? 1 : 2) * embedding + layers + config.hidden_size;
}

}  // namespace llama
