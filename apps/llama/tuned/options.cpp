#include "apps/llama/tuned/options.hpp"

#include <algorithm>

#include "apps/llama/tuned/graph.hpp"
#include "apps/llama/tuned/prefill.hpp"
#include "apps/llama/tuned/step_bytes.hpp"
#include "apps/llama/tuned/wide.hpp"

namespace llama {
namespace {

/// The words of 8 texts are looked for while operands come (0.714 ms a step against 0.723 with the default of 78 KB, see
/// tuning.md).
constexpr std::uint32_t kWindowOfManyTexts = 52u << 10;

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// What attention's parts leave in all layers: 64 parts over all texts at most, or one of each; and each text's results. An
/// eighth more than the values is room for the scales, of heads of 16 values or more.
std::size_t partials_bytes(const Config& config) {
  constexpr int kMost = 64 + 2 * kMostSequences;
  return to_size(config.num_hidden_layers) * to_size(kMost) * to_size(config.query_size()) * sizeof(Stamped) * 9 / 8;
}

std::size_t decode_bytes(const Config& config, const TunedRoom& room) {
  const int positions = prompt_positions(config, room.prompts), context = room.context + positions + 16;
  const std::size_t texts = to_size(sequences_for(room.texts)), activations = activation_bytes(config, room.context);
  const std::size_t rope = to_size(context) * to_size(config.head_dim) * sizeof(float);
  const bool wide = texts > kMostSequences;
  const std::size_t of_texts = texts * (position_bytes(config) * to_size(context) + activations) + rope +
                               (wide ? WideStep::bytes(config, room.texts) : 0);
  const std::size_t of_prompts = to_size(positions) * (activations + texts * to_size(context) * sizeof(PromptChunk));
  const bool products = room.prompts == PromptWay::best || room.prompts == PromptWay::products;
  const std::size_t streams = to_size(!wide) + to_size(positions > 0);
  return (stream_bytes(config) + partials_bytes(config)) * streams + of_texts + of_prompts +
         (products && Prefill::knows(config) ? Prefill::bytes(config, room.context) : 0);
}

}  // namespace

Options tuned_options(const Config& config, const TunedRoom& room, Options options) {
  options.target = choose_target(options.target);
  const bool on_gpu = options.target == Target::gpu;
  const int texts = sequences_for(room.texts), compiled = texts <= kMostSequences ? texts : 1;
  options.scratch_bytes =
      tuned_scratch_bytes(config, on_gpu, room.context, std::max(compiled, prompt_positions(config, room.prompts)));
  const std::size_t bytes = loaded_bytes(config) + to_size(room.decodes) * decode_bytes(config, room);
  options.heap_bytes = std::max(options.heap_bytes, with_slack(bytes));
  if (options.tuning.operand_window == kBestWindow)
    options.tuning.operand_window = room.texts > 4 ? kWindowOfManyTexts : Options{}.tuning.operand_window;
  return options;
}

}  // namespace llama
