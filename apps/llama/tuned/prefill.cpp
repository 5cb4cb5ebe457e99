#include "apps/llama/tuned/prefill.hpp"

#include <algorithm>
#include <array>

#include "apps/llama/decode/stage.hpp"
#include "apps/llama/tuned/layers.hpp"
#include "apps/llama/tuned/prefill_attend.cuh"

namespace llama {
namespace {

using flywheel::Product;
using flywheel::ProductOptions;

constexpr int kSizes[] = {128, 256, 512, 1024, kMostPrefillRows};  // rows that graphs are cut for
constexpr int kFewRows = 128;    // up to here the parts of a tile are split, and added in an order of their own
constexpr int kShortPart = 512;  // rows of a part while others wait
constexpr int kRowsOfTask = 16;  // of those that go row by row
// A worker that ends a task arrives at each of its successors, four in a trip to L2; at one without another predecessor it
// does not.
constexpr std::size_t kMostSuccessors = 8;
constexpr std::size_t kMostSole = 16;

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
        eps_(static_cast<float>(config.rms_norm_eps)) {
    for (int m = 0; m < kPrefillMatrices; ++m) cuts_.at(static_cast<std::size_t>(m)) = cut(static_cast<PrefillMatrix>(m));
  }

  Graph build() && {
    Stage done = add_embeddings();
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) done = add_layer(layer, done);
    return std::move(graph_);
  }

 private:
  std::size_t tiles() const { return static_cast<std::size_t>(rows_ / kPrefillTile); }
  StretchRows rows(int first, int count) const { return {memory_.stretch.data(), first, count}; }

  /// A matrix of the model in the products of layer `layer`.
  const MatrixBuffer& matrix(PrefillMatrix which, std::size_t layer) const {
    const LayerWeights& w = weights_.layers[layer];
    switch (which) {
      case PrefillMatrix::qkv:
        return w.qkv;
      case PrefillMatrix::output:
        return w.output;
      case PrefillMatrix::gate:
        return w.gate;
      case PrefillMatrix::up:
        return w.up;
      default:
        return w.down;
    }
  }
  flywheel::Bf16* input_of(PrefillMatrix which) const {
    return which == PrefillMatrix::output ? memory_.results.data()
           : which == PrefillMatrix::down ? memory_.inner.data()
                                          : memory_.normed.data();
  }
  Product product(PrefillMatrix which, std::size_t layer, const ProductOptions& options) const {
    const MatrixBuffer& m = matrix(which, layer);
    const auto narrow = [](int n) { return static_cast<std::uint32_t>(n); };
    const std::uint32_t columns = narrow(m.matrix.columns), all = narrow(rows_), outputs = narrow(m.rows);
    const flywheel::Matrix<const flywheel::Bf16> a{input_of(which), all, columns};
    const flywheel::Matrix<const flywheel::Bf16> b{static_cast<const flywheel::Bf16*>(m.matrix.data), outputs, columns};
    if (which == PrefillMatrix::gate || which == PrefillMatrix::up)
      return {runtime_, a, b, flywheel::Matrix<flywheel::Bf16>{memory_.inner.data(), all, outputs}, options};
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

  Stage add_embeddings() {
    Stage stage;
    for (int first = 0; first < rows_; first += kRowsOfTask)
      stage.push_back(graph_.add(PrefillEmbed{rows(first, kRowsOfTask), bf16_of(weights_.embedding), texts_.prompt.data(),
                                              memory_.x.data(), texts_.context, config_.hidden_size}));
    return stage;
  }

  /// What comes after a stage: the end of its layer, or of its keys and values in the last one.
  Stage add_layer(std::size_t layer, const Stage& before) {
    const LayerWeights& w = weights_.layers[layer];
    const Stage projected =
        add_product(PrefillMatrix::qkv, layer, add_norm(w.attention_norm, before), {w.qkv_bias.data(), nullptr, 0});
    const Stage appended = add_append(layer, projected);
    if (layer + 1 == weights_.layers.size()) return appended;
    const Stage added = add_product(PrefillMatrix::output, layer, add_attention(layer, appended), {});
    const Stage normed = add_norm(w.mlp_norm, added);
    const Stage gates = add_product(PrefillMatrix::gate, layer, normed, {});
    const Stage inner =
        add_product(PrefillMatrix::up, layer, normed, {nullptr, memory_.inner.data(), config_.intermediate_size}, gates);
    return add_product(PrefillMatrix::down, layer, inner, {});
  }

  Stage add_norm(const Buffer<float>& weights, const Stage& before) {
    Stage stage;
    const Waits waits = between(before, static_cast<std::size_t>(rows_ / kRowsOfTask));
    for (int first = 0; first < rows_; first += kRowsOfTask)
      stage.push_back(graph_.add(PrefillNorm{rows(first, kRowsOfTask), memory_.x.data(), weights.data(), memory_.normed.data(),
                                             config_.hidden_size, eps_},
                                 waits(stage.size())));
    return stage;
  }

  Stage add_product(PrefillMatrix which, std::size_t layer, const Stage& before, const PrefillEnd& end,
                    const Stage& stored_after = {}) {
    const Product& one = products_.emplace_back(product(which, layer, cuts_.at(static_cast<std::size_t>(which))));
    if (!stored_after.empty() && one.splits() == 1)  // which wait for `before`, too
      return one.add_each(
          graph_, [](std::uint32_t, std::uint32_t) { return After{}; }, end, stored_after);
    const Waits waits = between(before, one.part_tasks());
    return one.add_each(
        graph_, [&](std::uint32_t i, std::uint32_t) { return waits(i); }, end, stored_after);
  }

  Stage add_append(std::size_t layer, const Stage& projected) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const int heads = config_.num_key_value_heads;
    const Waits waits = between(projected, tiles() * static_cast<std::size_t>(heads));
    Stage stage;
    for (int first = 0; first < rows_; first += kPrefillTile)
      for (int head = 0; head < heads; ++head)
        stage.push_back(graph_.add(
            PrefillAppend{rows(first, kPrefillTile), memory_.qkv.data(), texts_.cache(layer), texts_.rope.data(),
                          weights_.layers[layer].key_norm.data(), eps_, texts_.context, narrow(config_.num_attention_heads),
                          narrow(heads), narrow(head), narrow(config_.head_dim)},
            waits(stage.size())));
    return stage;
  }

