#include "apps/llama/tuned/options.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "apps/llama/checkpoint/shapes.hpp"
#include "apps/llama/portable/graph.hpp"
#include "apps/llama/tuned/graph.hpp"
#include "apps/llama/tuned/step_bytes.hpp"
#include "apps/measure/limits.hpp"

namespace llama {
namespace {

/// The words of 8 texts are looked for while operands come. (Llama-3.2-1B on an H200: 0.714 ms a step, with the default of 78 KB
/// 0.723. One text takes 0.566 with 78 and 0.576 with 52.)
constexpr std::uint32_t kWindowOfManyTexts = 52u << 10;

/// For schedules, tables and what allocation rounds up.
std::size_t with_slack(std::size_t bytes) { return bytes + bytes / 32 + (std::size_t{64} << 20); }

std::size_t size_of(std::int64_t value) { return static_cast<std::size_t>(value); }

std::size_t loaded_bytes(const Config& config) {
  return size_of(parameter_count(config)) * sizeof(Bf16) +
         size_of(config.hidden_size) * 8 * size_of(config.num_hidden_layers + 1);
}

std::size_t activation_bytes(const Config& config, int context) {
  const int values = 2 * config.hidden_size + 2 * config.query_size() + 2 * config.key_value_size() +
                     config.intermediate_size + 2 * config.vocab_size + context;
  return size_of(values) * sizeof(float);
}

/// What attention's parts leave in all layers: 64 parts over all texts at most, or one of each; and each text's results. An
/// eighth more than the values is room for the scales, of heads of 16 values or more.
std::size_t partials_bytes(const Config& config) {
  constexpr int kMost = 64 + 2 * kMostSequences;
  return size_of(config.num_hidden_layers) * size_of(kMost) * size_of(config.query_size()) * sizeof(Stamped) * 9 / 8;
}

std::size_t decode_bytes(const Config& config, const TunedRoom& room) {
  const std::size_t cache = position_bytes(config) * size_of(room.context + 16);
  const std::size_t texts = size_of(sequences_for(room.texts)) * (cache + activation_bytes(config, room.context));
  const std::size_t rope = size_of(room.context + 16) * size_of(config.head_dim) * sizeof(float);
  return stream_bytes(config) + texts + partials_bytes(config) + rope;
}

}  // namespace

Target choose_target(Target wanted) {
  if (wanted != Target::automatic) return wanted;
  const char* text = std::getenv("FLYWHEEL_TARGET");
  const std::string_view wish = text ? text : "";
  if (wish == "cpu") return Target::cpu;
  const bool present = measure::find_gpu().present;
  if (!wish.empty() && !(present && wish == "gpu")) return Target::automatic;
  return present ? Target::gpu : Target::cpu;
}

Options tuned_options(const Config& config, const TunedRoom& room, Options options) {
  options.target = choose_target(options.target);
  const bool on_gpu = options.target == Target::gpu;
  options.scratch_bytes = tuned_scratch_bytes(config, on_gpu, room.context);
  const std::size_t bytes = loaded_bytes(config) + size_of(room.decodes) * decode_bytes(config, room);
  options.heap_bytes = std::max(options.heap_bytes, with_slack(bytes));
  if (options.operand_window == kBestWindow)
    options.operand_window = room.texts > 4 ? kWindowOfManyTexts : Options{}.operand_window;
  return options;
}

Options portable_options(const Config& config, int context, Options options) {
  options.target = choose_target(options.target);
  options.scratch_bytes = std::max(options.scratch_bytes, portable_scratch_bytes(config, context));
  if (options.operand_window == kBestWindow) options.operand_window = Options{}.operand_window;
  const std::size_t cache = 2 * position_bytes(config) * size_of(context + kLanes);
  options.heap_bytes =
      std::max(options.heap_bytes, with_slack(loaded_bytes(config) + cache + activation_bytes(config, context)));
  return options;
}

}  // namespace llama
