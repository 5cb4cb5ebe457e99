#include "apps/llama/tuned/wide.hpp"

#include "apps/llama/decode/request.hpp"
#include "apps/llama/tuned/wide_tasks.cuh"

namespace llama {
namespace {

class WideBuilder : RowsBuilder {
 public:
  WideBuilder(Runtime& runtime, const Config& config, const Weights& weights, TunedMemory& texts, RowsMemory& memory,
              std::deque<flywheel::Product>& products)
      : RowsBuilder(runtime, config, weights, texts, memory, texts.sequences, false, products) {}

  Graph build() && {
    add_embeddings();
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) {
      add_norm(weights_.layers[layer].attention_norm, layer > 0 ? std::optional(RowsMatrix::down) : std::nullopt);
      add_product(RowsMatrix::qkv, layer, {weights_.layers[layer].qkv_bias.data()});
      add_attention(layer);
      add_rest(layer);
    }
    add_norm(weights_.final_norm, RowsMatrix::down);
    add_product(RowsMatrix::logits, 0, {});
    add_choices();
    return std::move(graph());
  }

 private:
  static std::int16_t narrow(int i) { return static_cast<std::int16_t>(i); }

  void add_embeddings() {
    graph().phase();
    for (int text = 0; text < rows_; text += few_rows())
      graph().add(WideEmbed{bf16_of(weights_.embedding), texts_.states.data(), texts_.texts.data(), memory_.x.data(),
                            memory_.positions.data(), config_.hidden_size, text, few_rows()});
  }
  void add_attention(std::size_t layer) {
    const LayerWeights& w = weights_.layers[layer];
    const int heads = config_.num_attention_heads, kv_heads = config_.num_key_value_heads;
    graph().phase();
    for (int pair = 0; pair < rows_ * kv_heads; pair += WideAttend::kTeams)
      graph().add(WideAttend{sums_for_tasks(RowsMatrix::qkv), texts_.cache(layer), texts_.rope.data(), w.query_norm.data(),
                             w.key_norm.data(), memory_.positions.data(), memory_.results.data(), eps_, texts_.context,
                             narrow(pair), narrow(rows_), narrow(heads), narrow(kv_heads), narrow(config_.head_dim),
                             window(layer)});
  }
  void add_choices() {
    graph().phase();
    for (int text = 0; text < rows_; ++text)
      graph().add(WideChoose{texts_.choice.data(), texts_.states.data(), texts_.texts.data(), text});
  }
};

}  // namespace

WideStep::WideStep(Runtime& runtime, const Config& config, const Weights& weights, TunedMemory& texts)
    : memory_(runtime, config, texts.sequences) {
  check(config);
  const int vocabulary = config.vocab_size;
  memory_.stretch.write({{0, 0, static_cast<std::uint32_t>(texts.sequences)}});
  texts.choice.write({{texts.logits.data(), nullptr, nullptr, texts.prompt.data(), texts.ends.data(), texts.writing.data(),
                       vocabulary, 0, texts.context, static_cast<std::int32_t>(texts.ends.size())}});
  graph_ = WideBuilder(runtime, config, weights, texts, memory_, products_).build();
}

void WideStep::check(const Config& config) {
  if (!is_whole_vectors(config.vocab_size))
    throw RequestError("more than " + std::to_string(kMostSequences) +
                       " texts at once want a vocabulary of a multiple of 4 tokens, and the model has " +
                       std::to_string(config.vocab_size) + ": ask for " + std::to_string(kMostSequences) +
                       " or fewer, in whose places more take turns");
}

}  // namespace llama
