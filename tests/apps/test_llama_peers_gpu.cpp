// The peers of the benchmark, one kernel an operation: their logits are those of the resident kernel, also where parts of a
// context wait for each other's words.
#include "catch.hpp"
#include "llama_small_config.hpp"

#include "apps/llama/bench/check.hpp"
#include "apps/llama/bench/peers.hpp"
#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/tuned/generator.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"
#include "support/seed.hpp"

namespace llama {
namespace {

constexpr std::uint32_t kTokens = 6;
/// Small matrices make more of a last bit than the benchmark's.
constexpr double kMostError = 5 * kMostPeerError;
constexpr int kRoom = 3000;

Config wider_config() {
  Config config = small_config();
  config.hidden_size = 512;
  config.intermediate_size = 1536;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 8;
  config.head_dim = 64;
  config.vocab_size = 2048;
  config.max_position_embeddings = 4096;
  config.tie_word_embeddings = false;
  return config;
}

void check_peers(int sequences, const PeerShape& shape, const Config& config = wider_config()) {
  const std::uint64_t seed = flywheel::testing::fresh_seed();
  Options options = tuned_options(config, {kRoom, sequences, 2, PromptWay::token_by_token},
                                  {.target = Target::gpu, .tuning = {.operand_window = kBestWindow}});
  options.park_after = std::chrono::milliseconds(5);  // peers need the SMs
  Runtime runtime = start_tuned_runtime(options);
  TunedGenerator ours(runtime, config, random_weights(runtime, config, seed), kRoom, sequences, PromptWay::token_by_token);
  const auto peers = Peers::make(runtime, config, ours.streamed_weights(), kRoom, sequences, shape);
  REQUIRE(peers);
  for (const std::uint32_t start : {3u, 1021u, 2900u}) {  // in one part, from one part into many, in many
    fill_cache(runtime, ours.memory(), seed);
    ours.run(start, kTokens);
    const std::vector<float> wanted = ours.last_logits();
    for (const PeerWay way : kPeerWays) {
      peers->fill_cache(seed);
      peers->run(way, start, kTokens);
      INFO(describe(way) << ", " << sequences << " texts, position " << start << ", " << shape.blocks_per_sm
                         << " blocks an SM, seed " << seed);
      CHECK(relative_error(peers->last_logits(), wanted) < kMostError);
    }
  }
}

}  // namespace

TEST_CASE("peers on the GPU: one text, as many blocks an SM as have room") {
  for (const PeerShape& shape : {PeerShape{1, 4}, PeerShape{2, 2}, PeerShape{3, 0}}) check_peers(1, shape);
}

TEST_CASE("peers on the GPU: biases, and heads that are no whole warps") {
  Config config = wider_config();
  config.family = Family::kQwen2;
  config.head_dim = 80;
  check_peers(1, {2, 2}, config);
}

TEST_CASE("peers on the GPU: four texts at once") { check_peers(4, {1, 8}); }

}  // namespace llama
