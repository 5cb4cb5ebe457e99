// The shapes of published models: their numbers of parameters, and what those do not show.
#include "apps/llama/checkpoint/safetensors.hpp"
#include "apps/llama/checkpoint/shapes.hpp"
#include "apps/llama/decode/rope.hpp"
#include "catch.hpp"
#include "llama_support.hpp"

namespace llama {
namespace {

/// config.json of meta-llama/Llama-3.2-1B, less what nothing here reads.
constexpr const char* kLlama = R"({
  "model_type": "llama", "hidden_act": "silu", "attention_bias": false, "mlp_bias": false,
  "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192,
  "max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true, "vocab_size": 128256,
  "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                   "original_max_position_embeddings": 8192, "rope_type": "llama3"}})";

/// config.json of meta-llama/Llama-3.1-8B, likewise; it has no head_dim.
constexpr const char* kLlama8B = R"({
  "model_type": "llama", "hidden_act": "silu", "attention_bias": false, "mlp_bias": false,
  "bos_token_id": 128000, "eos_token_id": 128001, "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false, "vocab_size": 128256,
  "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 8192, "rope_type": "llama3"}})";

/// config.json of Qwen/Qwen3-4B, likewise.
constexpr const char* kQwen3 = R"({
  "model_type": "qwen3", "hidden_act": "silu", "attention_bias": false, "use_sliding_window": false,
  "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_size": 2560, "intermediate_size": 9728,
  "max_position_embeddings": 40960, "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "tie_word_embeddings": true,
  "vocab_size": 151936})";

/// config.json of mistralai/Mistral-7B-v0.1, likewise; that of v0.3 has a vocab_size of 32768, a rope_theta of 1e6 and null
/// for the window.
constexpr const char* kMistral = R"({
  "model_type": "mistral", "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2, "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
  "tie_word_embeddings": false, "vocab_size": 32000})";

/// config.json of Qwen/Qwen2.5-0.5B, likewise.
constexpr const char* kQwen2 = R"({
  "model_type": "qwen2", "hidden_act": "silu", "bos_token_id": 151643, "eos_token_id": 151643, "hidden_size": 896,
  "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24, "num_attention_heads": 14,
  "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "sliding_window": 32768, "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936})";

const Config& shape(std::string_view name) {
  const Config* found = find_shape(name);
  REQUIRE(found);
  return *found;
}

void check_same(const Config& a, const Config& b) {
  CHECK(a.family == b.family);
  CHECK(a.hidden_size == b.hidden_size);
  CHECK(a.intermediate_size == b.intermediate_size);
  CHECK(a.num_hidden_layers == b.num_hidden_layers);
  CHECK(a.num_attention_heads == b.num_attention_heads);
  CHECK(a.num_key_value_heads == b.num_key_value_heads);
  CHECK(a.head_dim == b.head_dim);
  CHECK(a.vocab_size == b.vocab_size);
  CHECK(a.max_position_embeddings == b.max_position_embeddings);
  CHECK(a.rms_norm_eps == b.rms_norm_eps);
  CHECK(rope_table(a, 64) == rope_table(b, 64));
  CHECK(a.tie_word_embeddings == b.tie_word_embeddings);
  CHECK(a.bos_token_id == b.bos_token_id);
  CHECK(a.eos_token_ids == b.eos_token_ids);
  CHECK(a.windows == b.windows);
}

std::int64_t elements_in(const std::filesystem::path& folder) {
  const SafeTensors file = SafeTensors::open(folder);
  std::size_t count = 0;
  for (const std::string& name : file.names()) count += file.at(name).count();
  return static_cast<std::int64_t>(count);
}

