// Hours of the same text, which must end the same way every time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "apps/llama/bench/bench_model.hpp"

namespace llama {

struct SoakRequest {
  std::uint64_t tokens = 200'000;  // in all
  std::uint32_t start = 0;         // position at which each run begins
  std::uint32_t length = 256;      // tokens of a run
};

struct SoakResult {
  std::uint64_t tokens = 0;  // written
  std::uint64_t runs = 0;
  std::uint64_t checksum = 0;   // of the first run's last logits
  std::uint64_t different = 0;  // the checksum of the run that ended otherwise
  double seconds = 0;
  bool passed = true;
};

/// FNV-1a, 64 bits (Fowler, Noll and Vo).
std::uint64_t checksum_of(const std::vector<float>& values);

using OnLine = std::function<void(const std::string& line)>;

/// Runs of `length` tokens until there are `tokens`, or until one ends with other logits than the first. `on_line`
/// hears how it goes about every ten seconds. Throws RequestError for a request of no tokens or beyond the model's
/// context.
SoakResult soak(const BenchModel& model, const SoakRequest& request, const Options& options, const OnLine& on_line);

/// The last line of a soak: what was run, and what came of it.
std::string describe(const SoakResult& result);

}  // namespace llama
