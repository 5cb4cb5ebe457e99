#include "apps/llama/tuned/graph.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "apps/llama/decode/request.hpp"
#include "apps/llama/decode/stage.hpp"
#include "apps/llama/tuned/attend.cuh"
#include "apps/llama/tuned/fitness.hpp"
#include "apps/llama/tuned/gate.cuh"
#include "apps/llama/tuned/share.hpp"

namespace llama {
namespace {

/// A worker that attends comes later to the next matrix than others, by the time that so many bytes take
/// (0.596 ms a token against 0.623 with 0, see tuning.md).
constexpr double kAttentionBytes = 80e3;

/// Of a warp, for the products of steps with so many sequences.
int scratch_of_products(const Config& config, int sequences) {
  int most = 0;
  for (const int columns : {config.hidden_size, config.query_size(), config.intermediate_size})
    most = std::max(most, product_scratch(columns, sequences));
  return most;
}

const Bf16* bf16_of(const MatrixBuffer& m) { return static_cast<const Bf16*>(m.matrix.data); }

class Builder {
 public:
  /// `in_turn`: a worker has one task after the other, and not each a place of its own.
  Builder(int workers, bool in_turn, const Config& config, const Weights& weights, TunedMemory& memory)
      : config_(config),
        weights_(weights),
        memory_(memory),
        workers_(workers),
        in_turn_(in_turn),
        share_(workers),
        eps_(static_cast<float>(config.rms_norm_eps)) {}

  TunedGraph build() && {
    Stage done;
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) done = add_layer(layer, done);
    add_choice(add_logits(done));
    result_.embed.add(embed());
    return std::move(result_);
  }

 private:
  Graph& graph() { return result_.decode; }
  // The residual stream as its stage `residual_` left it. The first is of the pass before: the choice, or the embedding.
  Stamped* x(std::size_t stage) const { return memory_.x.data() + stage * sequences() * size(config_.hidden_size); }
  Stamped* packed_x(std::size_t stage) const {
    return memory_.packed_x.data() + stage * packed_size(memory_.sequences, config_.hidden_size);
  }
  Stamped* squares(std::size_t stage) const { return memory_.squares.data() + stage * size(memory_.squares_of_stage); }
  std::size_t sequences() const { return size(memory_.sequences); }
  static std::size_t size(int n) { return static_cast<std::size_t>(n); }

  NormInput normed(const Buffer<float>& weights, const Stage& makers) const {
    return {x(residual_), weights.data(), squares(residual_), std::max(1, static_cast<int>(makers.size())), eps_};
  }
  ResidualOutput output(std::size_t stage, const Buffer<float>& norm, int part) const {
    return {x(stage), packed_x(stage), norm.data(), squares(stage) + size(part) * sequences()};
  }
  TiledInput residual() const { return input(packed_x(residual_), residual_ == 0); }
  TiledInput input(const Stamped* packed, bool old) const {
    return {packed, static_cast<std::int16_t>(memory_.sequences), old, residual_ == 0,
            static_cast<std::uint16_t>(scratch_of_products(config_, memory_.sequences))};
  }
  TunedEmbed embed() const {
    return {bf16_of(weights_.embedding), output(0, weights_.layers.front().attention_norm, 0), memory_.states.data(),
            config_.hidden_size, memory_.sequences};
  }

  /// Units (groups of rows, or pairs of such) of a task at most, `unit` of which are one: tasks whose input is streamed keep
  /// the sums of all their groups, and those of one worker or few do not count more bytes than fit 32 bits.
  static int most_units(const TileShape& unit) {
    constexpr std::uint32_t kMostBytes = 1u << 30;
    const int by_bytes = static_cast<int>(std::max(1u, kMostBytes / unit.bytes()));
    return unit.streamed() ? kStreamedGroups / unit.groups : by_bytes;
  }
  /// Of `units` such units.
  std::vector<Share> share_out(int units, const TileShape& unit) { return share_(units, unit.bytes(), most_units(unit)); }

  Stage note(const char* name, Stage stage) {
    StageTasks& noted = result_.stages.emplace_back(StageTasks{name, {}});
    for (const TaskRef<>& task : stage) noted.tasks.push_back(task.index);
    return stage;
  }

