// Writing text with the compiled, tuned decode: one submission writes the whole of it.
#pragma once

#include <filesystem>

#include "apps/llama/fast/graph.hpp"
#include "apps/llama/request.hpp"

namespace flywheel::llama {

/// A model with its decode step compiled. One thread at a time. The runtime must outlive it.
class FastGenerator {
 public:
  /// `context`: positions to have room for; `sequences`: texts written at once, 1, 2, 4 or 8. Throws ModelError and
  /// RequestError as Generator does, RequestError also for a model without tuned tasks.
  FastGenerator(Runtime& runtime, Config config, Weights weights, int context, int sequences = 1);
  FastGenerator(Runtime& runtime, const std::filesystem::path& folder, int context = 0);

  /// As Generator::generate().
  Outcome generate(const Request& request, const OnToken& on_token);
  /// The logits after each of the ids, given all ids up to it.
  std::vector<std::vector<float>> logits(const std::vector<std::uint32_t>& ids);

  /// Writes `tokens` tokens greedily to every sequence from position `start` on, whatever the cache holds there; waits.
  /// For measurements. `trace`: where the run's trace goes, if anywhere.
  std::chrono::duration<double> run(std::uint32_t start, std::uint32_t tokens, Trace* trace = nullptr);
  /// Of all sequences, after the last step: [sequences][vocabulary].
  std::vector<float> last_logits() const { return memory_.logits.read(); }
  /// The schedule, for a person to read.
  std::string describe() const;

  /// What it works in and with, for those who fill the cache or hold others against it.
  FastMemory& memory() { return memory_; }
  const Weights& weights() const { return weights_; }
  const Config& config() const { return config_; }
  int context() const { return memory_.context; }
  int sequences() const { return memory_.sequences; }
  std::uint32_t tasks() const { return decode_.size(); }  // of one step

 private:
  void begin(const std::vector<StepState>& states);

  Runtime& runtime_;
  Config config_;
  Weights weights_;
  FastMemory memory_;
  FastGraph graph_;
  Executable decode_;
  Executable embed_;
};

}  // namespace flywheel::llama
