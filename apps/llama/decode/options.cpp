#include "apps/llama/decode/options.hpp"

#include <cstdlib>
#include <string_view>

#include "apps/llama/checkpoint/matrix.cuh"
#include "apps/llama/checkpoint/shapes.hpp"
#include "apps/measure/limits.hpp"

namespace llama {
namespace {

std::size_t size_of(std::int64_t value) { return static_cast<std::size_t>(value); }

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

std::size_t loaded_bytes(const Config& config) {
  return size_of(parameter_count(config)) * sizeof(Bf16) +
         size_of(config.hidden_size) * 8 * size_of(config.num_hidden_layers + 1) +
         size_of(config.qkv_biases()) * (sizeof(float) - sizeof(Bf16)) * size_of(config.num_hidden_layers);
}

std::size_t activation_bytes(const Config& config, int context) {
  const int values = 2 * config.hidden_size + 2 * config.query_size() + 2 * config.key_value_size() + config.intermediate_size +
                     2 * config.vocab_size + context;
  return size_of(values) * sizeof(float);
}

std::size_t with_slack(std::size_t bytes) { return bytes + bytes / 32 + (std::size_t{64} << 20); }

}  // namespace llama
