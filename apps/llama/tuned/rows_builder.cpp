#include "apps/llama/tuned/rows_builder.hpp"

namespace llama {
namespace {

using flywheel::Product;
using flywheel::ProductOptions;

const flywheel::Bf16* data_of(const MatrixBuffer& m) { return static_cast<const flywheel::Bf16*>(m.matrix.data); }

std::size_t size_of(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

}  // namespace

RowsMemory::RowsMemory(Runtime& runtime, const Config& config, int count)
    : rows(count),
      x(runtime.allocate<float>(size_of(count, config.hidden_size))),
      qkv(runtime.allocate<float>(size_of(count, config.qkv_size()))),
      queries(runtime.allocate<Half>(size_of(count, config.query_size()))),
      normed(runtime.allocate<flywheel::Bf16>(size_of(count, config.hidden_size))),
      results(runtime.allocate<flywheel::Bf16>(size_of(count, config.query_size()))),
      inner(runtime.allocate<flywheel::Bf16>(size_of(count, config.intermediate_size))),
      stretch(runtime.allocate<Stretch>(1)),
      positions(runtime.allocate<std::int32_t>(static_cast<std::size_t>(count))) {}

std::size_t RowsMemory::bytes(const Config& config, int rows) {
  return size_of(rows, config.hidden_size) * (sizeof(float) + sizeof(Bf16)) + size_of(rows, config.qkv_size()) * sizeof(float) +
         size_of(rows, 2 * config.query_size() + config.intermediate_size) * sizeof(Bf16) + size_of(rows, 1) * sizeof(int);
}

const MatrixBuffer& RowsBuilder::matrix(RowsMatrix which, std::size_t layer) const {
  const LayerWeights& w = weights_.layers[layer];
  switch (which) {
    case RowsMatrix::qkv:
      return w.qkv;
    case RowsMatrix::output:
      return w.output;
    case RowsMatrix::gated:
      return w.gate;
    case RowsMatrix::down:
      return w.down;
    default:
      return weights_.output();
  }
}

flywheel::Bf16* RowsBuilder::input_of(RowsMatrix which) const {
  return which == RowsMatrix::output ? memory_.results.data()
         : which == RowsMatrix::down ? memory_.inner.data()
                                     : memory_.normed.data();
}

float* RowsBuilder::sums_of(RowsMatrix which) const {
  return which == RowsMatrix::qkv ? memory_.qkv.data() : which == RowsMatrix::logits ? texts_.logits.data() : memory_.x.data();
}

Product RowsBuilder::product(RowsMatrix which, std::size_t layer, const Cut& cut) const {
  const MatrixBuffer& m = matrix(which, layer);
  const auto narrow = [](int n) { return static_cast<std::uint32_t>(n); };
  const std::uint32_t columns = narrow(m.matrix.columns), all = narrow(rows_), outputs = narrow(m.rows);
  const flywheel::Matrix<const flywheel::Bf16> a{input_of(which), all, columns};
  const flywheel::Matrix<const flywheel::Bf16> b{data_of(m), outputs, columns};
  ProductOptions options = cut.options;
  if (which == RowsMatrix::gated) {
    options.second_b = data_of(weights_.layers[layer].up);
    return {runtime_, a, b, flywheel::Matrix<flywheel::Bf16>{memory_.inner.data(), all, outputs}, options};
  }
  return {runtime_, a, b, flywheel::Matrix<float>{cut.sums, all, outputs}, options};
}

/// Whether the parts of sums are left to the tasks of the next phase.
bool RowsBuilder::is_left(RowsMatrix which) const {
  return !whole_sums_ && (which == RowsMatrix::qkv || which == RowsMatrix::output || which == RowsMatrix::down);
}

/// Products of one matrix are cut alike in all layers, and share the memory for parts of tiles.
const RowsBuilder::Cut& RowsBuilder::cut(RowsMatrix which) {
  std::optional<Cut>& known = cuts_.at(static_cast<std::size_t>(which));
  if (known) return *known;
  Cut mine{{.live_rows = &memory_.stretch.data()->count, .constant_b = true, .leave_parts = is_left(which)}, sums_of(which)};
  mine.options.add = !is_left(which) && (which == RowsMatrix::output || which == RowsMatrix::down);
  if (whole_sums_) mine.options.splits = 1;
  const Product first = product(which, 0, mine);
  const auto allocate = [&](std::size_t values) {
    return memory_.partials.emplace_back(runtime_.allocate<float>(values)).data();
  };
  if (first.partial_values() > 0) mine.options.partials = allocate(first.partial_values());
  if (is_left(which)) {
    mine.options.splits = first.splits();
    mine.options.tile_columns = first.tile_columns();
    mine.parts = static_cast<int>(first.splits());
    mine.sums = allocate(size_of(rows_ * mine.parts, matrix(which, 0).rows));
  }
  return known.emplace(mine);
}

PartSums RowsBuilder::sums_for_tasks(RowsMatrix which) {
  const Cut& how = cut(which);
  return {how.sums, how.parts, rows_};
}

void RowsBuilder::add_norm(const Buffer<float>& weights, std::optional<RowsMatrix> before) {
  const PartSums added = before && is_left(*before) ? sums_for_tasks(*before) : PartSums{};
  graph_.phase();
  for (int first = 0; first < rows_; first += few_rows())
    graph_.add(PrefillNorm{rows(first, few_rows()), added, memory_.x.data(), weights.data(), memory_.normed.data(),
                           config_.hidden_size, eps_});
}

void RowsBuilder::add_product(RowsMatrix which, std::size_t layer, const PrefillEnd& end) {
  graph_.phase();
  products_.emplace_back(product(which, layer, cut(which))).add_to(graph_, {}, end);
}

void RowsBuilder::add_rest(std::size_t layer) {
  add_product(RowsMatrix::output, layer, {});
  add_norm(weights_.layers[layer].mlp_norm, RowsMatrix::output);
  add_product(RowsMatrix::gated, layer, {});
  add_product(RowsMatrix::down, layer, {});
}

}  // namespace llama
