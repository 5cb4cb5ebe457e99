#include <string>

#include "apps/llama/checkpoint/config.hpp"
#include "tests/apps/llama_support.hpp"
#include "tests/catch.hpp"

using namespace llama;
using Json = nlohmann::json;

namespace {

Json small_llama() {
  return {{"model_type", "llama"},    {"hidden_size", 64},        {"intermediate_size", 128}, {"num_hidden_layers", 2},
          {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"vocab_size", 100},        {"max_position_embeddings", 512},
          {"rms_norm_eps", 1e-5}};
}

Json small_qwen3() {
  Json json = small_llama();
  json.update({{"model_type", "qwen3"}, {"head_dim", 32}});
  return json;
}

Json small_mistral() {
  Json json = small_llama();
  json.update({{"model_type", "mistral"}, {"sliding_window", nullptr}});
  return json;
}

Json small_qwen2() {
  Json json = small_llama();
  json.update({{"model_type", "qwen2"}, {"num_hidden_layers", 4}});
  return json;
}

// Llama 3.1 as its config.json has it.
const Json kLlama3Scaling = {{"factor", 8.0},
                             {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0},
                             {"rope_type", "llama3"},
                             {"original_max_position_embeddings", 8192}};

Config parse(const Json& json) { return parse_config(json.dump(), "config.json"); }

// The message when `key` has `value` instead; null takes the key away.
std::string error_with(Json json, const std::string& key, const Json& value) {
  json[key] = value;
  return model_error_of([&] { parse(json); });
}

}  // namespace

TEST_CASE("a small Llama is read, with what its family leaves out") {
  const Config config = parse(small_llama());
  CHECK(config.family == Family::kLlama);
  CHECK_FALSE(config.has_qk_norm());
  CHECK(config.hidden_size == 64);
  CHECK(config.intermediate_size == 128);
  CHECK(config.num_hidden_layers == 2);
  CHECK(config.head_dim == 16);
  CHECK(config.query_size() == 64);
  CHECK(config.key_value_size() == 32);
  CHECK(config.vocab_size == 100);
  CHECK(config.max_position_embeddings == 512);
  CHECK(config.rms_norm_eps == 1e-5);
  CHECK(config.rope_theta == 10000);
  CHECK_FALSE(config.rope_scaling.has_value());
  CHECK_FALSE(config.tie_word_embeddings);
  CHECK_FALSE(config.bos_token_id.has_value());
  CHECK(config.eos_token_ids.empty());
}

TEST_CASE("without num_key_value_heads every head has its own key") {
  Json json = small_llama();
  json.erase("num_key_value_heads");
  CHECK(parse(json).num_key_value_heads == 4);
}

TEST_CASE("a Qwen3 has norms on queries and keys and a head size of its own") {
  const Config config = parse(small_qwen3());
  CHECK(config.has_qk_norm());
  CHECK(config.query_size() == 128);
  CHECK(mentions(error_with(small_qwen3(), "head_dim", nullptr), {"\"head_dim\"", "missing"}));
}

TEST_CASE("a Qwen2 has biases, and heads of a size of their own if it says so") {
  Json json = small_qwen2();
  Config config = parse(json);
  CHECK(config.family == Family::kQwen2);
  CHECK(config.has_qkv_bias());
  CHECK_FALSE(config.has_qk_norm());
  CHECK(config.head_dim == 16);
  CHECK(config.qkv_size() == 128);
  CHECK(config.qkv_biases() == 128);
  CHECK(config.windows.empty());
  json["head_dim"] = 80;
  CHECK(parse(json).query_size() == 320);
  CHECK(mentions(error_with(small_qwen2(), "num_key_value_heads", nullptr), {"\"num_key_value_heads\"", "missing"}));
  CHECK(parse(small_llama()).qkv_biases() == 0);
  CHECK(parse(small_qwen3()).qkv_biases() == 0);
}

TEST_CASE("the layers of a Mistral have a window, of 4096 positions unless it says otherwise") {
  Json json = small_mistral();
  CHECK(parse(json).family == Family::kMistral);
  CHECK(parse(json).windows.empty());
  CHECK(parse(json).window(1) == 0);
  json["sliding_window"] = 24;
  CHECK(parse(json).windows == std::vector<int>{24, 24});
  CHECK(parse(json).window(1) == 24);
  json.erase("sliding_window");
  CHECK(parse(json).window(1) == 4096);
  json["head_dim"] = 128;
  CHECK(parse(json).query_size() == 512);
  CHECK(mentions(error_with(small_mistral(), "sliding_window", 0), {"sliding_window", "integer from 1"}));
}

TEST_CASE("a model with windows has no more layers than there may be numbers for") {
  Json json = small_mistral();
  json["sliding_window"] = 24;
  CHECK(mentions(error_with(json, "num_hidden_layers", 65537), {"num_hidden_layers", "65537", "at most 65536 layers"}));
  json["num_hidden_layers"] = 65536;
  CHECK(parse(json).windows.size() == 65536);
}

