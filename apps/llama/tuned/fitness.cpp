#include "apps/llama/tuned/fitness.hpp"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "apps/llama/decode/request.hpp"
#include "apps/llama/tuned/attend.cuh"
#include "apps/llama/tuned/graph.hpp"

namespace llama {
namespace {

/// In as few digits as tell it: "-4096", "1e+30", "nan".
std::string number_text(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

/// `before`: what else helps.
[[noreturn]] void no_tuned_tasks(const std::string& why, const std::string& before = "") {
  throw RequestError("there are no tuned tasks for this model: " + why + "; " + before +
                     "run it with the portable ones (without --tuned)");
}

void check_weights(const Weights& weights) {
  std::vector<const MatrixBuffer*> streamed{&weights.output()};
  for (const LayerWeights& w : weights.layers) streamed.insert(streamed.end(), {&w.qkv, &w.output, &w.gate, &w.up, &w.down});
  for (const MatrixBuffer* m : streamed)
    if (const std::optional<OddWeight>& odd = m->odd)
      no_tuned_tasks("\"" + odd->tensor + "\" has the weight " + number_text(odd->value) + " in row " +
                     std::to_string(odd->row) + ", column " + std::to_string(odd->column) + ", which is no finite number");
}

void check_tuned_heads(const Config& config) {
  if (!TunedAttend::knows(config.head_dim))
    no_tuned_tasks("its heads have " + std::to_string(config.head_dim) + " values, and 32, 64, 80, 96, 128 and 256 are known");
  if (config.num_attention_heads > kMostTunedHeads)
    no_tuned_tasks("num_attention_heads is " + std::to_string(config.num_attention_heads) + ", and at most " +
                   std::to_string(kMostTunedHeads) + " are known");
}

/// Those that are as long as the context, or longer, are none.
void check_windows(const Config& config, int positions) {
  for (const int window : config.windows)
    if (window > AttendTask::kMostWindow && window < positions)
      no_tuned_tasks("its layers attend to the last " + std::to_string(window) + " positions alone, the context is of " +
                         std::to_string(positions) + ", and windows up to " + std::to_string(AttendTask::kMostWindow) +
                         " are known",
                     "make it for at most " + std::to_string(window) + " positions, or ");
}

}  // namespace

void check_tuned(const Config& config, const Weights& weights, const TunedMemory& memory) {
  const int sequences = memory.sequences;
  if (sequences != sequences_for(sequences))
    throw RequestError("a step of the tuned tasks has 1, 2, 4, 8, 16, 32 or 64 sequences, not " + std::to_string(sequences) +
                       ": sequences_for() tells how many hold so many texts");
  check_tuned_heads(config);
  check_windows(config, memory.positions);
  bool bf16 = weights.embedding.matrix.is_bf16 && weights.output().matrix.is_bf16;
  for (const LayerWeights& w : weights.layers)
    for (const MatrixBuffer* m : {&w.qkv, &w.output, &w.gate, &w.up, &w.down}) bf16 &= m->matrix.is_bf16 != 0;
  if (!bf16) no_tuned_tasks("its weights are not all bf16");
  check_weights(weights);
}

}  // namespace llama