TEST_CASE("shapes have as many parameters as the published models") {
  CHECK(parameter_count(shape("llama-3.2-1b")) == 1'235'814'400);
  CHECK(parameter_count(shape("llama-3.2-3b")) == 3'212'749'824);
  CHECK(parameter_count(shape("llama-3.1-8b")) == 8'030'261'248);
  CHECK(parameter_count(shape("mistral-7b-v0.1")) == 7'241'732'096);
  CHECK(parameter_count(shape("mistral-7b-v0.3")) == 7'248'023'552);
  CHECK(parameter_count(shape("qwen2.5-0.5b")) == 494'032'768);
  CHECK(parameter_count(shape("qwen2.5-1.5b")) == 1'543'714'304);
  CHECK(parameter_count(shape("qwen2.5-7b")) == 7'615'616'512);
  CHECK(parameter_count(shape("qwen3-0.6b")) == 596'049'920);
  CHECK(parameter_count(shape("qwen3-1.7b")) == 1'720'574'976);
  CHECK(parameter_count(shape("qwen3-4b")) == 4'022'468'096);
  CHECK(parameter_count(shape("qwen3-8b")) == 8'190'735'360);
}

TEST_CASE("the number of parameters is that of the model's file") {
  const std::filesystem::path folder =
      GENERATE("apps/llama/model", "tests/apps/data/families/llama3", "tests/apps/data/families/llama3_tied",
               "tests/apps/data/families/mistral", "tests/apps/data/families/qwen2", "tests/apps/data/families/qwen2_window",
               "tests/apps/data/families/qwen3", "tests/apps/data/families/qwen3_untied");
  INFO(folder);
  CHECK(parameter_count(read_config(folder)) == elements_in(folder));
}

TEST_CASE("shapes are what the published config.json says") {
  check_same(shape("llama-3.2-1b"), parse_config(kLlama, "config.json"));
  check_same(shape("llama-3.1-8b"), parse_config(kLlama8B, "config.json"));
  check_same(shape("mistral-7b-v0.1"), parse_config(kMistral, "config.json"));
  check_same(shape("qwen2.5-0.5b"), parse_config(kQwen2, "config.json"));
  check_same(shape("qwen3-4b"), parse_config(kQwen3, "config.json"));
}

TEST_CASE("shapes of a family differ in sizes and stretching only") {
  CHECK(shape("llama-3.2-3b").rope_scaling->factor == 32);
  CHECK(shape("llama-3.2-3b").num_attention_heads == 24);
  CHECK(shape("llama-3.2-3b").head_dim == 128);
  CHECK(shape("qwen3-0.6b").num_attention_heads == 16);
  CHECK(shape("qwen3-1.7b").num_attention_heads == 16);
  CHECK(shape("qwen3-8b").num_attention_heads == 32);
  for (const std::string_view name : {"qwen3-0.6b", "qwen3-1.7b", "qwen3-8b"}) {
    INFO(name);
    CHECK(shape(name).has_qk_norm());
    CHECK(shape(name).head_dim == 128);
    CHECK(shape(name).tie_word_embeddings == (name != "qwen3-8b"));
    CHECK_FALSE(shape(name).rope_scaling);
  }
}

TEST_CASE("shapes of Mistral and Qwen2.5: windows, biases, heads") {
  CHECK(shape("mistral-7b-v0.1").windows == std::vector<int>(32, 4096));
  CHECK(shape("mistral-7b-v0.3").windows.empty());
  CHECK(shape("mistral-7b-v0.3").rope_theta == 1e6);
  CHECK_FALSE(shape("mistral-7b-v0.3").has_qkv_bias());
  for (const std::string_view name : {"qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-7b"}) {
    INFO(name);
    CHECK(shape(name).has_qkv_bias());
    CHECK_FALSE(shape(name).has_qk_norm());
    CHECK(shape(name).head_dim * shape(name).num_attention_heads == shape(name).hidden_size);
  }
}

TEST_CASE("every listed name is found, and no other") {
  const std::vector<std::string_view> names = shape_names();
  CHECK(names == std::vector<std::string_view>{"llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "mistral-7b-v0.1",
                                               "mistral-7b-v0.3", "qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-7b", "qwen3-0.6b",
                                               "qwen3-1.7b", "qwen3-4b", "qwen3-8b"});
  for (const std::string_view name : names) CHECK(find_shape(name));
  for (const std::string_view name : {"", "llama", "llama-3.2-1b ", "Qwen3-4B", "qwen3-14b"})
    CHECK(find_shape(name) == nullptr);
}

}  // namespace
}  // namespace llama