TEST_CASE("of a Qwen with windows, the layers from max_window_layers on have one, or those that layer_types lists") {
  for (Json json : {small_qwen2(), small_qwen3()}) {
    json.update({{"num_hidden_layers", 4}, {"use_sliding_window", true}, {"sliding_window", 40}, {"max_window_layers", 3}});
    CHECK(parse(json).windows == std::vector<int>{0, 0, 0, 40});
    json["max_window_layers"] = 28;
    CHECK(parse(json).windows == std::vector<int>(4, 0));
    json["layer_types"] = {"sliding_attention", "full_attention", "full_attention", "sliding_attention"};
    CHECK(parse(json).windows == std::vector<int>{40, 0, 0, 40});
    json["use_sliding_window"] = false;
    CHECK(parse(json).windows.empty());
    json["use_sliding_window"] = true;
    json["sliding_window"] = nullptr;
    CHECK(parse(json).windows.empty());
    json["sliding_window"] = 40;
    CHECK(mentions(error_with(json, "layer_types", {"full_attention"}), {"layer_types", "1 entries", "num_hidden_layers"}));
    CHECK(mentions(error_with(json, "layer_types", {"chunked_attention", "", "", ""}), {"layer_types", "chunked_attention"}));
  }
}

TEST_CASE("rope_theta is found where either release of transformers puts it") {
  Json old_style = small_llama();
  old_style["rope_theta"] = 500000.0;
  old_style["rope_scaling"] = nullptr;
  CHECK(parse(old_style).rope_theta == 500000);
  Json new_style = small_llama();
  new_style["rope_parameters"] = {{"rope_theta", 1e6}, {"rope_type", "default"}};
  CHECK(parse(new_style).rope_theta == 1e6);
}

TEST_CASE("Llama 3's scaling is read from either place") {
  Json old_style = small_llama();
  old_style["rope_scaling"] = kLlama3Scaling;
  Json new_style = small_llama();
  new_style["rope_parameters"] = kLlama3Scaling;
  new_style["rope_parameters"]["rope_theta"] = 500000.0;
  for (const Json& json : {old_style, new_style}) {
    const Config config = parse(json);
    REQUIRE(config.rope_scaling.has_value());
    CHECK(config.rope_scaling->factor == 8);
    CHECK(config.rope_scaling->low_freq_factor == 1);
    CHECK(config.rope_scaling->high_freq_factor == 4);
    CHECK(config.rope_scaling->original_context == 8192);
  }
}

TEST_CASE("another rope is refused") {
  const auto error_of = [](const Json& scaling) { return error_with(small_llama(), "rope_scaling", scaling); };
  CHECK(mentions(error_of({{"rope_type", "yarn"}, {"factor", 4.0}}), {"rope_scaling", "yarn", "llama3"}));
  CHECK(mentions(error_of({{"type", "linear"}, {"factor", 4.0}}), {"linear"}));
  Json incomplete = kLlama3Scaling;
  incomplete.erase("low_freq_factor");
  CHECK(mentions(error_of(incomplete), {"rope_scaling.low_freq_factor", "missing"}));
  Json swapped = kLlama3Scaling;
  swapped["high_freq_factor"] = 0.5;
  CHECK(mentions(error_of(swapped), {"high_freq_factor", "above low_freq_factor"}));
  const Json partial = {{"rope_theta", 1e4}, {"partial_rotary_factor", 0.5}};
  CHECK(mentions(error_with(small_llama(), "rope_parameters", partial), {"partial_rotary_factor", "not 1"}));
  CHECK(mentions(error_with(small_llama(), "partial_rotary_factor", 0.5), {"partial_rotary_factor", "not 1"}));
  CHECK(error_with(small_llama(), "partial_rotary_factor", 1.0).empty());
}

