#include "apps/llama/decode/rope.hpp"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace llama {
namespace {

/// See RopeScaling.
double stretch(double frequency, const RopeScaling& scaling) {
  const double turns = scaling.original_context * frequency / (2 * std::numbers::pi);
  if (turns < scaling.low_freq_factor) return frequency / scaling.factor;
  if (turns > scaling.high_freq_factor) return frequency;
  const double keep = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - keep) * frequency / scaling.factor + keep * frequency;
}

/// Radians a position, for each pair of values.
std::vector<float> frequencies(const Config& config) {
  std::vector<float> result;
  for (int i = 0; i < config.head_dim; i += 2) {
    const double frequency = std::pow(config.rope_theta, -static_cast<double>(i) / config.head_dim);
    result.push_back(static_cast<float>(config.rope_scaling ? stretch(frequency, *config.rope_scaling) : frequency));
  }
  return result;
}

}  // namespace

std::vector<float> rope_table(const Config& config, int context) {
  const std::vector<float> per_position = frequencies(config);
  std::vector<float> table;
  table.reserve(static_cast<std::size_t>(context) * per_position.size() * 2);
  for (int position = 0; position < context; ++position) {
    for (const float frequency : per_position) {
      const float angle = static_cast<float>(position) * frequency;
      table.push_back(static_cast<float>(std::cos(static_cast<double>(angle))));
      table.push_back(static_cast<float>(std::sin(static_cast<double>(angle))));
    }
  }
  return table;
}

}  // namespace llama