  template <class Make>
  Stage add_rows(const char* name, const MatrixBuffer& m, const TiledInput& input, const Stage& before, Make&& make) {
    const int columns = m.matrix.columns, groups = (m.rows + kGroupRows - 1) / kGroupRows;
    return add_shares(name, share_out(groups, {columns, 1, memory_.sequences}), before, [&](const Share& share) {
      return make(RowsTask{{input, columns, share.count}, bf16_of(m), m.rows, share.first});
    });
  }
  template <class Make>
  Stage add_shares(const char* name, const std::vector<Share>& shares, const Stage& before, Make&& make) {
    const After waits = after_all(before);
    Stage stage;
    for (const Share& share : shares) {
      stage.push_back(graph().add(make(share), waits));
      graph().place(stage.back(), static_cast<std::uint32_t>(share.worker));
    }
    return note(name, std::move(stage));
  }

  Stage add_layer(std::size_t index, const Stage& before) {
    const LayerWeights& w = weights_.layers[index];
    const Stage projected = add_projection(index, before);
    const Stage attended = add_attention(index, projected);
    const Stage added = add_residual(
        "output", w.output, {input(results(index), false), memory_.partials(config_, index).results()}, attended, w.mlp_norm);
    const bool last = index + 1 == weights_.layers.size();
    const auto& after = last ? weights_.final_norm : weights_.layers[index + 1].attention_norm;
    const Stage gated = add_gates(index, added);
    return add_residual("down", w.down, {input(inner(index), false), memory_.inner.data()}, gated, after);
  }

  Stage add_projection(std::size_t index, const Stage& before) {
    const LayerWeights& w = weights_.layers[index];
    const auto plain = [&](const RowsTask& rows) { return TunedProject{rows, normed(w.attention_norm, before), qkv(index)}; };
    if (w.qkv_bias.size() == 0) return add_rows("qkv", w.qkv, residual(), before, plain);
    return add_rows("qkv", w.qkv, residual(), before, [&](const RowsTask& rows) {
      return TunedProjectBiased{plain(rows), w.qkv_bias.data()};
    });
  }

  Stamped* qkv(std::size_t layer) const { return memory_.qkv.data() + layer * sequences() * size(config_.qkv_size()); }
  Stamped* results(std::size_t layer) const {
    return memory_.packed_results.data() + layer * packed_size(memory_.sequences, config_.query_size());
  }
  Stamped* inner(std::size_t layer) const {
    return memory_.packed_inner.data() + layer * packed_size(memory_.sequences, config_.intermediate_size);
  }

  struct Input {
    TiledInput tiled;
    const float* portable;
  };
  /// One more stage of the residual stream.
  Stage add_residual(const char* name, const MatrixBuffer& m, const Input& input, const Stage& before,
                     const Buffer<float>& next_norm) {
    int part = 0;
    Stage stage = add_rows(name, m, input.tiled, before, [&](const RowsTask& rows) {
      return TunedResidual{rows, input.portable, x(residual_), output(residual_ + 1, next_norm, part++)};
    });
    ++residual_;
    return stage;
  }

  Stage add_gates(std::size_t layer, const Stage& before) {
    const LayerWeights& w = weights_.layers[layer];
    const int all = w.gate.rows, columns = w.gate.matrix.columns;
    const auto shares = share_out((all + kGroupRows - 1) / kGroupRows, {columns, 2, memory_.sequences});
    return add_shares("gate and up", shares, before, [&](const Share& s) {
      return TunedGateUp{{residual(), columns, 2 * s.count},
                         bf16_of(w.gate),
                         bf16_of(w.up),
                         normed(w.mlp_norm, before),
                         memory_.inner.data(),
                         inner(layer),
                         all,
                         s.first};
    });
  }

  /// Each on a worker of its own if there are as many, who comes later to the matrix that is next. Parts of a context wait for
  /// each other, see join.cuh.
  Stage add_attention(std::size_t index, const Stage& projected) {
    const After waits = after_all(projected);
    const int group = config_.num_attention_heads / config_.num_key_value_heads;
    Stage stage;
    for (int split = 0; split < memory_.splits; ++split)
      for (int sequence = 0; sequence < memory_.sequences; ++sequence)
        for (int head = 0; head < config_.num_attention_heads; head += group)
          stage.push_back(graph().add(attend(index, sequence, head, split, group), waits));
    if (stage.size() <= size(workers_)) {
      const std::vector<int> workers = share_.occupy(static_cast<int>(stage.size()), in_turn_ ? kAttentionBytes : 0);
      for (std::size_t i = 0; i < stage.size(); ++i) graph().place(stage[i], static_cast<std::uint32_t>(workers[i]));
    }
    if (memory_.splits > 1) graph().together(stage);
    return note("attend", std::move(stage));
  }

