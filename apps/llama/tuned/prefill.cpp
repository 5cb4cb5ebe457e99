#include "apps/llama/tuned/prefill.hpp"

#include <algorithm>
#include <bit>

#include "apps/llama/tuned/prefill_attend.cuh"

namespace llama {
namespace {

using flywheel::Product;

constexpr int kSizes[] = {128, 256, 512, 1024, kMostPrefillRows};  // rows that graphs are cut for
constexpr int kFewRows = 128;       // up to here the parts of a tile are split, and added in an order of their own
constexpr int kShortPart = 512;     // rows of a part while others wait
constexpr int kLeastAppended = 16;  // rows of a task: two for each warp

int most_rows(int context) {
  for (const int rows : kSizes)
    if (rows >= context) return rows;
  return kMostPrefillRows;
}

/// Builds the graph for so many rows. Sums are whole but where rows are few.
class PrefillBuilder : RowsBuilder {
 public:
  PrefillBuilder(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts, RowsMemory& memory,
                 int rows, std::deque<Product>& products)
      : RowsBuilder(runtime, config, weights, texts, memory, rows, rows > kFewRows, products) {}

  Graph build() && {
    add_embeddings();
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) add_layer(layer);
    return std::move(graph());
  }

 private:
  void add_embeddings() {
    graph().phase();
    for (int first = 0; first < rows_; first += few_rows())
      graph().add(PrefillEmbed{rows(first, few_rows()), bf16_of(weights_.embedding), texts_.prompt.data(), memory_.x.data(),
                               texts_.context, config_.hidden_size});
  }

  /// The phases of a layer; of the last one, up to its keys and values.
  void add_layer(std::size_t layer) {
    const LayerWeights& w = weights_.layers[layer];
    add_norm(w.attention_norm);
    add_product(RowsMatrix::qkv, layer, {w.qkv_bias.data()});
    add_append(layer);
    if (layer + 1 == weights_.layers.size()) return;
    add_attention(layer);
    add_rest(layer);
  }

  void add_append(std::size_t layer) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const int heads = config_.num_key_value_heads;
    const auto wanted = static_cast<unsigned>(rows_ * heads / kTasksOfStage);
    const int count = std::clamp(static_cast<int>(std::bit_floor(wanted)), kLeastAppended, kPrefillTile);
    graph().phase();
    for (int first = 0; first < rows_; first += count)
      for (int head = 0; head < heads; ++head)
        graph().add(PrefillAppend{rows(first, count), memory_.qkv.data(), texts_.cache(layer), texts_.rope.data(),
                                  weights_.layers[layer].key_norm.data(), eps_, texts_.context,
                                  narrow(config_.num_attention_heads), narrow(heads), narrow(head), narrow(config_.head_dim)});
  }

  /// The last rows first: they attend to most positions. Each worker gets the next task of every round, so rounds go to and
  /// fro: who had the longest of one has the shortest of the next.
  void add_attention(std::size_t layer) {
    const int heads = config_.num_attention_heads, tasks = rows_ / kPrefillTile * heads;
    const int round = static_cast<int>(runtime().workers());
    graph().phase();
    for (int begin = 0; begin < tasks; begin += round) {
      const int end = std::min(begin + round, tasks);
      for (int i = begin; i < end; ++i) add_attention(layer, begin / round % 2 == 0 ? i : begin + end - 1 - i);
    }
  }
  void add_attention(std::size_t layer, int task) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const int heads = config_.num_attention_heads;
    const int first = rows_ - (task / heads + 1) * kPrefillTile;
    graph().add(PrefillAttend{rows(first, kPrefillTile), memory_.qkv.data(), texts_.cache(layer), texts_.rope.data(),
                              weights_.layers[layer].query_norm.data(), memory_.results.data(), eps_, texts_.context,
                              narrow(heads), narrow(config_.num_key_value_heads), narrow(task % heads),
                              narrow(config_.head_dim), window(layer)});
  }
};

}  // namespace

bool Prefill::knows(const Config& config) { return PrefillAttend::knows(config.head_dim); }

std::size_t Prefill::bytes(const Config& config, int context) { return RowsMemory::bytes(config, most_rows(context)); }

Prefill::Prefill(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts)
    : runtime_(runtime),
      memory_(runtime, config, most_rows(texts.positions)) {
  for (const int rows : kSizes) {
    if (rows > memory_.rows) break;
    Size& size = sizes_.emplace_back();
    size.rows = rows;
    size.read = runtime.load(PrefillBuilder(runtime, config, weights, texts, memory_, rows, size.products).build());
  }
}

std::uint32_t Prefill::next_count(std::uint32_t count, bool short_parts) {
  return std::min<std::uint32_t>(count, short_parts ? kShortPart : kMostPrefillRows);
}

Run Prefill::submit(std::uint32_t text, std::uint32_t first, std::uint32_t end, bool whole) {
  const Stretch stretch{text, first, end - first};
  memory_.stretch.write({stretch});
  const auto fits = [&](const Size& size) {
    return static_cast<std::uint32_t>(size.rows) >= stretch.count && (whole || size.rows > kFewRows || sizes_.size() == 1);
  };
  return runtime_.submit(std::ranges::find_if(sizes_, fits)->read);
}

}  // namespace llama
