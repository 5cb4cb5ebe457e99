// A step of the decode of many texts: a row of matrix products each.
#pragma once

#include <deque>

#include "apps/llama/tuned/rows_builder.hpp"

namespace llama {

/// Texts of a step at most, where they are more than the compiled decode's kMostSequences.
inline constexpr int kMostWideTexts = 64;

/*  WideEmbed -> [ PrefillNorm -> qkv -> WideAttend -> output -> PrefillNorm -> gated -> down ]
 *    a text         a text       tile     a text and    tile       a text        tile     tile
 *                                         a key head
 *            -> PrefillNorm -> logits -> WideChoose
 *                 a text        tile       a text
 *
 *  The part in brackets once for each layer. Each is a phase; split tiles of products have a second one. The weights are bf16
 *  as they were loaded: they are read once for all texts, and so are not packed.  */
/// What the graph of such steps works in and with.
class WideStep {
 public:
  /// All must outlive it. `texts`: of so many as its sequences.
  WideStep(Runtime& runtime, const Config& config, const Weights& weights, TunedMemory& texts);
  WideStep(const WideStep&) = delete;
  WideStep& operator=(const WideStep&) = delete;

  /// Throws RequestError for a model that has no such tasks.
  static void check(const Config& config);
  /// Device memory that it takes, but for the graph.
  static std::size_t bytes(const Config& config, int texts) { return RowsMemory::bytes(config, texts); }

  /// Phases; each pass is a step of all texts.
  const Graph& graph() const { return graph_; }

 private:
  RowsMemory memory_;
  std::deque<flywheel::Product> products_;
  Graph graph_;
};

}  // namespace llama
