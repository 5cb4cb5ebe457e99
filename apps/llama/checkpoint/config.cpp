#include "apps/llama/checkpoint/config.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "apps/llama/checkpoint/json_node.hpp"
#include "apps/llama/checkpoint/mapped_file.hpp"

namespace llama {
namespace {

constexpr int kLargestSize = 1 << 24;
constexpr int kMostWindowedLayers = 1 << 16;
constexpr double kMostWeights = 0x1p48;  // counts of weights and bytes are integers of 64 bits
constexpr const char* kOwnConfig = "use the config.json that came with the model";
constexpr const char* kOtherModel =
    "use a dense Llama 2/3-style, Mistral, Qwen2 or Qwen3 model, which are the ones computed here";

int size_at(const JsonNode& root, std::string_view key) { return static_cast<int>(root.at(key).integer(1, kLargestSize)); }

double from_float_range(const JsonNode& node, double low, const std::string& problem) {
  const double value = node.number();
  if (!(value >= low && value <= double{std::numeric_limits<float>::max()})) node.fail(problem, kOwnConfig);
  return value;
}

// The decode computes in float, where a smaller number is none.
double positive(const JsonNode& node) {
  return from_float_range(node, double{std::numeric_limits<float>::min()}, "should be positive, and fit a float");
}

// Below 1 the frequencies of the rotary embedding grow beyond all bounds, to angles that are no numbers.
double at_least_one(const JsonNode& node) { return from_float_range(node, 1, "should be 1 or more, and fit a float"); }

struct FamilyName {
  Family family;
  std::string_view type;  // in config.json
  const char* name;
};
constexpr std::array kFamilyNames{FamilyName{Family::kLlama, "llama", "Llama"},
                                  FamilyName{Family::kMistral, "mistral", "Mistral"},
                                  FamilyName{Family::kQwen2, "qwen2", "Qwen2"}, FamilyName{Family::kQwen3, "qwen3", "Qwen3"}};

Family read_family(const JsonNode& root) {
  const JsonNode type = root.at("model_type");
  for (const FamilyName& known : kFamilyNames)
    if (type.text() == known.type) return known.family;
  type.fail("is \"" + type.text() + "\", a family this program does not compute", kOtherModel);
}

void refuse_flag(const JsonNode& root, const char* key) {
  const auto flag = root.find(key);
  if (flag && flag->flag()) flag->fail("is true, which this program does not compute", kOtherModel);
}

// Features that would change the arithmetic. Absent or false is fine. Mistral and Qwen2 have no such flags: what biases they
// have is fixed (transformers 5, modeling_mistral.py and modeling_qwen2.py).
void refuse_features(const JsonNode& root, Family family) {
  if (family == Family::kLlama || family == Family::kQwen3) {
    for (const char* key : {"attention_bias", "mlp_bias"}) refuse_flag(root, key);
  }
  if (family == Family::kLlama) refuse_flag(root, "use_sliding_window");
  const auto activation = root.find("hidden_act");
  if (activation && activation->text() != "silu" && activation->text() != "swish") {
    activation->fail("is \"" + activation->text() + "\", not \"silu\"", kOtherModel);
  }
  if (const auto quantised = root.find("quantization_config")) {
    quantised->fail("is there: the weights are quantised", "use the model's unquantised (bf16) release");
  }
}

void check_head_size(const JsonNode& root, const Config& config) {
  const JsonNode node = root.at(root.find("head_dim") ? "head_dim" : "hidden_size");
  if (config.head_dim % 2 != 0) node.fail("gives an odd head size, which rotary embeddings cannot rotate", kOtherModel);
  if (config.head_dim > kLargestSize / config.num_attention_heads) {
    node.fail("gives all heads together more than " + std::to_string(kLargestSize) + " values", kOwnConfig);
  }
}

// Both kinds of heads: those of keys and values are no more than those of queries.
int query_heads(const JsonNode& root) {
  const int heads = size_at(root, "num_attention_heads");
  if (heads > kMostHeads) {
    root.at("num_attention_heads")
        .fail("is " + std::to_string(heads) + ", and this program computes at most " + std::to_string(kMostHeads) + " heads",
              kOwnConfig);
  }
  return heads;
}

void read_heads(const JsonNode& root, Config& config) {
  config.num_attention_heads = query_heads(root);
  const bool qwen3 = config.family == Family::kQwen3;
  const auto shared = root.find("num_key_value_heads");
  // Each family's own defaults when a key is absent: Llama derives them, the others have constants, which no
  // model relies on; but all save Qwen3 derive the size of heads.
  if (config.family != Family::kLlama || shared) {
    config.num_key_value_heads = size_at(root, "num_key_value_heads");
  } else {
    config.num_key_value_heads = config.num_attention_heads;
  }
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    shared->fail("does not divide num_attention_heads", kOwnConfig);
  }
  if (qwen3 || root.find("head_dim")) {
    config.head_dim = size_at(root, "head_dim");
  } else if (config.hidden_size % config.num_attention_heads == 0) {
    config.head_dim = config.hidden_size / config.num_attention_heads;
  } else {
    root.at("hidden_size").fail("is no multiple of num_attention_heads", "add the key \"head_dim\"");
  }
  check_head_size(root, config);
}

// In floating point, which no config overflows.
void check_weight_count(const JsonNode& root, const Config& config) {
  const double hidden = config.hidden_size;
  const double of_attention = 2. * config.query_size() + 2. * config.key_value_size();
  const double of_layer = hidden * (of_attention + 3. * config.intermediate_size);
  if (config.num_hidden_layers * of_layer + 2 * hidden * config.vocab_size < kMostWeights) return;
  root.at("num_hidden_layers")
      .fail("is " + std::to_string(config.num_hidden_layers) +
                ", which with the other sizes gives the model more than 2^48 weights",
            kOwnConfig);
}

RopeScaling read_llama3_scaling(const JsonNode& node) {
  RopeScaling scaling;
  scaling.factor = at_least_one(node.at("factor"));
  scaling.low_freq_factor = positive(node.at("low_freq_factor"));
  scaling.high_freq_factor = positive(node.at("high_freq_factor"));
  scaling.original_context = size_at(node, "original_max_position_embeddings");
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    node.at("high_freq_factor").fail("should be above low_freq_factor", kOwnConfig);
  }
  return scaling;
}

