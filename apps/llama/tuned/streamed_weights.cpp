#include "apps/llama/tuned/streamed_weights.hpp"

#include <algorithm>

namespace llama {
namespace {

constexpr std::size_t kSliceBytes = std::size_t{32} << 20;  // of what is read back at once

/// True if any of these has a rest; for a few that have none, too. No branch, and 16 bits throughout: a compiler makes vectors
/// of it, which look at 2.5 GB/s where 32 bits take four times as long.
bool may_have_rest(const Bf16* weights, int count) {
  constexpr std::uint32_t kLeast = std::bit_cast<std::uint32_t>(kLeastExactWeight) >> 16;
  constexpr std::uint32_t kMost = std::bit_cast<std::uint32_t>(kMostExactWeight) >> 16;
  std::uint16_t any = 0;
  for (int i = 0; i < count; ++i) {
    const auto size = static_cast<std::uint16_t>(weights[i].bits & 0x7fffu), below = static_cast<std::uint16_t>(size - 1);
    any |= static_cast<std::uint16_t>((below < kLeast - 1) | (size > kMost));
  }
  return any != 0;
}

std::vector<const MatrixBuffer*> streamed_by(const Weights& weights) {
  std::vector<const MatrixBuffer*> all{&weights.output()};
  for (const LayerWeights& w : weights.layers) all.insert(all.end(), {&w.qkv, &w.output, &w.gate, &w.up, &w.down});
  return all;
}

}  // namespace

void PatchList::add_row(const Bf16* weights, int columns) {
  const auto row = static_cast<std::int32_t>(first.size() - 1);
  constexpr int kLookedAtOnce = 64;
  for (int begin = 0; begin < columns; begin += kLookedAtOnce) {
    const int end = std::min(columns, begin + kLookedAtOnce);
    if (!may_have_rest(weights + begin, end - begin)) continue;
    for (int column = begin; column < end; ++column)
      if (const float rest = rest_of_weight(weights[column].bits); rest != 0) patches.push_back({row, column, rest});
  }
  first.push_back(static_cast<std::uint32_t>(patches.size()));
}

StreamedWeights::StreamedWeights(Runtime& runtime, const Weights& weights) : weights_(weights) {
  std::vector<StreamedMatrix> all;
  for (const MatrixBuffer* m : streamed_by(weights)) {
    if (!m->matrix.data || !m->matrix.is_bf16 || !index_.emplace(m->matrix.data, all.size()).second) continue;
    if (runtime.on_gpu()) owned_.push_back(find_patches(runtime, *m));
    const Patches none, &found = runtime.on_gpu() ? owned_.back() : none;
    all.push_back({static_cast<const Bf16*>(m->matrix.data), found.first.data(), found.all.data()});
  }
  if (!all.empty()) matrices_ = runtime.upload(all);
}

const StreamedMatrix* StreamedWeights::of(const MatrixBuffer& matrix) const {
  const auto found = index_.find(matrix.matrix.data);
  return found == index_.end() ? nullptr : matrices_.data() + found->second;
}

bool StreamedWeights::has_patches(const MatrixBuffer& matrix, int first, int end) const {
  const auto found = index_.find(matrix.matrix.data);
  if (found == index_.end() || found->second >= owned_.size()) return false;  // CPU workers take no patches
  const std::vector<std::uint32_t>& begins = owned_[found->second].first_on_host;
  const auto begin_of = [&](int row) { return begins[std::min(static_cast<std::size_t>(row), begins.size() - 1)]; };
  return begin_of(first) < begin_of(end);
}

StreamedWeights::Patches StreamedWeights::find_patches(Runtime& runtime, const MatrixBuffer& matrix) {
  const auto columns = static_cast<std::size_t>(matrix.matrix.columns), row_bytes = columns * sizeof(Bf16);
  const std::size_t rows = static_cast<std::size_t>(matrix.rows),
                    rows_at_once = std::max<std::size_t>(1, kSliceBytes / row_bytes);
  std::vector<Bf16> slice(std::min(rows, rows_at_once) * columns);
  PatchList list;
  for (std::size_t row = 0; row < rows; row += rows_at_once) {
    const std::size_t count = std::min(rows_at_once, rows - row);
    matrix.bytes.read(reinterpret_cast<unsigned char*>(slice.data()), count * row_bytes, row * row_bytes);
    for (std::size_t i = 0; i < count; ++i) list.add_row(slice.data() + i * columns, matrix.matrix.columns);
  }
  count_ += list.patches.size();
  Buffer<std::uint32_t> first_on_device = runtime.upload(list.first);
  return {std::move(list.first), std::move(first_on_device),
          list.patches.empty() ? Buffer<Patch>() : runtime.upload(list.patches)};
}

}  // namespace llama
