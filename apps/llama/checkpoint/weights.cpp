#include "apps/llama/checkpoint/weights.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/safetensors.hpp"

namespace llama {
namespace {

/// Tensors are aligned to their elements.
std::span<const std::uint16_t> codes_of(const TensorView& tensor) {
  return {reinterpret_cast<const std::uint16_t*>(tensor.bytes.data()), tensor.count()};
}

constexpr std::uint16_t kInfinite = 0x7f80;  // bf16

/// The first weight of a bf16 matrix that is no finite number. The loop over a row has no branch, and integers whose maximum
/// every x86 has an instruction for.
std::optional<OddWeight> find_odd(const TensorView& tensor, int columns) {
  const std::span<const std::uint16_t> codes = codes_of(tensor);
  const auto row_size = static_cast<std::size_t>(columns);
  for (std::size_t at = 0; at < codes.size(); at += row_size) {
    const auto row = codes.subspan(at, row_size);
    std::int16_t largest = 0;
    for (const std::uint16_t code : row) largest = std::max(largest, static_cast<std::int16_t>(code & 0x7fff));
    if (largest < kInfinite) continue;
    const auto found = std::ranges::find_if(row, [](std::uint16_t code) { return (code & 0x7fff) >= kInfinite; });
    return OddWeight{tensor.name, static_cast<int>(at / row_size), static_cast<int>(found - row.begin()),
                     to_float(Bf16{*found})};
  }
  return std::nullopt;
}

class Loader {
 public:
  Loader(Runtime& runtime, const SafeTensors& file) : runtime_(runtime), file_(file) {}

  /// Rows of all named tensors, one tensor below the other. bf16 if all of them are.
  MatrixBuffer matrix(std::initializer_list<std::string> names, std::initializer_list<int> rows, int columns,
                      bool as_bf16) const {
    MatrixBuffer result;
    for (const int count : rows) result.rows += count;
    const std::size_t element = as_bf16 ? sizeof(Bf16) : sizeof(float);
    result.bytes =
        runtime_.allocate<unsigned char>(element * static_cast<std::size_t>(result.rows) * static_cast<std::size_t>(columns));
    result.matrix = {result.bytes.data(), columns, as_bf16};
    std::size_t at = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const TensorView& view = tensor(names.begin()[i], rows.begin()[i], columns);
      if (as_bf16 && !result.odd) result.odd = find_odd(view, columns);
      at += write(result.bytes, at, view, as_bf16);
    }
    return result;
  }
  MatrixBuffer matrix(const std::string& name, int rows, int columns) const {
    return matrix({name}, {rows}, columns, is_bf16(name));
  }

  Buffer<float> vector(const std::string& name, int size) const { return vector({name}, {size}); }
  /// One after the other.
  Buffer<float> vector(std::initializer_list<std::string> names, std::initializer_list<int> sizes) const {
    std::vector<float> all;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::vector<float> one = to_floats(file_.weight(names.begin()[i], {sizes.begin()[i]}));
      all.insert(all.end(), one.begin(), one.end());
    }
    return runtime_.upload(all);
  }

  bool is_bf16(const std::string& name) const { return file_.at(name).dtype == DType::kBF16; }

 private:
  const TensorView& tensor(const std::string& name, int rows, int columns) const { return file_.weight(name, {rows, columns}); }

  /// Returns how many bytes it wrote.
  static std::size_t write(Buffer<unsigned char>& to, std::size_t at, const TensorView& tensor, bool as_bf16) {
    if (as_bf16 || tensor.dtype == DType::kF32) return write(to, at, tensor.bytes);
    const std::vector<float> floats = to_floats(tensor);
    return write(to, at, std::as_bytes(std::span(floats)));
  }
  static std::size_t write(Buffer<unsigned char>& to, std::size_t at, std::span<const std::byte> bytes) {
    to.write(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), at);
    return bytes.size();
  }

  Runtime& runtime_;
  const SafeTensors& file_;
};

LayerWeights load_layer(const Loader& load, const Config& config, int index) {
  const std::string layer = "model.layers." + std::to_string(index) + ".";
  const std::string attention = layer + "self_attn.", mlp = layer + "mlp.";
  const int hidden = config.hidden_size, inner = config.intermediate_size;
  const std::string queries = attention + "q_proj.", keys = attention + "k_proj.", values = attention + "v_proj.";
  const std::string q = queries + "weight", k = keys + "weight", v = values + "weight";
  const std::string gate = mlp + "gate_proj.weight", up = mlp + "up_proj.weight";
  const bool qkv_bf16 = load.is_bf16(q) && load.is_bf16(k) && load.is_bf16(v);
  const bool gates_bf16 = load.is_bf16(gate) && load.is_bf16(up);

  LayerWeights weights;
  weights.qkv =
      load.matrix({q, k, v}, {config.query_size(), config.key_value_size(), config.key_value_size()}, hidden, qkv_bf16);
  weights.output = load.matrix(attention + "o_proj.weight", hidden, config.query_size());
  weights.gate = load.matrix({gate}, {inner}, hidden, gates_bf16);
  weights.up = load.matrix({up}, {inner}, hidden, gates_bf16);
  weights.down = load.matrix(mlp + "down_proj.weight", hidden, inner);
  weights.attention_norm = load.vector(layer + "input_layernorm.weight", hidden);
  weights.mlp_norm = load.vector(layer + "post_attention_layernorm.weight", hidden);
  if (config.has_qk_norm()) {
    weights.query_norm = load.vector(attention + "q_norm.weight", config.head_dim);
    weights.key_norm = load.vector(attention + "k_norm.weight", config.head_dim);
  }
  if (config.has_qkv_bias()) {
    weights.qkv_bias = load.vector({queries + "bias", keys + "bias", values + "bias"},
                                   {config.query_size(), config.key_value_size(), config.key_value_size()});
  }
  return weights;
}

/// Rows are read 16 bytes at a time.
void check_sizes(const Config& config, const std::filesystem::path& folder) {
  struct Size {
    const char* key;
    int value;
  };
  for (const Size size : {Size{"hidden_size", config.hidden_size}, Size{"intermediate_size", config.intermediate_size},
                          Size{"head_dim", config.head_dim}}) {
    if (size.value % kChunk == 0) continue;
    throw ModelError(folder, std::string(size.key) + " is " + std::to_string(size.value) + ", no multiple of 8",
                     "use a model whose sizes are multiples of 8");
  }
}

}  // namespace

Weights load_weights(Runtime& runtime, const Config& config, const std::filesystem::path& folder) {
  check_sizes(config, folder);
  const SafeTensors file = SafeTensors::open(folder);
  const Loader load(runtime, file);
  Weights weights;
  weights.embedding = load.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size);
  if (!config.tie_word_embeddings) weights.head = load.matrix("lm_head.weight", config.vocab_size, config.hidden_size);
  weights.final_norm = load.vector("model.norm.weight", config.hidden_size);
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) weights.layers.push_back(load_layer(load, config, layer));
  return weights;
}

}  // namespace llama
