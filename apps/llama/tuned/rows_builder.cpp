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
      normed(runtime.allocate<flywheel::Bf16>(size_of(count, config.hidden_size))),
      results(runtime.allocate<flywheel::Bf16>(size_of(count, config.query_size()))),
      inner(runtime.allocate<flywheel::Bf16>(size_of(count, config.intermediate_size))),
      stretch(runtime.allocate<Stretch>(1)) {}

std::size_t RowsMemory::bytes(const Config& config, int rows) {
  return size_of(rows, config.hidden_size) * (sizeof(float) + sizeof(Bf16)) + size_of(rows, config.qkv_size()) * sizeof(float) +
         size_of(rows, config.query_size() + config.intermediate_size) * sizeof(Bf16);
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

Product RowsBuilder::product(RowsMatrix which, std::size_t layer, ProductOptions options) const {
  const MatrixBuffer& m = matrix(which, layer);
  const auto narrow = [](int n) { return static_cast<std::uint32_t>(n); };
  const std::uint32_t columns = narrow(m.matrix.columns), all = narrow(rows_), outputs = narrow(m.rows);
  const flywheel::Matrix<const flywheel::Bf16> a{input_of(which), all, columns};
  const flywheel::Matrix<const flywheel::Bf16> b{data_of(m), outputs, columns};
  if (which == RowsMatrix::gated) {
    options.second_b = data_of(weights_.layers[layer].up);
    return {runtime_, a, b, flywheel::Matrix<flywheel::Bf16>{memory_.inner.data(), all, outputs}, options};
  }
  return {runtime_, a, b, flywheel::Matrix<float>{sums_of(which), all, outputs}, options};
}

/// How products are cut: those of one matrix in all layers alike, and they share the memory for parts of tiles.
const ProductOptions& RowsBuilder::cut(RowsMatrix which) {
  std::optional<ProductOptions>& known = cuts_.at(static_cast<std::size_t>(which));
  if (known) return *known;
  ProductOptions options{.live_rows = &memory_.stretch.data()->count};
  options.add = which == RowsMatrix::output || which == RowsMatrix::down;
  if (whole_sums_) options.splits = 1;
  const std::size_t values = product(which, 0, options).partial_values();
  if (values > 0) options.partials = memory_.partials.emplace_back(runtime_.allocate<float>(values)).data();
  return known.emplace(options);
}

void RowsBuilder::add_norm(const Buffer<float>& weights) {
  graph_.phase();
  for (int first = 0; first < rows_; first += few_rows())
    graph_.add(PrefillNorm{rows(first, few_rows()), memory_.x.data(), weights.data(), memory_.normed.data(),
                           config_.hidden_size, eps_});
}

void RowsBuilder::add_product(RowsMatrix which, std::size_t layer, const PrefillEnd& end) {
  graph_.phase();
  products_.emplace_back(product(which, layer, cut(which))).add_to(graph_, {}, end);
}

void RowsBuilder::add_rest(std::size_t layer) {
  add_product(RowsMatrix::output, layer, {});
  add_norm(weights_.layers[layer].mlp_norm);
  add_product(RowsMatrix::gated, layer, {});
  add_product(RowsMatrix::down, layer, {});
}

}  // namespace llama
