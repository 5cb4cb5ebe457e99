#include "apps/llama/tuned/layers.hpp"

#include <limits>

#include "apps/llama/tuned/fitness.hpp"

namespace llama {
namespace {

/// A worker that attends comes later to the next matrix than others, by the time that so many bytes take
/// (0.596 ms a token against 0.623 with 0, see tuning.md).
constexpr double kAttentionBytes = 80e3;

/// Units (groups of rows, or pairs of such) of a task at most, `unit` of which are one: tasks whose input is streamed keep
/// the sums of all their groups, and those of one worker or few do not count more bytes than fit 32 bits.
int most_units(const TileShape& unit) {
  constexpr std::uint32_t kMostBytes = 1u << 30;
  const int by_bytes = static_cast<int>(std::max(1u, kMostBytes / unit.bytes()));
  return unit.streamed() ? streamed_groups(unit.columns, unit.sequences) / unit.groups : by_bytes;
}

}  // namespace

int scratch_of_products(const Config& config, int sequences) {
  int most = 0;
  for (const int columns : {config.hidden_size, config.query_size(), config.intermediate_size})
    most = std::max(most, product_scratch(columns, sequences));
  return most;
}

TiledInput LayerBuilder::input(const Stamped* packed, bool old) const {
  return {packed, static_cast<std::int16_t>(memory_.sequences),
          old,    residual_ == 0,
          false,  static_cast<std::uint16_t>(scratch_of_products(config_, memory_.sequences))};
}

RowsTask LayerBuilder::rows_of(const MatrixBuffer& m, TiledInput input, const Share& s) const {
  input.patched = streamed_.has_patches(m, s.first * kGroupRows, (s.first + s.count) * kGroupRows);
  return {{input, m.matrix.columns, s.count}, streamed_.of(m), m.rows, s.first};
}

TunedEmbed LayerBuilder::embed() const {
  return {bf16_of(weights_.embedding), output(0, weights_.layers.front().attention_norm, 0), memory_.states.data(),
          config_.hidden_size, memory_.sequences};
}

std::vector<Share> LayerBuilder::share_out(int units, const TileShape& unit) {
  return share_(units, unit.bytes(), most_units(unit));
}

Stage LayerBuilder::note(const char* name, Stage stage) {
  StageTasks& noted = result_.stages.emplace_back(StageTasks{name, {}});
  for (const TaskRef<>& task : stage) noted.tasks.push_back(task.index);
  return stage;
}

void LayerBuilder::place_attention(const Stage& stage) {
  if (stage.size() > size(places_.count)) return;
  const std::vector<int> workers = share_.occupy(static_cast<int>(stage.size()), places_.in_turn ? kAttentionBytes : 0);
  for (std::size_t i = 0; i < stage.size(); ++i) graph().place(stage[i], static_cast<std::uint32_t>(workers[i]));
}

Stage LayerBuilder::add_qkv(std::size_t layer, const Stage& before) {
  const LayerWeights& w = weights_.layers[layer];
  const auto plain = [&](const Share& s) {
    return TunedProject{rows_of(w.qkv, residual(), s), normed(w.attention_norm, before), qkv(layer)};
  };
  const auto shares = share_rows(w.qkv);
  if (w.qkv_bias.size() == 0) return add_shares("qkv", shares, before, plain);
  return add_shares("qkv", shares, before, [&](const Share& s) { return TunedProjectBiased{plain(s), w.qkv_bias.data()}; });
}

AttendTask LayerBuilder::attend(std::size_t layer, int sequence, const HeadSlice& heads, int split) const {
  const LayerWeights& w = weights_.layers[layer];
  static_assert(kMostTunedHeads <= std::numeric_limits<decltype(AttendTask::kv_heads)>::max());
  const auto byte = [](int i) { return static_cast<std::uint8_t>(i); };
  return {qkv(layer),
          memory_.partials(config_, layer),
          texts_.cache(layer),
          texts_.rope.data(),
          w.query_norm.data(),
          w.key_norm.data(),
          memory_.states.data(),
          results(layer),
          eps_,
          texts_.context,
          byte(sequence),
          byte(config_.num_key_value_heads),
          byte(heads.first / heads_of_group()),
          byte(heads.first),
          byte(heads.count),
          heads.first % heads_of_group() == 0,
          byte(split),
          static_cast<std::uint16_t>(window(layer))};
}

Stage LayerBuilder::add_rest(std::size_t layer, const Stage& attended) {
  const LayerWeights& w = weights_.layers[layer];
  const Input attention{input(results(layer), false), memory_.partials(config_, layer).results()};
  const Stage added = add_residual("output", w.output, attention, attended, w.mlp_norm);
  const auto& after = layer + 1 == layers() ? weights_.final_norm : weights_.layers[layer + 1].attention_norm;
  const Stage gated = add_gates(layer, added);
  return add_residual("down", w.down, {input(inner(layer), false), memory_.inner.data()}, gated, after);
}

Stage LayerBuilder::add_residual(const char* name, const MatrixBuffer& m, const Input& input, const Stage& before,
                                 const Buffer<float>& next_norm) {
  int part = 0;
  Stage stage = add_shares(name, share_rows(m), before, [&](const Share& s) {
    return TunedResidual{rows_of(m, input.tiled, s), input.portable, x(residual_), output(residual_ + 1, next_norm, part++)};
  });
  ++residual_;
  return stage;
}

Stage LayerBuilder::add_gates(std::size_t layer, const Stage& before) {
  const LayerWeights& w = weights_.layers[layer];
  const int all = w.gate.rows, columns = w.gate.matrix.columns;
  const auto shares = share_out((all + kGroupRows - 1) / kGroupRows, {columns, 2, memory_.sequences});
  return add_shares("gate and up", shares, before, [&](const Share& s) {
    TiledInput input = residual();
    for (const MatrixBuffer* m : {&w.gate, &w.up})
      input.patched |= streamed_.has_patches(*m, s.first * kGroupRows, (s.first + s.count) * kGroupRows);
    return TunedGateUp{{input, columns, 2 * s.count},
                       streamed_.of(w.gate),
                       streamed_.of(w.up),
                       normed(w.mlp_norm, before),
                       memory_.inner.data(),
                       inner(layer),
                       all,
                       s.first};
  });
}

}  // namespace llama
