#include "apps/llama/portable/graph.hpp"

#include <algorithm>
#include <limits>

#include "apps/llama/decode/request.hpp"
#include "apps/llama/decode/stage.hpp"
#include "apps/llama/portable/projections.cuh"
#include "apps/llama/portable/sample.cuh"

namespace llama {
namespace {

struct Tile {
  int first, last;  // rows
};

/// A tile must have work for every thread group of a GPU block, or for some microseconds of a CPU.
constexpr int kRowsOfGpuTile = 16;
constexpr int kWeightsOfCpuTile = 32768;

std::vector<Tile> tiles_of(const MatrixBuffer& m, int workers, bool on_gpu) {
  const int least = on_gpu ? kRowsOfGpuTile : kWeightsOfCpuTile / m.matrix.columns;
  const int rows = std::max({(m.rows + workers - 1) / workers, least, 1});
  std::vector<Tile> tiles;
  for (int first = 0; first < m.rows; first += rows) tiles.push_back({first, std::min(first + rows, m.rows)});
  return tiles;
}

/// More edges than this between two stages, and a Join goes between them.
constexpr std::size_t kMostEdges = 4096;

class Builder {
 public:
  Builder(const Runtime& runtime, const Config& config, const Weights& weights, const PortableMemory& memory)
      : workers_(static_cast<int>(runtime.workers())),
        on_gpu_(runtime.on_gpu()),
        config_(config),
        weights_(weights),
        memory_(memory),
        eps_(static_cast<float>(config.rms_norm_eps)) {
    result_.settings = graph().param<RunSettings>();
  }

  PortableGraph build() && {
    Stage done{graph().add(Embed{weights_.embedding.matrix, state(), memory_.x.data()})};
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) done = add_layer(layer, done);
    add_sample(add_logits(done));
    return std::move(result_);
  }

 private:
  Graph& graph() { return result_.graph; }
  StepState* state() const { return memory_.state.data(); }
  Norm norm(const Buffer<float>& weights) const { return {weights.data(), eps_}; }

  /// One task for each tile of `m`'s rows, after all of `before`.
  template <class MakeTask>
  Stage add_tiles(const MatrixBuffer& m, const Stage& before, MakeTask&& make_task) {
    const std::vector<Tile> tiles = tiles_of(m, workers_, on_gpu_);
    const After waits = meet(before, tiles.size());
    Stage stage;
    for (const Tile tile : tiles) stage.push_back(graph().add(make_task(tile), waits));
    return stage;
  }

  After meet(const Stage& before, std::size_t followers) {
    if (before.size() * followers <= kMostEdges) return after_all(before);
    return after(graph().add(Join{}, after_all(before)));
  }

  Stage add_layer(std::size_t index, const Stage& before) {
    const LayerWeights& w = weights_.layers[index];
    float* const x = memory_.x.data();
    const Stage projected = add_tiles(w.qkv, before, [&](Tile t) {
      return ProjectNormed{w.qkv.matrix, norm(w.attention_norm), x, memory_.qkv.data(), t.first, t.last, w.qkv_bias.data()};
    });
    const Stage attended = add_attention(index, projected);
    const Stage added = add_tiles(w.output, attended, [&](Tile t) {
      return ProjectResidual{w.output.matrix, memory_.attended.data(), x, t.first, t.last};
    });
    const Stage gated = add_tiles(w.gate, added, [&](Tile t) {
      return GateUp{w.gate.matrix, w.up.matrix, norm(w.mlp_norm), x, memory_.inner.data(), t.first, t.last};
    });
    return add_tiles(w.down, gated, [&](Tile t) {
      return ProjectResidual{w.down.matrix, memory_.inner.data(), x, t.first, t.last};
    });
  }

  Stage add_attention(std::size_t index, const Stage& projected) {
    Stage stage;
    for (int head = 0; head < config_.num_attention_heads; ++head)
      stage.push_back(graph().add(attend(index, head), after_all(sources_of(index, head, projected))));
    return stage;
  }

  Attend attend(std::size_t index, int head) const {
    static_assert(kMostHeads <= std::numeric_limits<decltype(Attend::heads)>::max());
    const LayerWeights& w = weights_.layers[index];
    return {memory_.qkv.data(),
            memory_.attended.data(),
            memory_.caches[index].cache,
            memory_.rope.data(),
            w.query_norm.data(),
            w.key_norm.data(),
            state(),
            eps_,
            static_cast<std::uint16_t>(head),
            static_cast<std::uint16_t>(config_.num_attention_heads),
            static_cast<std::uint16_t>(config_.num_key_value_heads),
            config_.window(index)};
  }

  /// The tiles that make a head's query, key and value. Every tile is some head's, so a stage after all heads
  /// is after all tiles too.
  Stage sources_of(std::size_t index, int head, const Stage& projected) const {
    const int heads = config_.num_attention_heads, kv_heads = config_.num_key_value_heads;
    const int key = heads + head / (heads / kv_heads);
    const std::vector<Tile> tiles = tiles_of(weights_.layers[index].qkv, workers_, on_gpu_);
    Stage sources;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const auto makes = [&](int part) {
        return tiles[i].first < (part + 1) * config_.head_dim && tiles[i].last > part * config_.head_dim;
      };
      if (makes(head) || makes(key) || makes(key + kv_heads)) sources.push_back(projected[i]);
    }
    return sources;
  }

  Stage add_logits(const Stage& before) {
    const MatrixBuffer& head = weights_.output();
    return add_tiles(head, before, [&](Tile t) {
      return ProjectLogits{{head.matrix, norm(weights_.final_norm), memory_.x.data(), memory_.logits.data(), t.first, t.last},
                           state(),
                           result_.settings};
    });
  }

  void add_sample(const Stage& logits) {
    graph().add(Sample{memory_.logits.data(), memory_.prompt.data(), memory_.ends.data(), state(), config_.vocab_size,
                       static_cast<std::int32_t>(memory_.ends.size()), result_.settings},
                after_all(logits));
  }

  int workers_;
  bool on_gpu_;
  const Config& config_;
  const Weights& weights_;
  const PortableMemory& memory_;
  float eps_;
  PortableGraph result_;
};

/// For a Config that no file gave: read_config() refuses such heads itself.
void check_heads(const Config& config) {
  const int heads = config.num_attention_heads, kv_heads = config.num_key_value_heads;
  if (heads < 1 || heads > kMostHeads)
    throw RequestError("num_attention_heads is " + std::to_string(heads) + ": give 1 to " + std::to_string(kMostHeads));
  if (kv_heads < 1 || heads % kv_heads != 0)
    throw RequestError("num_key_value_heads is " + std::to_string(kv_heads) + ": give a divisor of num_attention_heads, " +
                       std::to_string(heads));
}

}  // namespace

PortableGraph build_portable_graph(const Runtime& runtime, const Config& config, const Weights& weights,
                                   const PortableMemory& memory) {
  check_heads(config);
  return Builder(runtime, config, weights, memory).build();
}

std::uint32_t portable_scratch_bytes(const Config& config, int context) {
  // Attend: the scores of all positions, and ten rows of a head. Norm: the residual stream. Sample: a sum a thread.
  return static_cast<std::uint32_t>(std::max(context + 10 * config.head_dim, config.hidden_size)) * 4 + 256;
}

}  // namespace llama
