// What a decode step cannot do without, counted by hand.
#include "catch.hpp"

#include "apps/llama/checkpoint/shapes.hpp"
#include "apps/llama/decode/options.hpp"
#include "apps/llama/tuned/step_bytes.hpp"

using namespace llama;

TEST_CASE("bytes of a step: Llama-3.2-1B by hand") {
  const Config& config = *find_shape("llama-3.2-1b");
  // A layer: qkv 3072 x 2048, output 2048 x 2048, gate and up 8192 x 2048 each, down 2048 x 8192: 60,817,408 weights.
  // 16 of them and the tied 128256 x 2048 head: 1,235,746,816 weights, 2 bytes each. 33 norms of 2048 floats.
  CHECK(weight_bytes(config) == 2'471'493'632u + 270'336u);
  CHECK(position_bytes(config) == 32'768u);  // 16 layers, keys and values, 8 heads of 64, 2 bytes
  CHECK(step_bytes(config, 1, 0) == 2'471'763'968.);
  CHECK(step_bytes(config, 4, 1000.5) == 2'471'763'968. + 4 * 1000.5 * 32'768);
  CHECK(stream_bytes(config) == 2'471'493'632u / 16 * 13);  // all its sizes are whole groups and pages
  // An embedding table that is not the head is not read; norms are floats.
  const Config& untied = *find_shape("llama-3.1-8b");
  CHECK(weight_bytes(untied) + 128256u * 4096u * 2u ==
        static_cast<std::uint64_t>(parameter_count(untied)) * 2 + 65u * 4096u * 2u);
}

TEST_CASE("bytes of a step: biases are floats, and are kept beside bf16 weights") {
  const Config& config = *find_shape("qwen2.5-0.5b");
  Config plain = config;
  plain.family = Family::kLlama;
  constexpr std::uint64_t kBiases = 24 * (14 + 2 * 2) * 64;
  CHECK(weight_bytes(config) == weight_bytes(plain) + kBiases * 4);
  CHECK(loaded_bytes(config) == loaded_bytes(plain) + kBiases * 4);
  CHECK(position_bytes(config) == 24 * 2 * 2 * 64 * 2);
  CHECK(stream_bytes(config) == stream_bytes(plain));
}

TEST_CASE("bytes of a step: of layers with a window the last positions alone are read") {
  Config config = *find_shape("mistral-7b-v0.1");
  const double weights = step_bytes(config, 1, 0), bytes = static_cast<double>(position_bytes(config));
  CHECK(step_bytes(config, 2, 4096) == weights + 2 * 4096 * bytes);
  CHECK(step_bytes(config, 2, 10000) == weights + 2 * 4096 * bytes);
  config.windows.front() = 0;
  CHECK(step_bytes(config, 1, 10000) == weights + (10000 + 31 * 4096.) * bytes / 32);
}

TEST_CASE("bytes of a step: more norms than 32 bits count") {
  Config deep = *find_shape("llama-3.2-1b");
  deep.hidden_size = 1 << 20;
  const auto bytes_of = [&](int layers) {
    deep.num_hidden_layers = layers;
    return weight_bytes(deep);
  };
  const std::uint64_t layer = bytes_of(2) - bytes_of(1);
  CHECK(bytes_of(1 << 11) == bytes_of(1) + 2047 * layer);
}
