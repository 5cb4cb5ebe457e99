// Long contexts with heads of a real size, on CPU workers: attention in one part, in parts, and where it begins to split.
#include "catch.hpp"
#include "llama_small_config.hpp"

#include "apps/llama/bench/bench.hpp"
#include "apps/llama/bench/check.hpp"
#include "apps/llama/bench/check_context.hpp"
#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/decode/request.hpp"
#include "apps/llama/portable/start.hpp"

namespace llama {
namespace {

Config shape(Family family, int head_dim) {
  Config config = small_config();
  config.family = family;
  config.hidden_size = 128;
  config.num_hidden_layers = 3;
  config.num_key_value_heads = 1;
  config.head_dim = head_dim;
  config.max_position_embeddings = 16384;
  return config;
}

Options on_cpu(std::uint32_t workers) { return {.target = Target::cpu, .workers = workers}; }

}  // namespace

TEST_CASE("context: the tuned decode agrees with the portable one before, at and far beyond the first split") {
  const std::vector<std::uint32_t> starts{0, 1022, 1024, 8192};
  for (const auto& [family, head_dim] : {std::pair{Family::kLlama, 64}, std::pair{Family::kQwen2, 80},
                                         std::pair{Family::kQwen3, 128}, std::pair{Family::kMistral, 256}}) {
    const auto results = check_contexts({"shape", shape(family, head_dim)}, starts, on_cpu(4));
    REQUIRE(results.size() == starts.size());
    for (std::size_t i = 0; i < starts.size(); ++i) {
      INFO("heads of " << head_dim << ", from position " << starts[i] << ", worst " << results[i].worst);
      CHECK(results[i].passed());
      CHECK(results[i].worst > 0);  // a cache of halves cannot be exact
    }
  }
}

// If attention left out a part of the context, or took the wrong one, this is how far off the logits would be.
TEST_CASE("context: with other keys and values the logits are far off") {
  const Config config = shape(Family::kQwen3, 64);
  Runtime runtime = start_portable_runtime({.target = Target::cpu, .workers = 2, .scratch_bytes = 64 << 10});
  PortableGenerator generator(runtime, config, random_weights(runtime, config, 5), 4352);
  const auto logits = logits_at(generator, {4096, 4351});
  CHECK(relative_error(logits[1], logits[0]) > 10 * kMostContextError);
}

TEST_CASE("context: the program's check, and positions that the model was not made for") {
  const BenchModel model{"shape", shape(Family::kLlama, 64)};
  BenchRequest request;
  request.runs = 0;
  request.portable_contexts = {1500};
  request.options = on_cpu(2);
  CHECK(run_bench(model, request));
  request.portable_contexts = {16384};
  CHECK_THROWS_AS(run_bench(model, request), RequestError);
}

}  // namespace llama
