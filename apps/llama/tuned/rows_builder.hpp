// Graphs of phases whose activations are matrices of many rows: what those that read prompts and those that write many texts
// have in common.
#pragma once

#include <algorithm>
#include <array>
#include <deque>

#include "apps/llama/tuned/layers.hpp"
#include "apps/llama/tuned/prefill_norm.cuh"

namespace llama {

/// The products of a layer, and the one behind all layers.
enum class RowsMatrix { qkv, output, gated, down, logits };
inline constexpr int kRowsMatrices = 5;

/// Whether the logits of a row are whole vectors of 16 bytes, as choosing a token from a matrix of them takes it.
constexpr bool is_whole_vectors(int vocabulary) { return vocabulary % 4 == 0; }

/// Activations of the rows of a run: positions of a prompt, or texts. Each stage of a layer overwrites those of the layer
/// before.
struct RowsMemory {
  RowsMemory(Runtime& runtime, const Config& config, int rows);

  int rows;
  Buffer<float> x;                      // [rows][hidden]: the residual stream
  Buffer<float> qkv;                    // [rows][heads + 2 kv heads][head_dim]
  Buffer<Half> queries;                 // [rows][heads][head_dim]: of prompts, turned
  Buffer<flywheel::Bf16> normed;        // [rows][hidden]
  Buffer<flywheel::Bf16> results;       // [rows][heads][head_dim]: of attention
  Buffer<flywheel::Bf16> inner;         // [rows][intermediate]: gated
  Buffer<Stretch> stretch;              // one
  Buffer<std::int32_t> positions;       // [rows]: of texts, see WideEmbed
  std::vector<Buffer<float>> partials;  // of split tiles, and sums of parts that are left: of each matrix that has some

  /// Device memory that it takes, but for partials.
  static std::size_t bytes(const Config& config, int rows);
};

/// Builds the graph for so many rows.
class RowsBuilder {
 public:
  /// All must outlive it, but for the graph. `products`: must outlive the graph's runs. `whole_sums`: no tile is split. If not,
  /// the parts of sums that the next phase reads value by value are left to it. `begun`: a graph whose phases come before.
  RowsBuilder(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts, RowsMemory& memory,
              int rows, bool whole_sums, std::deque<flywheel::Product>& products, Graph begun = {})
      : config_(config),
        weights_(weights),
        texts_(texts),
        memory_(memory),
        rows_(rows),
        eps_(static_cast<float>(config.rms_norm_eps)),
        runtime_(runtime),
        whole_sums_(whole_sums),
        products_(products),
        graph_(std::move(begun)) {}

 protected:
  static constexpr int kTasksOfStage = 128;  // of those that go by rows: one for most workers of a large GPU

  int few_rows() const { return std::max(rows_ / kTasksOfStage, 1); }
  StretchRows rows(int first, int count) const { return {memory_.stretch.data(), first, count}; }
  /// Of a layer that attends to the last positions alone; 0: to all.
  std::uint16_t window(std::size_t layer) const {
    const int own = config_.window(layer);
    return static_cast<std::uint16_t>(own < texts_.positions ? own : 0);
  }

  /// Of the residual stream. What `before`, if any, has left of its sums is added to it first.
  void add_norm(const Buffer<float>& weights, std::optional<RowsMatrix> before = {});
  /// `layer`: any for logits.
  void add_product(RowsMatrix which, std::size_t layer, const PrefillEnd& end);
  /// What follows attention in a layer.
  void add_rest(std::size_t layer);

  /// The sums of a product, for tasks that add their parts up.
  PartSums sums_for_tasks(RowsMatrix which);

  Graph& graph() { return graph_; }
  Runtime& runtime() const { return runtime_; }

  const Config& config_;
  const Weights& weights_;
  const TunedMemory& texts_;
  RowsMemory& memory_;
  const int rows_;
  const float eps_;

 private:
  /// How the products of a matrix are cut, and where their sums go.
  struct Cut {
    flywheel::ProductOptions options;
    float* sums;
    int parts = 1;  // that are left
  };

  const MatrixBuffer& matrix(RowsMatrix which, std::size_t layer) const;
  flywheel::Bf16* input_of(RowsMatrix which) const;
  float* sums_of(RowsMatrix which) const;
  flywheel::Product product(RowsMatrix which, std::size_t layer, const Cut& cut) const;
  bool is_left(RowsMatrix which) const;
  const Cut& cut(RowsMatrix which);

  Runtime& runtime_;
  const bool whole_sums_;
  std::deque<flywheel::Product>& products_;
  std::array<std::optional<Cut>, kRowsMatrices> cuts_;
  Graph graph_;
};

}  // namespace llama
