// Is the tuned decode right? The portable tasks on the same weights say so, and a second run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/llama/bench/bench_model.hpp"

namespace llama {

/// |a - b| / |b|, Euclidean norms; infinite if the sizes differ or a number is no number.
double relative_error(const std::vector<float>& a, const std::vector<float>& b);

/// Keys, values, activations and the smallest weights (see tuned/tile.cuh) are rounded to halves by the tuned tasks only: the
/// error is that of their last bits.
inline constexpr double kMostPortableError = 1e-2;
/// The peers add up the same products in another order at most, which moves some rounded activation by its last bit.
inline constexpr double kMostPeerError = 2e-3;

/// `count` token ids that depend on the seed.
std::vector<std::uint32_t> random_ids(const Config& config, std::uint32_t count, std::uint64_t seed);

struct CheckResult {
  double worst = 0;     // relative error of a position's logits, of all texts
  std::string differs;  // where a second run of the tuned tasks first gave other bits, see StepWords; empty: nowhere
  bool passed() const { return differs.empty() && worst < kMostPortableError; }
};

/// `positions` steps of `count` different texts: one after the other by the portable tasks, then twice all at once by
/// TunedGenerator, each in a runtime of its own with `options`.
CheckResult check_against_portable(const BenchModel& model, int count, std::uint32_t positions, const Options& options);

}  // namespace llama