// "rope_type" since transformers 4.43, "type" before.
std::string rope_type(const JsonNode& node) {
  for (const char* key : {"rope_type", "type"}) {
    if (const auto type = node.find(key)) return type->text();
  }
  return "default";
}

void refuse_partial(const JsonNode& node) {
  const auto partial = node.find("partial_rotary_factor");
  if (partial && partial->number() != 1) partial->fail("is not 1", kOtherModel);
}

void read_scaling(const JsonNode& node, Config& config) {
  const std::string type = rope_type(node);
  if (type == "llama3") {
    config.rope_scaling = read_llama3_scaling(node);
  } else if (type != "default") {
    node.fail("asks for rope_type \"" + type + "\"", "use a model with rope_type \"default\" or \"llama3\"");
  }
  refuse_partial(node);
}

// Up to transformers 4: "rope_theta", "partial_rotary_factor" and "rope_scaling" at the root. From 5 on: all
// inside "rope_parameters".
void read_rope(const JsonNode& root, Config& config) {
  refuse_partial(root);
  const auto parameters = root.find("rope_parameters");
  for (const auto& place : {std::optional<JsonNode>(root), parameters}) {
    if (!place) continue;
    if (const auto theta = place->find("rope_theta")) config.rope_theta = at_least_one(*theta);
  }
  if (const auto scaling = parameters ? parameters : root.find("rope_scaling")) read_scaling(*scaling, config);
}

// Absent: what transformers takes then. Null: there is no window.
int read_window(const JsonNode& root) {
  constexpr int kDefaultWindow = 4096;
  if (!root.has("sliding_window")) return kDefaultWindow;
  return root.find("sliding_window") ? size_at(root, "sliding_window") : 0;
}