  /// The last rows first: they attend to most positions.
  Stage add_attention(std::size_t layer, const Stage& appended) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const int own = config_.window(layer), heads = config_.num_attention_heads;
    const Waits waits = between(appended, tiles() * static_cast<std::size_t>(heads));
    Stage stage;
    for (int first = rows_ - kPrefillTile; first >= 0; first -= kPrefillTile)
      for (int head = 0; head < heads; ++head)
        stage.push_back(
            graph_.add(PrefillAttend{rows(first, kPrefillTile), memory_.qkv.data(), texts_.cache(layer), texts_.rope.data(),
                                     weights_.layers[layer].query_norm.data(), memory_.results.data(), eps_, texts_.context,
                                     narrow(heads), narrow(config_.num_key_value_heads), narrow(head), narrow(config_.head_dim),
                                     static_cast<std::uint16_t>(own < texts_.positions ? own : 0)},
                       waits(stage.size())));
    return stage;
  }

  /// What the i-th task of a stage waits for.
  struct Waits {
    After all;      // each waits for all of these,
    Stage instead;  // or every kMostSole of them for the next one of these
    After operator()(std::size_t i) const { return instead.empty() ? all : after(instead.at(i / kMostSole)); }
  };
  /// Each task of the next stage waits for all of `before`. Where there are many, it waits for one of few that do.
  Waits between(const Stage& before, std::size_t next) {
    Waits waits{after_all(before), {}};
    if (next <= kMostSuccessors) return waits;
    for (std::size_t i = 0; i < (next + kMostSole - 1) / kMostSole; ++i)
      waits.instead.push_back(graph_.add(PrefillBetween{}, waits.all));
    return waits;
  }

  Runtime& runtime_;
  const Config& config_;
  const Weights& weights_;
  const TunedMemory& texts_;
  PrefillMemory& memory_;
  const int rows_;
  std::deque<Product>& products_;
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
