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

constexpr int kSizes[] = {128, 512, 2048};  // rows that graphs are cut for
static_assert(kSizes[2] == kMostPrefillRows);
constexpr int kFewRows = 128;       // up to here the parts of a tile are split, and added in an order of their own
constexpr int kShortPart = 512;     // rows of a part while others wait
constexpr int kRowsOfTask = 16;     // of those that go row by row
// A worker that ends a task arrives at each of its successors, four in a trip to L2; one without another predecessor takes none.
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
        eps_(static_cast<float>(config.rms_norm_eps)),
        appended_(static_cast<std::size_t>(config.num_key_value_heads)) {
    for (int m = 0; m < kPrefillMatrices; ++m) cuts_.at(static_cast<std::size_t>(m)) = cut(static_cast<PrefillMatrix>(m));
  }

  Graph build() && {
    std::vector<Stage> ends;
    for (int tile = 0; tile < tiles(); ++tile) ends.push_back(add_embeddings(tile));
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) {
      for (Stage& heads : appended_) heads.clear();
      for (int tile = 0; tile < tiles(); ++tile)
        ends[static_cast<std::size_t>(tile)] = add_layer(layer, tile, ends[static_cast<std::size_t>(tile)]);
    }
    return std::move(graph_);
  }

 private:
  int tiles() const { return rows_ / kPrefillTile; }
  StretchRows rows(int first, int count) const { return {memory_.stretch.data(), first, count}; }
  const std::uint32_t* live_rows(int tile) const { return memory_.stretch.data()->of_tiles + tile; }

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
  /// Of `count` rows from `first` on.
  Product product(PrefillMatrix which, std::size_t layer, int first, int count, const ProductOptions& options) const {
    const MatrixBuffer& m = matrix(which, layer);
    const auto narrow = [](int n) { return static_cast<std::uint32_t>(n); };
    const std::uint32_t columns = narrow(m.matrix.columns), all = narrow(count), outputs = narrow(m.rows);
    const flywheel::Matrix<const flywheel::Bf16> a{input_of(which) + size_of(first, m.matrix.columns), all, columns};
    const flywheel::Matrix<const flywheel::Bf16> b{static_cast<const flywheel::Bf16*>(m.matrix.data), outputs, columns};
    const std::size_t at = size_of(first, m.rows);
    if (which == PrefillMatrix::gate || which == PrefillMatrix::up)
      return {runtime_, a, b, flywheel::Matrix<flywheel::Bf16>{memory_.inner.data() + at, all, outputs}, options};
    float* const c = which == PrefillMatrix::qkv ? memory_.qkv.data() : memory_.x.data();
    return {runtime_, a, b, flywheel::Matrix<float>{c + at, all, outputs}, options};
  }

  /// How products of all rows at once would be cut; sums are whole but where rows are few.
  ProductOptions cut(PrefillMatrix which) {
    ProductOptions options;
    if (rows_ > kFewRows) options.splits = 1;
    const Product whole = product(which, 0, 0, rows_, options);
    const std::uint32_t columns = static_cast<std::uint32_t>(matrix(which, 0).rows), of_tile = whole.tile_columns();
    const std::uint32_t all = (columns + of_tile - 1) / of_tile * static_cast<std::uint32_t>(tiles());
    options = {.tile_columns = of_tile,
               .splits = whole.splits(),
               .tiles_each = std::max(1u, std::min(all / runtime_.workers(), 4u))};
    if (whole.partial_values() > 0)
      options.partials = memory_.partials.emplace_back(runtime_.allocate<float>(whole.partial_values())).data();
    return options;
  }

  Stage add_embeddings(int tile) {
    Stage stage;
    for (int first = tile * kPrefillTile; first < (tile + 1) * kPrefillTile; first += kRowsOfTask)
      stage.push_back(graph_.add(PrefillEmbed{rows(first, kRowsOfTask), bf16_of(weights_.embedding), texts_.prompt.data(),
                                              memory_.x.data(), texts_.context, config_.hidden_size}));
    return stage;
  }

  /// What comes after a stage of a tile: the end of its layer, or of its keys and values in the last one.
  Stage add_layer(std::size_t layer, int tile, const Stage& before) {
    const LayerWeights& w = weights_.layers[layer];
    const Stage projected =
        add_product(PrefillMatrix::qkv, layer, tile, add_norm(w.attention_norm, tile, before), {w.qkv_bias.data(), nullptr, 0});
    add_append(layer, tile, projected);
    if (layer + 1 == weights_.layers.size()) return {};
    const Stage added = add_product(PrefillMatrix::output, layer, tile, add_attention(layer, tile), {});
    const Stage normed = add_norm(w.mlp_norm, tile, added);
    const Stage gates = add_product(PrefillMatrix::gate, layer, tile, normed, {});
    const PrefillEnd gated{nullptr, memory_.inner.data() + size_of(tile * kPrefillTile, config_.intermediate_size),
                           config_.intermediate_size};
    const Stage inner = add_product(PrefillMatrix::up, layer, tile, normed, gated, gates);
    return add_product(PrefillMatrix::down, layer, tile, inner, {});
  }

  /// A row's norm needs all of the row.
  Stage add_norm(const Buffer<float>& weights, int tile, const Stage& before) {
    Stage stage;
    constexpr int kTasks = kPrefillTile / kRowsOfTask;
    const Waits waits = between(before, kTasks);
    for (int i = 0; i < kTasks; ++i)
      stage.push_back(graph_.add(PrefillNorm{rows(tile * kPrefillTile + i * kRowsOfTask, kRowsOfTask), memory_.x.data(),
                                             weights.data(), memory_.normed.data(), config_.hidden_size, eps_},
                                 waits(static_cast<std::uint32_t>(i), kTasks)));
    return stage;
  }

  Stage add_product(PrefillMatrix which, std::size_t layer, int tile, const Stage& before, const PrefillEnd& end,
                    const Stage& stored_after = {}) {
    ProductOptions options = cuts_.at(static_cast<std::size_t>(which));
    options.live_rows = live_rows(tile);
    options.accumulate = which == PrefillMatrix::output || which == PrefillMatrix::down;
    const Product& one = products_.emplace_back(product(which, layer, tile * kPrefillTile, kPrefillTile, options));
    if (!stored_after.empty() && one.splits() == 1)  // which waits for `before`, too
      return one.add_each(graph_, [](std::uint32_t, std::uint32_t) { return After{}; }, end, stored_after);
    const Waits waits = between(before, one.tasks_reading());
    return one.add_each(graph_, waits, end, stored_after);
  }

  void add_append(std::size_t layer, int tile, const Stage& projected) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const std::size_t heads = appended_.size();
    const Waits waits = between(projected, heads);
    for (std::size_t head = 0; head < heads; ++head) {
      const TaskRef<> appended = graph_.add(
          PrefillAppend{rows(tile * kPrefillTile, kPrefillTile), memory_.qkv.data(), texts_.cache(layer), texts_.rope.data(),
                        weights_.layers[layer].key_norm.data(), eps_, texts_.context, narrow(config_.num_attention_heads),
                        narrow(config_.num_key_value_heads), narrow(static_cast<int>(head)), narrow(config_.head_dim)},
          waits(static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(heads)));
      Stage& last = appended_[head];
      last = {last.empty() ? appended : graph_.add(PrefillBetween{}, after(last.front(), appended))};
    }
  }

  /// Keys and values of a head go in tile after tile, so those up to one are there when it is through.
  Stage add_attention(std::size_t layer, int tile) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const int own = config_.window(layer), group = config_.num_attention_heads / config_.num_key_value_heads;
    Stage stage;
    for (int head = 0; head < config_.num_attention_heads; ++head)
      stage.push_back(graph_.add(
          PrefillAttend{rows(tile * kPrefillTile, kPrefillTile), memory_.qkv.data(), texts_.cache(layer), texts_.rope.data(),
                        weights_.layers[layer].query_norm.data(), memory_.results.data(), eps_, texts_.context,
                        narrow(config_.num_attention_heads), narrow(config_.num_key_value_heads), narrow(head),
                        narrow(config_.head_dim), static_cast<std::uint16_t>(own < texts_.positions ? own : 0)},
          after_all(appended_[static_cast<std::size_t>(head / group)])));
    return stage;
  }

  /// What the i-th of n tasks waits for.
  struct Waits {
    Stage all;      // each waits for all of these,
    Stage instead;  // or for one of these
    After operator()(std::uint32_t i, std::uint32_t n) const {
      return instead.empty() ? after_all(all) : after(instead[instead.size() * i / n]);
    }
  };
  /// Each task of the next stage waits for all of `before`. Where there are many, it waits for one of few that do.
  Waits between(const Stage& before, std::size_t next) {
    Waits waits{before, {}};
    if (next <= kMostSuccessors) return waits;
    const After all = after_all(before);
    for (std::size_t i = 0; i < (next + kMostSole - 1) / kMostSole; ++i)
      waits.instead.push_back(graph_.add(PrefillBetween{}, all));
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
  std::vector<Stage> appended_;  // of a layer: of each key and value head, with whose end those of all tiles so far are there
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
    size.read =
        runtime.load(PrefillBuilder(runtime, config, weights, texts, memory_, rows, size.products).build());
  }
}

std::uint32_t Prefill::next_count(std::uint32_t count, bool short_parts) {
  return std::min<std::uint32_t>(count, short_parts ? kShortPart : kMostPrefillRows);
}

Run Prefill::submit(std::uint32_t text, std::uint32_t first, std::uint32_t end, bool whole) {
  Stretch stretch{text, first, end - first, {}};
  for (std::uint32_t tile = 0; auto& live : stretch.of_tiles) {
    const std::uint32_t before = std::min(stretch.count, tile++ * kPrefillTile);
    live = std::min<std::uint32_t>(stretch.count - before, kPrefillTile);
  }
  memory_.stretch.write({stretch});
  const auto fits = [&](const Size& size) {
    return static_cast<std::uint32_t>(size.rows) >= stretch.count && (whole || size.rows > kFewRows || sizes_.size() == 1);
  };
  return runtime_.submit(std::ranges::find_if(sizes_, fits)->read);
}

}  // namespace llama
