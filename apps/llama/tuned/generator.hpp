// Writing texts with the compiled, tuned decode: one submission writes the whole of up to 8.
#pragma once

#include <filesystem>

#include "apps/llama/decode/request.hpp"
#include "apps/llama/tuned/graph.hpp"

namespace llama {

/// A model with its decode step compiled. One thread at a time. The runtime must outlive it.
class TunedGenerator {
 public:
  /// `context`: positions to have room for, of each text; `texts`: to be written at once, 1 to 8. Throws ModelError and
  /// RequestError as Generator does, RequestError also for a model without tuned tasks.
  TunedGenerator(Runtime& runtime, Config config, Weights weights, int context, int texts = 1);
  TunedGenerator(Runtime& runtime, const std::filesystem::path& folder, int context = 0, int texts = 1);

  /// Throws RequestError as Generator::check() does, and for more requests than sequences().
  void check(const std::vector<Request>& requests) const;
  /// Writes a text for each request, all at once: each from its own prompt, as its own seed has it, to its own end. A
  /// token comes as soon as it is chosen. What `on_token` throws cancels the run.
  ///
  /// A text does not depend on what is written beside it, but on how many sequences there are, where that moves logits by
  /// their last bits and two tokens are about as likely: with more, contexts of more than kAlone positions are split into
  /// fewer parts (see partials.cuh).
  std::vector<Outcome> generate(const std::vector<Request>& requests, const OnTextToken& on_token);
  /// As Generator::generate().
  Outcome generate(const Request& request, const OnToken& on_token);

  /// The logits after each of a text's ids, given all ids up to it, of up to sequences() texts at once: [text][id].
  /// Throws RequestError as check() does. `after_step`: called after each step of all texts, if it is there.
  std::vector<std::vector<std::vector<float>>> logits_of(const std::vector<std::vector<std::uint32_t>>& texts,
                                                         const std::function<void()>& after_step = {});
  std::vector<std::vector<float>> logits(const std::vector<std::uint32_t>& ids) { return logits_of({ids}).front(); }

  /// Writes `tokens` tokens to every sequence from position `start` on, whatever the cache holds there; waits. For
  /// measurements. `trace`: where the run's trace goes, if anywhere.
  std::chrono::duration<double> run(std::uint32_t start, std::uint32_t tokens, Trace* trace = nullptr,
                                    const Sampling& sampling = {});
  /// Of all sequences, after the last step: [sequences][vocabulary].
  std::vector<float> last_logits() const { return memory_.logits.read(); }
  /// The schedule, for a person to read.
  std::string describe() const;

  /// What it works in and with, for those who fill the cache or hold others against it.
  TunedMemory& memory() { return memory_; }
  const Weights& weights() const { return weights_; }
  const Config& config() const { return config_; }
  int context() const { return context_; }  // of which the last block of 16 in memory() may be a part
  int sequences() const { return memory_.sequences; }  // see sequences_for()
  std::uint32_t tasks() const { return decode_.size(); }  // of one step

 private:
  /// use(run), and what is left to do if that throws.
  template <class Use>
  auto watch(Run run, Use&& use);
  void check_count(std::size_t texts) const;
  void begin(const std::vector<StepState>& states, const std::vector<TunedText>& texts);
  void begin(const std::vector<Request>& requests);
  void step_each(const std::vector<std::vector<std::uint32_t>>& texts, std::size_t position,
                 std::vector<std::vector<std::vector<float>>>& all);

  Runtime& runtime_;
  Config config_;
  int context_;
  Weights weights_;
  TunedMemory memory_;
  TunedGraph graph_;
  Executable decode_;
  Executable embed_;
  bool numbers_lost_ = false;  // the cache may hold what is no number
};

}  // namespace llama