TEST_CASE("each key that must be there is named when it is not") {
  for (const char* key : {"model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "vocab_size", "max_position_embeddings", "rms_norm_eps"}) {
    CHECK(mentions(error_with(small_llama(), key, nullptr), {"config.json", key, "is missing", "add the key"}));
  }
}

TEST_CASE("values that cannot be are refused") {
  const auto error_of = [](const char* key, const Json& value) { return error_with(small_llama(), key, value); };
  CHECK(mentions(error_of("hidden_size", 0), {"hidden_size", "integer from 1"}));
  CHECK(mentions(error_of("hidden_size", "64"), {"hidden_size", "integer"}));
  CHECK(mentions(error_of("hidden_size", 64.5), {"hidden_size", "integer"}));
  CHECK(mentions(error_of("vocab_size", 1e30), {"vocab_size", "integer"}));
  CHECK(mentions(error_of("num_key_value_heads", 3), {"num_key_value_heads", "divide"}));
  CHECK(mentions(error_of("hidden_size", 66), {"hidden_size", "head_dim"}));
  CHECK(mentions(error_of("head_dim", 15), {"head_dim", "odd"}));
  CHECK(mentions(error_of("head_dim", 1 << 24), {"head_dim", "all heads together", "16777216 values"}));
  CHECK(mentions(error_of("rms_norm_eps", -1), {"rms_norm_eps", "positive"}));
  CHECK(mentions(error_of("tie_word_embeddings", 1), {"tie_word_embeddings", "true or false"}));
}

TEST_CASE("numbers that no float holds are refused, and frequencies without bound") {
  for (const double eps : {0., 1e-300, 1e300}) {
    CHECK(mentions(error_with(small_llama(), "rms_norm_eps", eps), {"rms_norm_eps", "positive", "float"}));
  }
  for (const double theta : {-1., 1e-300, 0.5, 1e300}) {
    CHECK(mentions(error_with(small_llama(), "rope_theta", theta), {"rope_theta", "1 or more"}));
  }
  CHECK(error_with(small_llama(), "rope_theta", 1).empty());
  Json scaling = kLlama3Scaling;
  scaling["factor"] = 1e-320;
  CHECK(mentions(error_with(small_llama(), "rope_scaling", scaling), {"rope_scaling.factor", "1 or more"}));
}

TEST_CASE("more heads than a task can number are refused, with the most there may be") {
  Json json = small_llama();
  json.update({{"hidden_size", 8}, {"head_dim", 8}});
  for (const int heads : {65536, 65537, 1 << 20}) {
    for (const int kv_heads : {1, heads}) {
      json["num_key_value_heads"] = kv_heads;
      const std::string error = error_with(json, "num_attention_heads", heads);
      INFO(error);
      CHECK(mentions(error, {"config.json", "\"num_attention_heads\"", std::to_string(heads), "65535", "use the config.json"}));
    }
  }
  json["num_key_value_heads"] = 1;
  CHECK(error_with(json, "num_attention_heads", 65535).empty());
}

TEST_CASE("a model of more weights than can be counted is refused") {
  Json json = small_llama();
  json.update({{"hidden_size", 1 << 20}, {"intermediate_size", 1 << 24}});
  const std::string error = error_with(json, "num_hidden_layers", 1 << 24);
  CHECK(mentions(error, {"num_hidden_layers", "16777216", "2^48 weights", "use the config.json"}));
  CHECK(error_with(small_llama(), "num_hidden_layers", 200).empty());
}

TEST_CASE("a model that needs other arithmetic is refused") {
  const auto error_of = [](const char* key, const Json& value) { return error_with(small_llama(), key, value); };
  CHECK(mentions(error_of("model_type", "gpt2"), {"model_type", "gpt2", "Qwen3"}));
  CHECK(mentions(error_of("attention_bias", true), {"attention_bias"}));
  CHECK(mentions(error_of("mlp_bias", true), {"mlp_bias"}));
  CHECK(mentions(error_of("hidden_act", "gelu"), {"hidden_act", "gelu", "silu"}));
  CHECK(mentions(error_of("quantization_config", {{"bits", 4}}), {"quantization_config", "unquantised"}));
  CHECK(mentions(error_of("use_sliding_window", true), {"use_sliding_window"}));
}

TEST_CASE("end-of-text ids are gathered from both files") {
  const TempFolder folder;
  Json json = small_llama();
  json.update({{"bos_token_id", 1}, {"eos_token_id", 2}});
  folder.write("config.json", json.dump());
  CHECK(read_config(folder.path()).eos_token_ids == std::vector<int>{2});
  folder.write("generation_config.json", R"({"eos_token_id":[2,7]})");
  const Config config = read_config(folder.path());
  CHECK(config.eos_token_ids == std::vector<int>{2, 7});
  CHECK(config.bos_token_id == 1);
}

TEST_CASE("a folder without a readable config.json is refused") {
  const TempFolder folder;
  CHECK(mentions(model_error_of([&] { read_config(folder.path()); }), {"config.json", "missing", "Hugging Face"}));
  folder.write("config.json", R"({"model_type": "llama",)");
  CHECK(mentions(model_error_of([&] { read_config(folder.path()); }), {"config.json", "no valid JSON"}));
}

TEST_CASE("the shipped model's config is read") {
  const Config config = read_config(kModelFolder);
  CHECK(config.family == Family::kLlama);
  CHECK(config.hidden_size == 256);
  CHECK(config.num_attention_heads == 8);
  CHECK(config.num_key_value_heads == 2);
  CHECK(config.head_dim == 32);
  CHECK(config.tie_word_embeddings);
  CHECK(config.bos_token_id == 0);
  CHECK(config.eos_token_ids == std::vector<int>{0});
}
