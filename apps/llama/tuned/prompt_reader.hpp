// Reads prompts into the caches of the tuned decode, a chunk of several positions in a pass.
#pragma once

#include "apps/llama/tuned/graph.hpp"

namespace llama {

/// Prompts are read in the order in which they came, and not always in one go: between two runs others may use the device.
class PromptReader {
 public:
  /// `texts` must outlive it.
  PromptReader(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts);

  /// A prompt is to be read, which lies in the prompt buffer: of a text that has none to be read. Tells at which position its
  /// first step is to be: that of its last token, or of an earlier one where a step of the decode is as good as a pass.
  std::uint32_t add(std::uint32_t text, std::size_t tokens);
  std::size_t left() const { return queue_.size(); }  // passes
  bool has(std::uint32_t text) const;                 // passes left of this one
  /// The next passes, at most left(). They count as done: wait for the run before the next one is submitted.
  Run submit(std::size_t passes);
  /// What has not been read.
  void forget();

 private:
  Runtime& runtime_;
  PromptMemory memory_;
  TunedGraph graph_;
  Executable read_, begin_;
  std::vector<PromptChunk> queue_;
  bool begun_ = false;  // the last pass has left the input of the queue's first chunk
};

}  // namespace llama