  TunedAttend attend(std::size_t index, int sequence, int head, int split, int group) const {
    const LayerWeights& w = weights_.layers[index];
    static_assert(kMostTunedHeads <= std::numeric_limits<decltype(AttendTask::kv_heads)>::max());
    const auto byte = [](int i) { return static_cast<std::uint8_t>(i); };
    return {{qkv(index),
             memory_.partials(config_, index),
             {memory_.keys[index].data(), memory_.values_cache[index].data()},
             memory_.rope.data(),
             w.query_norm.data(),
             w.key_norm.data(),
             memory_.states.data(),
             results(index),
             eps_,
             memory_.context,
             byte(sequence),
             byte(config_.num_key_value_heads),
             byte(head / group),
             byte(head),
             byte(group),
             byte(split)}};
  }

  Stage add_logits(const Stage& before) {
    const MatrixBuffer& head = weights_.output();
    const int columns = head.matrix.columns, groups = (head.rows + kGroupRows - 1) / kGroupRows;
    const auto shares = share_out(groups, {columns, 1, memory_.sequences});
    const int tasks = static_cast<int>(shares.size());
    memory_.provide_best(first_rows(shares, head.rows));
    std::int32_t index = 0;
    return add_shares("logits", shares, before, [&](const Share& s) {
      return TunedLogits{{{residual(), columns, s.count}, bf16_of(head), head.rows, s.first},
                         normed(weights_.final_norm, before),
                         memory_.logits.data(),
                         memory_.best.data(),
                         index++,
                         tasks};
    });
  }

  /// Of each share, and where the last one ends.
  static std::vector<std::int32_t> first_rows(const std::vector<Share>& shares, int rows) {
    std::vector<std::int32_t> first;
    for (const Share& share : shares) first.push_back(share.first * kGroupRows);
    first.push_back(rows);
    return first;
  }

  void add_choice(const Stage& logits) {
    memory_.choice.write(
        {{memory_.logits.data(), memory_.best.data(), memory_.first_rows.data(), memory_.prompt.data(), memory_.ends.data(),
          memory_.writing.data(), config_.vocab_size, static_cast<std::int32_t>(logits.size()), memory_.context,
          static_cast<std::int32_t>(memory_.ends.size())}});
    Stage stage;
    for (int s = 0; s < memory_.sequences; ++s)
      stage.push_back(graph().add(TunedChoose{memory_.choice.data(), embed(), memory_.states.data(), memory_.texts.data(), s},
                                  after_all(logits)));
    note("choose", std::move(stage));
  }

  const Config& config_;
  const Weights& weights_;
  TunedMemory& memory_;
  int workers_;
  bool in_turn_;
  Sharer share_;
  float eps_;
  std::size_t residual_ = 0;  // stages of the residual stream so far
  TunedGraph result_;
};

}  // namespace

int sequences_for(int texts) {
  if (texts < 1 || texts > kMostSequences)
    throw RequestError("the tuned tasks write 1 to " + std::to_string(kMostSequences) + " texts at once, not " +
                       std::to_string(texts) + ": write the others after them");
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(texts)));
}

TunedGraph build_tuned_graph(const Runtime& runtime, const Config& config, const Weights& weights, TunedMemory& memory) {
  check_tuned(config, weights, memory);
  return Builder(static_cast<int>(runtime.workers()), true, config, weights, memory).build();
}

TunedGraph build_tuned_graph(int places, const Config& config, const Weights& weights, TunedMemory& memory) {
  check_tuned(config, weights, memory);
  return Builder(places, false, config, weights, memory).build();
}

std::uint32_t tuned_scratch_bytes(const Config& config, bool on_gpu, int context, int sequences) {
  int products = 0;
  for (int some = 1; some <= sequences; some *= 2)
    products = std::max(products, kTileWarps * scratch_of_products(config, some));
  // Portable bodies: a whole input, or the weights of a part of the context.
  const int portable = 4 * std::max({config.hidden_size, config.query_size(),
                                     2 * config.head_dim + std::max(context + kFewestPositions, kAlone)});
  const int tuned = std::max(TunedAttend::scratch_bytes(config.head_dim), chooser_scratch<kTileWarps * kLanes>());
  // On a GPU these two borrow the rest: with heads of 64 that leaves room for an eighth page of operands.
  constexpr int kBorrowed = kHandoffs * kHandoffBytes;
  return static_cast<std::uint32_t>(std::max(products, on_gpu ? tuned - kBorrowed : std::max(tuned, portable)) + 256);
}

}  // namespace llama
