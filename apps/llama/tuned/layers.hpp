// The stages of layers, which the graph of a decode step and that of a step that reads a prompt have in common.
#pragma once

#include <algorithm>

#include "apps/llama/checkpoint/weights.hpp"
#include "apps/llama/decode/stage.hpp"
#include "apps/llama/tuned/attend.cuh"
#include "apps/llama/tuned/gate.cuh"
#include "apps/llama/tuned/graph.hpp"
#include "apps/llama/tuned/share.hpp"

namespace llama {

/// Where tasks of a graph run: on so many workers, one after the other on each (`in_turn`), or each in a place of its own.
struct Places {
  int count;
  bool in_turn;
};

/// Adds stage after stage to a graph. The residual stream of a step as its stage `residual_` left it is the input of the next;
/// the first is of the pass before.
class LayerBuilder {
 public:
  LayerBuilder(const Places& places, const Config& config, const StreamedWeights& weights, StepMemory& memory,
               const TunedMemory& texts)
      : config_(config),
        streamed_(weights),
        weights_(weights.plain()),
        places_(places),
        eps_(static_cast<float>(config.rms_norm_eps)),
        memory_(memory),
        texts_(texts),
        share_(places.count) {}

 protected:
  Graph& graph() { return result_.decode; }
  std::size_t layers() const { return weights_.layers.size(); }
  std::size_t sequences() const { return size(memory_.sequences); }
  static std::size_t size(int n) { return static_cast<std::size_t>(n); }
  /// Of a layer, where it is shorter than the context; else 0.
  int window(std::size_t layer) const {
    const int own = config_.window(layer);
    return own < texts_.positions ? own : 0;
  }
  /// Query heads of one key and value head.
  int heads_of_group() const { return config_.num_attention_heads / config_.num_key_value_heads; }

  Stage add_qkv(std::size_t layer, const Stage& before);
  /// After attention.
  Stage add_rest(std::size_t layer, const Stage& attended);

  NormInput normed(const Buffer<float>& weights, const Stage& makers) const {
    return {x(residual_), weights.data(), squares(residual_), std::max(1, static_cast<int>(makers.size())), eps_};
  }
  TiledInput residual() const { return input(packed_x(residual_), residual_ == 0); }
  TunedEmbed embed() const;
  AttendTask attend(std::size_t layer, int sequence, const HeadSlice& heads, int split) const;
  Stamped* qkv(std::size_t layer) const { return memory_.qkv.data() + layer * sequences() * size(config_.qkv_size()); }

  /// What tasks of a share of the matrix have in common.
  RowsTask rows_of(const MatrixBuffer& m, TiledInput input, const Share& s) const;
  /// Shares of rows in units of one group.
  std::vector<Share> share_rows(const MatrixBuffer& m) {
    return share_out((m.rows + kGroupRows - 1) / kGroupRows, {m.matrix.columns, 1, memory_.sequences});
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
  /// Each on a worker of its own if there are as many, who comes later to the matrix that is next.
  void place_attention(const Stage& stage);
  Stage note(const char* name, Stage stage);

  const Config& config_;
  const StreamedWeights& streamed_;
  const Weights& weights_;
  const Places places_;
  const float eps_;
  TunedGraph result_;

 private:
  struct Input {
    TiledInput tiled;
    const float* portable;
  };

  Stamped* x(std::size_t stage) const { return memory_.x.data() + stage * sequences() * size(config_.hidden_size); }
  Stamped* packed_x(std::size_t stage) const {
    return memory_.packed_x.data() + stage * packed_size(memory_.sequences, config_.hidden_size);
  }
  Stamped* squares(std::size_t stage) const { return memory_.squares.data() + stage * size(memory_.squares_of_stage); }
  Stamped* results(std::size_t layer) const {
    return memory_.packed_results.data() + layer * packed_size(memory_.sequences, config_.query_size());
  }
  Stamped* inner(std::size_t layer) const {
    return memory_.packed_inner.data() + layer * packed_size(memory_.sequences, config_.intermediate_size);
  }
  ResidualOutput output(std::size_t stage, const Buffer<float>& norm, int part) const {
    return {x(stage), packed_x(stage), norm.data(), squares(stage) + size(part) * sequences()};
  }
  TiledInput input(const Stamped* packed, bool old) const;
  std::vector<Share> share_out(int units, const TileShape& unit);
  /// One more stage of the residual stream.
  Stage add_residual(const char* name, const MatrixBuffer& m, const Input& input, const Stage& before,
                     const Buffer<float>& next_norm);
  Stage add_gates(std::size_t layer, const Stage& before);

  StepMemory& memory_;
  const TunedMemory& texts_;
  Sharer share_;
  std::size_t residual_ = 0;  // stages of the residual stream so far
};

/// A matrix that is loaded as bf16.
inline const Bf16* bf16_of(const MatrixBuffer& m) { return static_cast<const Bf16*>(m.matrix.data); }

/// Scratch memory of a warp, for the products of steps with so many sequences.
int scratch_of_products(const Config& config, int sequences);

}  // namespace llama
