#include "apps/llama/checkpoint/shapes.hpp"

#include <algorithm>
#include <array>

namespace llama {
namespace {

/// What differs between the models of a family.
struct Sizes {
  int hidden, intermediate, layers, heads, head_dim;
  bool tied;
};

Config config_of(const Sizes& sizes) {
  Config config;
  config.hidden_size = sizes.hidden;
  config.intermediate_size = sizes.intermediate;
  config.num_hidden_layers = sizes.layers;
  config.num_attention_heads = sizes.heads;
  config.num_key_value_heads = 8;
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

const auto& shapes() {
  static const std::array all{
      Shape{"llama-3.2-1b", llama3({2048, 8192, 16, 32, 64, true}, 32)},
      Shape{"llama-3.2-3b", llama3({3072, 8192, 28, 24, 128, true}, 32)},
      Shape{"llama-3.1-8b", llama3({4096, 14336, 32, 32, 128, false}, 8)},
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
  return attention + mlp + norms;
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
