// Prompts that the tuned decode reads in chunks, on CPU workers.
#include "llama_prompts_support.hpp"

#include "apps/llama/tuned/layers.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"
#include "llama_small_config.hpp"

namespace llama {
namespace {

Runtime start_tuned(const Config& config, int context) {
  return start_tuned_runtime(tuned_options(config, {.context = context, .texts = 4}, {.target = Target::cpu, .workers = 3}));
}

}  // namespace

TEST_CASE("prompts: logits after a prompt of any length agree with transformers, and the cache with a step a token") {
  std::vector<std::size_t> lengths;
  for (std::size_t length = 1; length <= 35; ++length) lengths.push_back(length);
  check_prompts(start_tuned, GENERATE(from_range(kTunedFamilies)), lengths);
}

TEST_CASE("prompts: read by matrix products, logits agree with transformers but for the rounding of activations") {
  check_products(start_tuned, GENERATE(from_range(kProductFamilies)), {18, 19, 31, 48});
}

TEST_CASE("prompts: the run that ends one writes the first token of its text") {
  check_first_token(start_tuned, GENERATE(from_range(kProductFamilies)), {2, 19, 31});
}

TEST_CASE("prompts: one of several tiles of rows, at once and in parts, leaves the same bits") {
  check_long_products(start_tuned, "qwen3_heads64", 700);
}

TEST_CASE("prompts: several are read in one run, each into its own cache") { check_prompts_together(start_tuned, "qwen3"); }

TEST_CASE("prompts: one that fills the room") { check_full_room(start_tuned, "llama3_heads64"); }

TEST_CASE("prompts: one whose context attention takes in parts") { check_long_prompt(start_tuned, "qwen3_heads64", 1300); }

TEST_CASE("prompts: those that cannot be read say why") {
  const auto folder = family_folder("qwen3");
  const Config config = read_config(folder);
  Runtime runtime = start_tuned(config, 16);
  TunedGenerator generator(runtime, config, load_weights(runtime, config, folder), 16);
  const auto error_of = [&](const std::vector<std::vector<std::uint32_t>>& prompts) {
    return request_error_of([&] { generator.read_prompts(prompts); });
  };
  CHECK(mentions(error_of({{1, 2}, {3}}), {"1 texts at once, not 2"}));
  CHECK_FALSE(error_of({{}}).empty());
  CHECK(mentions(error_of({std::vector<std::uint32_t>(17, 1)}), {"17", "16"}));
  CHECK(mentions(error_of({{1, 100000}}), {"100000"}));
}

TEST_CASE("prompts: as many positions in a pass as there is scratch memory for, and none for those who read none") {
  Config config = read_config(family_folder("qwen3"));
  CHECK(prompt_positions(config, PromptWay::token_by_token) == 0);
  const auto positions = [&](int hidden, int inner) {
    config.hidden_size = hidden, config.intermediate_size = inner;
    config.num_attention_heads = hidden / 128, config.head_dim = 128;
    const int count = prompt_positions(config, PromptWay::chunks);
    CHECK((count == 2 || kTileWarps * scratch_of_products(config, count) <= 40 << 10));
    return count;
  };
  CHECK(positions(2048, 8192) == 8);   // Llama-3.2-1B
  CHECK(positions(4096, 14336) == 8);  // Llama-3.1-8B
  CHECK(positions(1024, 3072) == 4);   // Qwen3-0.6B
  CHECK(positions(2560, 9728) == 4);   // Qwen3-4B
}

}  // namespace llama
