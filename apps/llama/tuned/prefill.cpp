#include "apps/llama/tuned/prefill.hpp"

#include <algorithm>
#include <bit>

#include "apps/llama/tuned/prefill_attend.cuh"
#include "apps/llama/tuned/prefill_turn.cuh"
#include "apps/llama/tuned/wide_tasks.cuh"

namespace llama {
namespace {

using flywheel::Product;

/// What graphs are cut for. `whole`: no sum is cut in parts, whose order of adding depends on the rows.
struct CutFor {
  int rows;
  bool whole;
};
constexpr int kFewRows = 512;  // of a prompt: up to here sums are cut in parts, see tuning.md
constexpr CutFor kSizes[] = {{128, false}, {256, false}, {kFewRows, false}, {512, true},
                             {768, true},  {1024, true}, {1536, true},      {kMostPrefillRows, true}};
constexpr int kShortPart = 1024;  // rows of a part while others wait
static_assert(kShortPart >= kFewRows, "prompts of few rows are read in one run");
constexpr int kLeastTogether = 16;  // rows of a task: a warp takes so many

int most_rows(int context) {
  for (const CutFor& size : kSizes)
    if (size.rows >= context) return size.rows;
  return kMostPrefillRows;
}

/// Builds the graph for so many rows.
class PrefillBuilder : RowsBuilder {
 public:
  PrefillBuilder(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts, RowsMemory& memory,
                 CutFor size, std::deque<Product>& products)
      : RowsBuilder(runtime, config, weights, texts, memory, size.rows, size.whole, products) {}

  Graph build(RowsMemory& tail) && {
    add_embeddings();
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) add_layer(layer);
    add_tail(tail);
    return std::move(graph());
  }

 private:
  void add_tail(RowsMemory& tail) {
    graph().phase();
    graph().add(PrefillTail{memory_.stretch.data(), tail.stretch.data(), memory_.x.data(), memory_.queries.data(),
                            tail.x.data(), tail.queries.data(), config_.hidden_size, config_.query_size()});
  }
  void add_embeddings() {
    graph().phase();
    for (int first = 0; first < rows_; first += few_rows())
      graph().add(PrefillEmbed{rows(first, few_rows()), bf16_of(weights_.embedding), texts_.prompt.data(), memory_.x.data(),
                               texts_.context, config_.hidden_size});
  }

  /// The phases of a layer; of the last one, up to its keys and values.
  void add_layer(std::size_t layer) {
    const LayerWeights& w = weights_.layers[layer];
    add_norm(w.attention_norm, layer > 0 ? std::optional(RowsMatrix::down) : std::nullopt);
    add_product(RowsMatrix::qkv, layer, {w.qkv_bias.data()});
    add_turn(layer);
    if (layer + 1 == weights_.layers.size()) return;
    add_attention(layer);
    add_rest(layer);
  }

  /// Rows of a task, of which so many are made for each: a power of 2.
  int rows_of_task(int tasks_of_row) const {
    const auto wanted = static_cast<unsigned>(rows_ * tasks_of_row / kTasksOfStage);
    return std::clamp(static_cast<int>(std::bit_floor(wanted)), kLeastTogether, kPrefillTile);
  }

  void add_turn(std::size_t layer) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const LayerWeights& w = weights_.layers[layer];
    const int heads = config_.num_key_value_heads, count = rows_of_task(heads);
    graph().phase();
    for (int first = 0; first < rows_; first += count)
      for (int head = 0; head < heads; ++head)
        graph().add(PrefillTurn{rows(first, count), sums_for_tasks(RowsMatrix::qkv), texts_.cache(layer), texts_.rope.data(),
                                w.query_norm.data(), w.key_norm.data(), memory_.queries.data(), eps_, texts_.context,
                                narrow(config_.num_attention_heads), narrow(heads), narrow(head), narrow(config_.head_dim)});
  }

