// Is the tuned decode right in a long context, where attention works in parts that are joined? To write one takes too long
// by the portable tasks: both decodes begin with the same random keys and values.
#pragma once

#include <functional>
#include <string>

#include "apps/llama/bench/bench_model.hpp"
#include "apps/llama/portable/generator.hpp"
#include "apps/llama/tuned/generator.hpp"

namespace llama {

/// Steps from each starting position.
inline constexpr std::uint32_t kStepsOfContext = 4;
/// The steps' own keys and values are rounded to halves, activations to 16 bits: the error is that of their last bits.
inline constexpr double kMostContextError = 1e-2;

struct ContextResult {
  double worst = 0;     // relative error of a step's logits
  std::string differs;  // as in CheckResult
  bool passed() const { return differs.empty() && worst < kMostContextError; }
};

/// Each start and those after it.
std::vector<std::uint32_t> positions_from(const std::vector<std::uint32_t>& starts);

/// The logits of a step at each of the positions, with token 0, by a generator that has room for all of them. Before a step
/// come the keys and values of earlier ones, and where there were none random ones: multiples of 1/64 from -2 to 2, which
/// halves hold, and which make attention choose. By the portable decode, with float activations and cache:
std::vector<std::vector<float>> logits_at(PortableGenerator& generator, const std::vector<std::uint32_t>& positions);
/// By the tuned one, of one text; `after_step` is called after each:
std::vector<std::vector<float>> logits_at(
    TunedGenerator& generator, const std::vector<std::uint32_t>& positions, const std::function<void()>& after_step = [] {});

/// kStepsOfContext steps from each of the starts by the portable tasks, then twice by TunedGenerator, each in a runtime of its
/// own with `options`. One result for each start. Throws RequestError for positions that the model was not made for.
std::vector<ContextResult> check_contexts(const BenchModel& model, const std::vector<std::uint32_t>& starts,
                                          const Options& options);

}  // namespace llama
