#include "apps/llama/tuned/prefill.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "apps/llama/tuned/layers.hpp"
#include "apps/llama/tuned/prefill_attend.cuh"

namespace llama {
namespace {

using flywheel::Product;
using flywheel::ProductOptions;

constexpr int kSizes[] = {128, 256, 512, 1024, kMostPrefillRows};  // rows that graphs are cut for
constexpr int kFewRows = 128;       // up to here the parts of a tile are split, and added in an order of their own
constexpr int kShortPart = 512;     // rows of a part while others wait
constexpr int kLeastAppended = 16;  // rows of a task: two for each warp
constexpr int kTasksOfStage = 128;  // of those that go row by row: one for most workers of a large GPU

int most_rows(int context) {
  for (const int rows : kSizes)
    if (rows >= context) return rows;
  return kMostPrefillRows;
}

std::size_t size_of(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

/// Builds the graph for so many rows.
class PrefillBuilder {
 public:
  PrefillBuilder(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts,
                 PrefillMemory& memory, int rows, std::deque<Product>& products)
      : runtime_(runtime),
        config_(config),
        weights_(weights),
        texts_(texts),
        memory_(memory),
        rows_(rows),
        products_(products),
        workers_(runtime.workers()),
        eps_(static_cast<float>(config.rms_norm_eps)) {
    for (int m = 0; m < kPrefillMatrices; ++m) cuts_.at(static_cast<std::size_t>(m)) = cut(static_cast<PrefillMatrix>(m));
  }

  Graph build() && {
    add_embeddings();
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) add_layer(layer);
    return std::move(graph_);
  }

 private:
  int few_rows() const { return std::max(rows_ / kTasksOfStage, 1); }
  StretchRows rows(int first, int count) const { return {memory_.stretch.data(), first, count}; }

  /// A matrix of the model in the products of layer `layer`.
  const MatrixBuffer& matrix(PrefillMatrix which, std::size_t layer) const {
    const LayerWeights& w = weights_.layers[layer];
    switch (which) {
      case PrefillMatrix::qkv:
        return w.qkv;
      case PrefillMatrix::output:
        return w.output;
      case PrefillMatrix::gated:
        return w.gate;
      default:
        return w.down;
    }
  }
  flywheel::Bf16* input_of(PrefillMatrix which) const {
    return which == PrefillMatrix::output ? memory_.results.data()
           : which == PrefillMatrix::down ? memory_.inner.data()
                                          : memory_.normed.data();
  }
  static const flywheel::Bf16* data_of(const MatrixBuffer& m) { return static_cast<const flywheel::Bf16*>(m.matrix.data); }
  Product product(PrefillMatrix which, std::size_t layer, ProductOptions options) const {
    const MatrixBuffer& m = matrix(which, layer);
    const auto narrow = [](int n) { return static_cast<std::uint32_t>(n); };
    const std::uint32_t columns = narrow(m.matrix.columns), all = narrow(rows_), outputs = narrow(m.rows);
    const flywheel::Matrix<const flywheel::Bf16> a{input_of(which), all, columns};
    const flywheel::Matrix<const flywheel::Bf16> b{data_of(m), outputs, columns};
    if (which == PrefillMatrix::gated) {
      options.second_b = data_of(weights_.layers[layer].up);
      return {runtime_, a, b, flywheel::Matrix<flywheel::Bf16>{memory_.inner.data(), all, outputs}, options};
    }
    float* const c = which == PrefillMatrix::qkv ? memory_.qkv.data() : memory_.x.data();
    return {runtime_, a, b, flywheel::Matrix<float>{c, all, outputs}, options};
  }

  /// How products are cut. Sums are whole but where rows are few. Products of one matrix share the memory for parts of tiles.
  ProductOptions cut(PrefillMatrix which) {
    ProductOptions options{.live_rows = &memory_.stretch.data()->count};
    options.add = which == PrefillMatrix::output || which == PrefillMatrix::down;
    if (rows_ > kFewRows) options.splits = 1;
    const std::size_t values = product(which, 0, options).partial_values();
    if (values > 0) options.partials = memory_.partials.emplace_back(runtime_.allocate<float>(values)).data();
    return options;
  }

  void add_embeddings() {
    graph_.phase();
    for (int first = 0; first < rows_; first += few_rows())
      graph_.add(PrefillEmbed{rows(first, few_rows()), bf16_of(weights_.embedding), texts_.prompt.data(), memory_.x.data(),
                              texts_.context, config_.hidden_size});
  }

  /// The phases of a layer; of the last one, up to its keys and values.
  void add_layer(std::size_t layer) {
    const LayerWeights& w = weights_.layers[layer];
    add_norm(w.attention_norm);
    add_product(PrefillMatrix::qkv, layer, {w.qkv_bias.data()});
    add_append(layer);
    if (layer + 1 == weights_.layers.size()) return;
    add_attention(layer);
    add_product(PrefillMatrix::output, layer, {});
    add_norm(w.mlp_norm);
    add_product(PrefillMatrix::gated, layer, {});
    add_product(PrefillMatrix::down, layer, {});
  }

  void add_norm(const Buffer<float>& weights) {
    graph_.phase();
    for (int first = 0; first < rows_; first += few_rows())
      graph_.add(PrefillNorm{rows(first, few_rows()), memory_.x.data(), weights.data(), memory_.normed.data(),
                             config_.hidden_size, eps_});
  }

  void add_product(PrefillMatrix which, std::size_t layer, const PrefillEnd& end) {
    graph_.phase();
    products_.emplace_back(product(which, layer, cuts_.at(static_cast<std::size_t>(which)))).add_to(graph_, {}, end);
  }

  void add_append(std::size_t layer) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const int heads = config_.num_key_value_heads;
    const auto wanted = static_cast<unsigned>(rows_ * heads / kTasksOfStage);
    const int count = std::clamp(static_cast<int>(std::bit_floor(wanted)), kLeastAppended, kPrefillTile);
    graph_.phase();
    for (int first = 0; first < rows_; first += count)
      for (int head = 0; head < heads; ++head)
        graph_.add(PrefillAppend{rows(first, count), memory_.qkv.data(), texts_.cache(layer), texts_.rope.data(),
                                 weights_.layers[layer].key_norm.data(), eps_, texts_.context,
                                 narrow(config_.num_attention_heads), narrow(heads), narrow(head), narrow(config_.head_dim)});
  }

