// A compiled decode whose weights and memory lie open, for those who fill its cache and hold others against it.
#pragma once

#include <flywheel/flywheel.hpp>

#include <chrono>

#include "apps/llama/fast/graph.hpp"

namespace flywheel::llama {

/// The same graph and memory as FastGenerator. One thread at a time. The runtime must outlive it.
class TimedDecode {
 public:
  /// As FastGenerator.
  TimedDecode(Runtime& runtime, Config config, Weights weights, int context, int sequences);

  /// As FastGenerator::run(): the wall time of `tokens` steps from position `start` on.
  std::chrono::duration<double> run(std::uint32_t start, std::uint32_t tokens, Trace* trace = nullptr);
  std::vector<float> last_logits() const { return memory_.logits.read(); }
  std::string describe() const { return runtime_.describe(graph_.decode); }
  /// Fills the caches with random numbers.
  void fill_cache(std::uint64_t seed);

  const Config& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  int context() const { return memory_.context; }
  int sequences() const { return memory_.sequences; }
  std::uint32_t tasks() const { return decode_.size(); }

 private:
  Runtime& runtime_;
  Config config_;
  Weights weights_;
  FastMemory memory_;
  FastGraph graph_;
  Executable decode_;
  Executable embed_;
};

}  // namespace flywheel::llama
