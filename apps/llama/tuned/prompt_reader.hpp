// Reads prompts into the caches of the tuned decode: long ones by matrix products, others in chunks of several positions.
#pragma once

#include <optional>

#include "apps/llama/tuned/graph.hpp"
#include "apps/llama/tuned/prefill.hpp"
#include "apps/llama/tuned/prompt_way.hpp"

namespace llama {

/// Passes over chunks between two steps that others wait for: a step then takes about three times as long as alone.
inline constexpr std::size_t kPassesBetween = 2;

/// Prompts are not always read in one go: between two runs others may use the device. What a prompt leaves does not depend on
/// that.
class PromptReader {
 public:
  /// `texts` must outlive it. `way`: not token_by_token.
  PromptReader(Runtime& runtime, const Config& config, const StreamedWeights& weights, const TunedMemory& texts, PromptWay way);

  /// A prompt is to be read, which lies in the prompt buffer: of a text that has none to be read. Tells at which position its
  /// first step is to be: that of its last token, or of an earlier one where a step of the decode is as good as a pass.
  /// `writes`: if that is as quick, the run that ends the prompt makes that step, too; see next_to_write().
  std::uint32_t add(std::uint32_t text, std::size_t tokens, bool writes);
  bool has_any() const { return !queue_.empty() || !long_.empty(); }
  bool has(std::uint32_t text) const;  // more to read of this one
  /// Reads on, if there is any: chunks first. `others_wait`: a short part. It counts as done: wait for the run before the next
  /// one is submitted.
  Run submit(bool others_wait, bool is_traced = false);
  /// The text whose first token the next run writes, if it is such a one: it is to be in the decode's memory by then.
  std::optional<std::uint32_t> next_to_write(bool others_wait) const;
  /// What has not been read.
  void forget();

 private:
  /// A prompt for products, what is left of it.
  struct LongPrompt {
    std::uint32_t text, first, end;
    bool writes;
  };
  static std::uint32_t next_end(const LongPrompt& of, bool others_wait);
  Run submit_passes(std::size_t passes, bool is_traced);

  Runtime& runtime_;
  PromptMemory memory_;
  TunedGraph graph_;
  Executable read_, begin_;
  std::vector<PromptChunk> queue_;
  std::optional<Prefill> prefill_;
  std::uint32_t fewest_ = 0;      // positions of a prompt for it
  bool chooses_ = false;          // it may write first tokens
  std::vector<LongPrompt> long_;  // prompts for it
  bool begun_ = false;            // the last pass has left the input of the queue's first chunk
};

}  // namespace llama