  /// The last rows first: they attend to most positions. Each worker gets the next task of every round, so rounds go to and
  /// fro: who had the longest of one has the shortest of the next.
  void add_attention(std::size_t layer) {
    const int heads = config_.num_attention_heads, tasks = rows_ / kPrefillTile * heads;
    const int round = static_cast<int>(workers_);
    graph_.phase();
    for (int begin = 0; begin < tasks; begin += round) {
      const int end = std::min(begin + round, tasks);
      for (int i = begin; i < end; ++i) add_attention(layer, begin / round % 2 == 0 ? i : begin + end - 1 - i);
    }
  }
  void add_attention(std::size_t layer, int task) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const int heads = config_.num_attention_heads, own = config_.window(layer);
    const int first = rows_ - (task / heads + 1) * kPrefillTile;
    graph_.add(PrefillAttend{rows(first, kPrefillTile), memory_.qkv.data(), texts_.cache(layer), texts_.rope.data(),
                             weights_.layers[layer].query_norm.data(), memory_.results.data(), eps_, texts_.context,
                             narrow(heads), narrow(config_.num_key_value_heads), narrow(task % heads), narrow(config_.head_dim),
                             static_cast<std::uint16_t>(own < texts_.positions ? own : 0)});
  }

  Runtime& runtime_;
  const Config& config_;
  const Weights& weights_;
  const TunedMemory& texts_;
  PrefillMemory& memory_;
  const int rows_;
  std::deque<Product>& products_;
  const std::uint32_t workers_;
  const float eps_;
  std::array<ProductOptions, kPrefillMatrices> cuts_;
  Graph graph_;
};

}  // namespace

PrefillMemory::PrefillMemory(Runtime& runtime, const Config& config, int count)
    : rows(count),
      x(runtime.allocate<float>(size_of(count, config.hidden_size))),
      qkv(runtime.allocate<float>(size_of(count, config.qkv_size()))),
      normed(runtime.allocate<flywheel::Bf16>(size_of(count, config.hidden_size))),
      results(runtime.allocate<flywheel::Bf16>(size_of(count, config.query_size()))),
      inner(runtime.allocate<flywheel::Bf16>(size_of(count, config.intermediate_size))),
      stretch(runtime.allocate<Stretch>(1)) {}

bool Prefill::knows(const Config& config) { return PrefillAttend::knows(config.head_dim); }

std::size_t Prefill::bytes(const Config& config, int context) {
  const int rows = most_rows(context);
  return size_of(rows, config.hidden_size) * (sizeof(float) + sizeof(Bf16)) + size_of(rows, config.qkv_size()) * sizeof(float) +
         size_of(rows, config.query_size() + config.intermediate_size) * sizeof(Bf16);
}

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
