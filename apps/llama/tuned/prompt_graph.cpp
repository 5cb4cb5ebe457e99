#include "apps/llama/tuned/layers.hpp"
#include "apps/llama/tuned/prompt.cuh"
#include "apps/llama/tuned/prompt_way.hpp"

namespace llama {
namespace {

/// Keys and values of all positions of a chunk go into the cache before any position attends. Of the last layer nothing else
/// is needed.
class PromptBuilder : LayerBuilder {
 public:
  PromptBuilder(const Places& places, const Config& config, const StreamedWeights& weights, const TunedMemory& texts,
                PromptMemory& memory)
      : LayerBuilder(places, config, weights, memory, texts),
        texts_(texts),
        memory_(memory) {}

  TunedGraph build() && {
    Stage done, appended;
    for (std::size_t layer = 0; layer < layers(); ++layer) {
      appended = add_append(layer, add_qkv(layer, done));
      if (layer + 1 < layers()) done = add_rest(layer, add_attention(layer, appended));
    }
    const After waits = after_all(appended);
    Stage stage;
    for (int s = 0; s < memory_.sequences; ++s) {
      stage.push_back(graph().add(next_chunk(s, 1), waits));
      result_.embed.add(next_chunk(s, 0));
    }
    note("next chunk", std::move(stage));
    return std::move(result_);
  }

 private:
  /// Of each key and value head a task.
  Stage add_append(std::size_t layer, const Stage& projected) {
    const After waits = after_all(projected);
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    Stage stage;
    for (int head = 0; head < config_.num_key_value_heads; ++head)
      stage.push_back(graph().add(
          TunedAppend{qkv(layer), texts_.cache(layer), texts_.rope.data(), weights_.layers[layer].key_norm.data(),
                      memory_.states.data(), eps_, texts_.context, narrow(config_.num_attention_heads),
                      narrow(config_.num_key_value_heads), narrow(head), narrow(config_.head_dim), narrow(memory_.sequences)},
          waits));
    return note("append", std::move(stage));
  }

  Stage add_attention(std::size_t layer, const Stage& appended) {
    Stage stage;
    for (int split = 0; split < memory_.splits; ++split)
      for (int sequence = 0; sequence < memory_.sequences; ++sequence)
        for (std::size_t kv_head = 0; kv_head < appended.size(); ++kv_head) {
          const HeadSlice heads{static_cast<int>(kv_head) * heads_of_group(), heads_of_group()};
          stage.push_back(graph().add(TunedAttendCached{{attend(layer, sequence, heads, split)}}, after(appended[kv_head])));
        }
    place_attention(stage);
    if (memory_.splits > 1) graph().together(stage);
    return note("attend", std::move(stage));
  }

  TunedNextChunk next_chunk(int sequence, int ahead) const {
    return {embed(),
            memory_.states.data(),
            memory_.chunks.data(),
            texts_.prompt.data(),
            texts_.context,
            static_cast<std::int16_t>(sequence),
            static_cast<std::int16_t>(ahead)};
  }

  const TunedMemory& texts_;
  PromptMemory& memory_;
};

}  // namespace

int prompt_positions(const Config& config, PromptWay way) {
  constexpr int kMostScratch = 40 << 10;  // bytes of a worker: the rest has room for four pages of operands and more
  if (way == PromptWay::token_by_token) return 0;
  int positions = kFewSequences;
  while (positions > 2 && kTileWarps * scratch_of_products(config, positions) > kMostScratch) positions /= 2;
  return positions;
}

TunedGraph build_prompt_graph(const Runtime& runtime, const Config& config, const StreamedWeights& weights,
                              const TunedMemory& texts, PromptMemory& memory) {
  return PromptBuilder({static_cast<int>(runtime.workers()), true}, config, weights, texts, memory).build();
}

}  // namespace llama