// The layers that have the window, by "layer_types": "full_attention" or "sliding_attention" of each.
std::vector<int> windows_by_type(const JsonNode& types, int window, int layers) {
  std::vector<int> windows;
  types.each_element([&](const JsonNode& type) {
    const bool slides = type.text() == "sliding_attention";
    if (!slides && type.text() != "full_attention") {
      type.fail("is \"" + type.text() + "\", neither \"full_attention\" nor \"sliding_attention\"", kOtherModel);
    }
    windows.push_back(slides ? window : 0);
  });
  if (windows.size() != static_cast<std::size_t>(layers)) {
    types.fail("has " + std::to_string(windows.size()) + " entries, not one for each of num_hidden_layers", kOwnConfig);
  }
  return windows;
}

// All layers of a Mistral have the window; of a Qwen, those from max_window_layers on unless layer_types says which
// (transformers 5, configuration_mistral.py, configuration_qwen2.py and configuration_qwen3.py).
std::vector<int> read_windows(const JsonNode& root, const Config& config) {
  constexpr int kDefaultFirst = 28;
  const bool mistral = config.family == Family::kMistral;
  const auto used = root.find("use_sliding_window");
  if (config.family == Family::kLlama || !(mistral || (used && used->flag()))) return {};
  const int window = read_window(root), layers = config.num_hidden_layers;
  if (window == 0) return {};
  if (layers > kMostWindowedLayers) {  // each has a number of its own, which a config of a few bytes must not make too many
    root.at("num_hidden_layers")
        .fail("is " + std::to_string(layers) + ", and of a model with windows this program computes at most " +
                  std::to_string(kMostWindowedLayers) + " layers",
              kOwnConfig);
  }
  const auto types = root.find("layer_types"), first = root.find("max_window_layers");
  if (types && !mistral) return windows_by_type(*types, window, layers);
  const std::int64_t whole = mistral ? 0 : first ? first->integer(0, kLargestSize) : kDefaultFirst;
  std::vector<int> windows(static_cast<std::size_t>(layers), window);
  std::fill_n(windows.begin(), std::min<std::int64_t>(whole, layers), 0);
  return windows;
}

void add_end_ids(const JsonNode& root, Config& config) {
  const auto add = [&](const JsonNode& node) {
    const int id = static_cast<int>(node.integer(0, kLargestSize));
    if (std::ranges::find(config.eos_token_ids, id) == config.eos_token_ids.end()) config.eos_token_ids.push_back(id);
  };
  const auto ids = root.find("eos_token_id");
  if (!ids) return;
  ids->is_array() ? ids->each_element(add) : add(*ids);
}

void read_ids(const JsonNode& root, Config& config) {
  if (const auto id = root.find("bos_token_id")) config.bos_token_id = static_cast<int>(id->integer(0, kLargestSize));
  add_end_ids(root, config);
}

}  // namespace

const char* describe(Family family) { return std::ranges::find(kFamilyNames, family, &FamilyName::family)->name; }

Config parse_config(std::string_view json, const std::filesystem::path& file) {
  const JsonNode root = JsonNode::parse(json, file);
  Config config;
  config.family = read_family(root);
  refuse_features(root, config.family);
  config.hidden_size = size_at(root, "hidden_size");
  config.intermediate_size = size_at(root, "intermediate_size");
  config.num_hidden_layers = size_at(root, "num_hidden_layers");
  config.vocab_size = size_at(root, "vocab_size");
  config.max_position_embeddings = size_at(root, "max_position_embeddings");
  read_heads(root, config);
  check_weight_count(root, config);
  config.rms_norm_eps = positive(root.at("rms_norm_eps"));
  read_rope(root, config);
  config.windows = read_windows(root, config);
  if (const auto tied = root.find("tie_word_embeddings")) config.tie_word_embeddings = tied->flag();
  read_ids(root, config);
  return config;
}

void parse_generation_config(std::string_view json, const std::filesystem::path& file, Config& config) {
  add_end_ids(JsonNode::parse(json, file), config);
}

Config read_config(const std::filesystem::path& folder) {
  const bool is_folder = std::filesystem::is_directory(folder);
  const std::filesystem::path file = is_folder ? folder / "config.json" : folder;
  Config config = parse_config(read_text(file, "name the folder of a Hugging Face model"), file);
  const std::filesystem::path generation = file.parent_path() / "generation_config.json";
  if (std::filesystem::exists(generation)) {
    parse_generation_config(read_text(generation, "make it a readable file, or remove it"), generation, config);
  }
  return config;
}

}  // namespace llama
