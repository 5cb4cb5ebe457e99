#include "apps/llama/bench/random_weights.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "apps/llama/decode/fill_random.cuh"
#include "apps/llama/decode/request.hpp"

namespace llama {
namespace {

constexpr float kDeviation = 0.02f;
constexpr float kBiasDeviation = 0.5f;  // as much as tells beside the products
constexpr std::size_t kValuesOfTask = std::size_t{1} << 22;

/// Collects tensors to fill, each with a seed of its own, and fills all of them in one run.
class Filler {
 public:
  Filler(Runtime& runtime, std::uint64_t seed) : runtime_(runtime), seed_(seed) {}

  template <class T>
  void add(T* to, std::size_t size, float mean, float deviation) {
    const std::uint64_t seed = FillRandom::mix(seed_, tensors_++);
    for (std::size_t first = 0; first < size; first += kValuesOfTask) {
      const std::size_t count = std::min(kValuesOfTask, size - first);
      graph_.add(
          FillRandom{to + first, first, seed, static_cast<std::int32_t>(count), FillRandom::kind_of<T>, mean, deviation});
    }
  }
  MatrixBuffer matrix(int rows, int columns, float deviation) {
    const std::size_t size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    MatrixBuffer made{runtime_.allocate<unsigned char>(size * sizeof(Bf16)), rows, {}};
    made.matrix = {made.bytes.data(), columns, 1};
    add(reinterpret_cast<Bf16*>(made.bytes.data()), size, 0.f, deviation);
    return made;
  }
  Buffer<float> norm(int size) {
    Buffer<float> made = runtime_.allocate<float>(static_cast<std::size_t>(size));
    add(made.data(), made.size(), 1.f, kDeviation);
    return made;
  }
  Buffer<float> bias(int size) {
    Buffer<float> made = runtime_.allocate<float>(static_cast<std::size_t>(size));
    add(made.data(), made.size(), 0.f, kBiasDeviation);
    return made;
  }
  void run() { runtime_.submit(runtime_.load(graph_)).wait(); }

 private:
  Runtime& runtime_;
  Graph graph_;
  std::uint64_t seed_;
  std::uint64_t tensors_ = 0;
};

LayerWeights random_layer(Filler& fill, const Config& config) {
  const int hidden = config.hidden_size, inner = config.intermediate_size;
  LayerWeights weights;
  weights.qkv = fill.matrix(config.qkv_size(), hidden, kDeviation);
  weights.output = fill.matrix(hidden, config.query_size(), kDeviation);
  weights.gate = fill.matrix(inner, hidden, kDeviation);
  weights.up = fill.matrix(inner, hidden, kDeviation);
  weights.down = fill.matrix(hidden, inner, kDeviation);
  weights.attention_norm = fill.norm(hidden);
  weights.mlp_norm = fill.norm(hidden);
  if (config.has_qk_norm()) {
    weights.query_norm = fill.norm(config.head_dim);
    weights.key_norm = fill.norm(config.head_dim);
  }
  if (config.has_qkv_bias()) weights.qkv_bias = fill.bias(config.qkv_size());
  return weights;
}

}  // namespace

Weights random_weights(Runtime& runtime, const Config& config, std::uint64_t seed) {
  for (const int size : {config.hidden_size, config.intermediate_size, config.head_dim})
    if (size % kChunk) throw RequestError("a size of " + std::to_string(size) + " is no multiple of 8: choose another shape");
  Filler fill(runtime, seed);
  const float of_logits = 1.f / std::sqrt(static_cast<float>(config.hidden_size));
  Weights weights;
  weights.embedding = fill.matrix(config.vocab_size, config.hidden_size, of_logits);
  if (!config.tie_word_embeddings) weights.head = fill.matrix(config.vocab_size, config.hidden_size, of_logits);
  weights.final_norm = fill.norm(config.hidden_size);
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) weights.layers.push_back(random_layer(fill, config));
  fill.run();
  return weights;
}

void fill_cache(Runtime& runtime, TunedMemory& memory, std::uint64_t seed) {
  Filler fill(runtime, seed);
  for (auto* caches : {&memory.keys, &memory.values_cache})
    for (Buffer<Half>& cache : *caches) fill.add(cache.data(), cache.size(), 0.f, 1.f);
  fill.run();
}

}  // namespace llama
