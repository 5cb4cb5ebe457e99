#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace llama {

enum class Family : std::uint8_t { kLlama, kMistral, kQwen2, kQwen3 };
const char* describe(Family family);  // "Llama"

// Llama 3's stretching of the rotary frequencies for long contexts (the paper "The Llama 3 Herd of Models",
// and rope_type "llama3" in transformers): wavelengths above original_context / low_freq_factor are stretched
// by `factor`, those below original_context / high_freq_factor are kept, and those between are blended.
struct RopeScaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int original_context = 0;  // positions the model was first trained for
};

// The decode has a task for each head, which numbers heads in 16 bits.
inline constexpr int kMostHeads = 65535;

// The shape of a decoder, as its config.json gives it. Checked: all sizes are positive and at most 2^24, also
// query_size(); num_attention_heads is at most kMostHeads and a multiple of num_key_value_heads, head_dim is
// even; the matrices have fewer than 2^48 weights; numbers are positive floats, rope_theta and RopeScaling::factor 1 or
// more.
struct Config {
  Family family = Family::kLlama;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_hidden_layers = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  int max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000;
  std::optional<RopeScaling> rope_scaling;
  bool tie_word_embeddings = false;  // the output matrix is model.embed_tokens.weight
  std::optional<int> bos_token_id;
  std::vector<int> eos_token_ids;  // any of them ends a text; may be empty
  // Of each layer: the last so many positions, the step's own among them, are all that it attends to; 0: it attends to all.
  // Empty where no layer has a window.
  std::vector<int> windows;

  bool has_qk_norm() const { return family == Family::kQwen3; }   // RMSNorm on each head's query and key
  bool has_qkv_bias() const { return family == Family::kQwen2; }  // queries, keys and values have biases
  int qkv_size() const { return query_size() + 2 * key_value_size(); }
  int qkv_biases() const { return has_qkv_bias() ? qkv_size() : 0; }  // of a layer
  int window(std::size_t layer) const { return windows.empty() ? 0 : windows.at(layer); }
  int query_size() const { return num_attention_heads * head_dim; }
  int key_value_size() const { return num_key_value_heads * head_dim; }
};

// Reads `folder`/config.json (or the file itself), and end-of-text ids also from generation_config.json
// beside it. Throws ModelError naming the key and the remedy when a key is missing or of the wrong kind, or
// when the model needs what this program does not compute: another family, biases other than Qwen2's, another activation,
// another rope_type.
Config read_config(const std::filesystem::path& folder);

// The same for the text of a config.json; `file` is for messages.
Config parse_config(std::string_view json, const std::filesystem::path& file);

// Adds the end-of-text ids that the text of a generation_config.json gives.
void parse_generation_config(std::string_view json, const std::filesystem::path& file, Config& config);

}  // namespace llama