  /// The last rows first: they attend to most positions. Each worker gets the next task of every round, so rounds go to and
  /// fro: who had the longest of one has the shortest of the next.
  void add_attention(std::size_t layer) {
    const int heads = config_.num_attention_heads, count = rows_of_task(heads), tasks = rows_ / count * heads;
    const int round = static_cast<int>(runtime().workers());
    graph().phase();
    for (int begin = 0; begin < tasks; begin += round) {
      const int end = std::min(begin + round, tasks);
      for (int i = begin; i < end; ++i) add_attention(layer, count, begin / round % 2 == 0 ? i : begin + end - 1 - i);
    }
  }
  void add_attention(std::size_t layer, int count, int task) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const int heads = config_.num_attention_heads;
    const int first = rows_ - (task / heads + 1) * count;
    graph().add(PrefillAttend{rows(first, count), memory_.queries.data(), texts_.cache(layer), memory_.results.data(),
                              texts_.context, narrow(heads), narrow(config_.num_key_value_heads), narrow(task % heads),
                              narrow(config_.head_dim), window(layer)});
  }
};

/// Goes on with the last row of a run, as a matrix of one row, through what is left of the last layer, to its token.
class TailBuilder : RowsBuilder {
 public:
  TailBuilder(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts, RowsMemory& memory,
              std::deque<Product>& products, Graph begun)
      : RowsBuilder(runtime, config, weights, texts, memory, 1, false, products, std::move(begun)) {}

  Graph build() && {
    const std::size_t layer = weights_.layers.size() - 1;
    add_attention(layer);
    add_rest(layer);
    add_norm(weights_.final_norm, RowsMatrix::down);
    add_product(RowsMatrix::logits, 0, {});
    graph().phase();
    graph().add(PrefillChoose{memory_.stretch.data(), texts_.choice.data(), texts_.states.data(), texts_.texts.data()});
    return std::move(graph());
  }

 private:
  void add_attention(std::size_t layer) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    graph().phase();
    for (int head = 0; head < config_.num_attention_heads; ++head)
      graph().add(PrefillAttend{rows(0, 1), memory_.queries.data(), texts_.cache(layer), memory_.results.data(), texts_.context,
                                narrow(config_.num_attention_heads), narrow(config_.num_key_value_heads), narrow(head),
                                narrow(config_.head_dim), window(layer)});
  }
};

}  // namespace

bool Prefill::knows(const Config& config) { return PrefillAttend::knows(config.head_dim); }

bool Prefill::chooses(const Config& config) { return is_whole_vectors(config.vocab_size); }

std::size_t Prefill::bytes(const Config& config, int context) {
  return RowsMemory::bytes(config, most_rows(context)) + RowsMemory::bytes(config, 1);
}

Prefill::Prefill(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts)
    : runtime_(runtime),
      memory_(runtime, config, most_rows(texts.positions)),
      tail_(runtime, config, 1) {
  for (const CutFor& cut : kSizes) {
    if (cut.rows > memory_.rows || (cut.whole && memory_.rows <= kFewRows)) continue;  // all prompts are few rows then
    Size& size = sizes_.emplace_back();
    size.rows = cut.rows;
    size.whole = cut.whole;
    Graph graph = PrefillBuilder(runtime, config, weights, texts, memory_, cut, size.products).build(tail_);
    if (chooses(config)) graph = TailBuilder(runtime, config, weights, texts, tail_, size.products, std::move(graph)).build();
    size.read = runtime.load(graph);
  }
}

std::uint32_t Prefill::next_count(std::uint32_t count, bool short_parts) {
  return std::min<std::uint32_t>(count, short_parts ? kShortPart : kMostPrefillRows);
}

bool Prefill::is_few(std::size_t tokens) { return tokens <= kFewRows; }

Run Prefill::submit(std::uint32_t text, std::uint32_t first, std::uint32_t end, bool few, bool chooses, bool is_traced) {
  const Stretch stretch{text, first, end - first};
  memory_.stretch.write({stretch});
  tail_.stretch.write({{text, end - 1, chooses ? 1u : 0u}});
  const auto fits = [&](const Size& size) {
    return static_cast<std::uint32_t>(size.rows) >= stretch.count && size.whole == !few;
  };
  const Executable& read = std::ranges::find_if(sizes_, fits)->read;
  return is_traced ? runtime_.submit(read, traced) : runtime_.submit(read);
}

}  // namespace llama
