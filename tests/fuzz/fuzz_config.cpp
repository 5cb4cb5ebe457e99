// config.json: whatever the text, it is refused with a ModelError or keeps the promises of struct Config, and the sizes that
// the program derives from it fit their types.
#include <algorithm>
#include <cmath>

#include "apps/llama/checkpoint/config.hpp"
#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/shapes.hpp"
#include "apps/llama/decode/rope.hpp"
#include "apps/llama/tuned/step_bytes.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace llama;
using flywheel::fuzz::expect;

namespace {

constexpr int kLargest = 1 << 24;
constexpr int kRotatedSize = 256;  // larger heads would only take longer

void check_sizes(const Config& config) {
  for (const int size : {config.hidden_size, config.intermediate_size, config.num_hidden_layers, config.vocab_size,
                         config.max_position_embeddings, config.num_attention_heads, config.num_key_value_heads,
                         config.head_dim, config.query_size(), config.key_value_size()}) {
    expect(size > 0 && size <= kLargest, "every size is from 1 to 2^24");
  }
  expect(config.num_attention_heads <= kMostHeads, "heads fit 16 bits");
  expect(config.num_attention_heads % config.num_key_value_heads == 0, "heads share keys evenly");
  expect(config.head_dim % 2 == 0, "head_dim is even");
}

void check_windows(const Config& config) {
  expect(config.windows.empty() || config.windows.size() == static_cast<std::size_t>(config.num_hidden_layers),
         "every layer has a window or none has");
  expect(std::ranges::all_of(config.windows, [](int window) { return window >= 0 && window <= kLargest; }),
         "every window is from 0 to 2^24");
}

void check_derived(const Config& config) {
  constexpr std::int64_t kMost = std::int64_t{1} << 49;
  const std::int64_t count = parameter_count(config);
  expect(count > 0 && count < kMost, "the weights can be counted");
  const std::uint64_t bytes = weight_bytes(config);
  expect(bytes > 0 && bytes < 2 * static_cast<std::uint64_t>(kMost), "a step's weights can be counted");
  expect(stream_bytes(config) >= bytes / 2, "the stream holds all matrices");
  expect(position_bytes(config) > 0, "a position takes bytes");
}

void check_rope(const Config& config) {
  if (config.head_dim > kRotatedSize) return;
  expect(std::ranges::all_of(rope_table(config, 3), [](float value) { return std::abs(value) <= 1; }),
         "the table of angles holds sines and cosines");
}

}  // namespace

void flywheel::fuzz::run(std::string_view input) {
  try {
    const Config config = parse_config(input, "config.json");
    check_sizes(config);
    check_windows(config);
    check_derived(config);
    check_rope(config);
    expect(static_cast<float>(config.rms_norm_eps) > 0, "rms_norm_eps is a float");
  } catch (const ModelError&) {}
}
