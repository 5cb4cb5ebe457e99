// Writing texts with the tuned decode, up to 64 at once.
#pragma once

#include <filesystem>
#include <optional>

#include "apps/llama/decode/generator.hpp"
#include "apps/llama/tuned/prompt_reader.hpp"
#include "apps/llama/tuned/prompt_way.hpp"
#include "apps/llama/tuned/wide.hpp"

namespace llama {

class Crowd;

/// Its runtime is made by start_tuned_runtime().
///
/// Up to 16 texts are written by a compiled graph, more by a phased one of matrix products, see wide.hpp. A text does not
/// depend on what is written beside it, but on how many sequences there are, where that moves logits by their last bits and two
/// tokens are about as likely: with more, contexts of more than kAlone positions are split into fewer parts (see partials.cuh),
/// and matrix products take activations as bf16.
///
/// A prompt is read before the text is written, by graphs of their own: a long one by matrix products, up to its text's first
/// token (see prefill.hpp), others in chunks of several positions, in passes over the weights (see prompt_graph.cpp). Texts
/// beyond sequences() take the places of those that have ended: their prompts are read between the steps of the others, see
/// crowd.hpp.
class TunedGenerator : public Generator {
 public:
  /// `context`: positions to have room for, of each text; `texts`: to be written at once, 1 to 64. `prompts`: token_by_token
  /// for those who read none and save the stream. Throws ModelError and RequestError as PortableGenerator does, RequestError
  /// also for a model without tuned tasks, or without those of so many texts.
  TunedGenerator(Runtime& runtime, Config config, Weights weights, int context, int texts = 1,
                 PromptWay prompts = PromptWay::best);
  TunedGenerator(Runtime& runtime, const std::filesystem::path& folder, int context = 0, int texts = 1);

  /// Writes `tokens` tokens to every sequence from position `start` on, whatever the cache holds there; waits. For
  /// measurements. `trace`: where the run's trace goes, if anywhere.
  std::chrono::duration<double> run(std::uint32_t start, std::uint32_t tokens, Trace* trace = nullptr,
                                    const Sampling& sampling = {});
  /// Reads prompts into the caches, each as the text of its number, and tells for each at which position its first step is to
  /// be: that of its last token, or of an earlier one where a step of the decode is as good as a pass. Waits. Throws
  /// RequestError for more prompts than sequences(), and for one that is empty, too long or of other tokens. `trace`: where the
  /// trace of the last run goes, if anywhere.
  std::vector<std::uint32_t> read_prompts(const std::vector<std::vector<std::uint32_t>>& prompts, Trace* trace = nullptr);
  std::vector<float> last_logits() const override { return memory_.logits.read(); }
  /// The schedule, for a person to read.
  std::string describe() const;

  /// What it works in and with, for those who fill the cache or hold others against it. The last block of 16 positions in
  /// memory() may go beyond context().
  TunedMemory& memory() { return memory_; }
  const Weights& weights() const { return weights_; }
  const StreamedWeights& streamed_weights() const { return streamed_; }
  int sequences() const override { return memory_.sequences; }  // see sequences_for()
  std::uint32_t tasks() const override { return decode_.size(); }

 protected:
  /// Runs of the decode and passes over prompts take turns, see Crowd.
  void write_texts(const std::vector<Request>& requests, Tally& tally) override;
  Run submit_step(const std::vector<StepState>& states) override;
  /// What a step that failed for its numbers leaves among the values may be none: attention weighs whole blocks of positions,
  /// those to come with 0, and makes no number of such a product. So they are forgotten before the next text begins.
  void on_failed_task() override { numbers_lost_ = true; }

 private:
  void forget_lost_numbers();
  void begin(const std::vector<StepState>& states, const std::vector<TunedText>& texts);
  void embed();
  void read(Crowd& crowd, const std::function<void(const WrittenToken&)>& add);

  Weights weights_;
  StreamedWeights streamed_;
  TunedMemory memory_;
  std::optional<WideStep> wide_;  // of more than kMostSequences texts
  TunedGraph graph_;              // of others
  Executable decode_;
  Executable embed_;  // of others
  std::optional<PromptReader> reader_;
  bool numbers_lost_ = false;  // the cache may hold what is no number
};

}  // namespace llama
