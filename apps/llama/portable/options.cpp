#include "apps/llama/portable/options.hpp"

#include <algorithm>

#include "apps/llama/portable/graph.hpp"

namespace llama {

Options portable_options(const Config& config, int context, Options options) {
  options.target = choose_target(options.target);
  options.scratch_bytes = std::max(options.scratch_bytes, portable_scratch_bytes(config, context));
  if (options.tuning.operand_window == kBestWindow) options.tuning.operand_window = Options{}.tuning.operand_window;
  const std::size_t positions = static_cast<std::size_t>(context + kLanes);
  const std::size_t position = sizeof(float) * 2 * static_cast<std::size_t>(config.num_hidden_layers * config.key_value_size());
  options.heap_bytes =
      std::max(options.heap_bytes, with_slack(loaded_bytes(config) + position * positions + activation_bytes(config, context)));
  return options;
}

}  // namespace llama
