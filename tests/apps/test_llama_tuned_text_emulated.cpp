// Texts of the tuned decode through the GPU's kernel, on an emulated GPU: small models against transformers, the choice of
// tokens, and how a text ends.
#include "llama_emulated_support.hpp"

#include <cstring>
#include <initializer_list>

#include "apps/llama/bench/check_context.hpp"
#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/tuned/start.hpp"
#include "llama_crowd_support.hpp"
#include "llama_prompts_support.hpp"
#include "llama_small_config.hpp"

namespace llama {
namespace {

Runtime start_bulk(const Config& config, int context) { return emulated_runtime(config, context, 3, true); }
Runtime start_without_bulk(const Config& config, int context) { return emulated_runtime(config, context, 2, false); }

const auto kFamily = family_folder("qwen3_heads64");
const std::vector<std::uint32_t> kPrompt{50, 47, 120};

/// From one part into three, with one key head and 5 workers.
struct PartsOfContext {
  static constexpr int kRoom = 1040;
  Config config = read_config(kFamily);
  std::vector<std::uint32_t> positions = positions_from({1022});

  std::vector<std::vector<float>> portable() const {
    Runtime runtime = start_portable_runtime({.target = Target::cpu, .workers = 2});
    PortableGenerator generator(runtime, config, load_weights(runtime, config, kFamily), kRoom);
    return logits_at(generator, positions);
  }
  /// The same, then what a submission of four passes leaves.
  std::vector<std::vector<float>> tuned(Runtime runtime) const {
    TunedGenerator generator(runtime, config, load_weights(runtime, config, kFamily), kRoom);
    CHECK(generator.memory().splits == 4);
    auto logits = logits_at(generator, positions);
    generator.run(positions.back() + 1, 4);
    logits.push_back(generator.last_logits());
    return logits;
  }
};

/// Makes all values so many times as large.
void scale(Buffer<float>& values, float by) {
  std::vector<float> all = values.read();
  for (float& value : all) value *= by;
  values.write(all);
}
void scale(MatrixBuffer& matrix, float by) {
  std::vector<unsigned char> bytes = matrix.bytes.read();
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint16_t)) {
    std::uint16_t code;
    std::memcpy(&code, &bytes[at], sizeof code);
    code = static_cast<std::uint16_t>(round_to_bf16(to_float(Bf16{code}) * by));
    std::memcpy(&bytes[at], &code, sizeof code);
  }
  matrix.bytes.write(bytes);
}

/// The usual random weights, but so large that halves keep few of them, behind norms that are as much smaller.
Weights large_weights(Runtime& runtime, const Config& config) {
  Weights weights = random_weights(runtime, config, 3);
  const auto shift = [](Buffer<float>& norm, std::initializer_list<MatrixBuffer*> matrices) {
    scale(norm, 0x1p-8f);
    for (MatrixBuffer* matrix : matrices) scale(*matrix, 0x1p8f);
  };
  for (LayerWeights& w : weights.layers) {
    shift(w.attention_norm, {&w.qkv});
    shift(w.mlp_norm, {&w.gate, &w.up});
  }
  shift(weights.final_norm, {&weights.head});
  return weights;
}

}  // namespace

TEST_CASE("emulated: logits of all families agree with transformers") {
  const std::string name = GENERATE(from_range(kTunedFamilies));
  check_family_logits(start_bulk, name, 16);
  check_family_logits(start_without_bulk, name, 6);
}

TEST_CASE("emulated: all families write the likeliest tokens that transformers writes") {
  check_family_text(start_bulk, GENERATE(from_range(kTunedFamilies)));
}

TEST_CASE("emulated: without the biases of a family that has some logits are far off") {
  check_family_without_bias(start_bulk, GENERATE("qwen2", "qwen2_heads80"));
}

TEST_CASE("emulated: windows as long as the context, shorter ones, and one that is too long to say") {
  check_family_windows(start_bulk);
}

TEST_CASE("emulated: a context that attention takes in parts, of steps on their own and of passes in a row") {
  const PartsOfContext context;
  const auto portable = context.portable();
  const auto emulated = context.tuned(emulated_runtime(context.config, context.kRoom, 3, true, 5));
  for (std::size_t i = 0; i < portable.size(); ++i) {
    INFO("position " << context.positions[i]);
    CHECK(relative_error(emulated[i], portable[i]) < kMostTunedError);
  }
  const auto on_cpu = context.tuned(start_tuned_runtime(
      {.target = Target::cpu, .workers = 5, .scratch_bytes = tuned_scratch_bytes(context.config, false, context.kRoom)}));
  CHECK(relative_error(emulated.back(), on_cpu.back()) < kMostTunedError);
}

TEST_CASE("emulated: more query heads to a key and value head than go through attention at once, an odd number in all") {
  struct Heads {
    Family family;
    int all, kv_heads, size;
    std::uint32_t workers;  // twice as many as slices of heads, two a group, so that each has parts
  };
  const auto heads = GENERATE(Heads{Family::kQwen3, 15, 3, 32, 12}, Heads{Family::kQwen2, 7, 1, 80, 4});
  Config config = small_config();
  config.family = heads.family;
  config.hidden_size = 128;
  config.num_attention_heads = heads.all;
  config.num_key_value_heads = heads.kv_heads;
  config.head_dim = heads.size;
  config.max_position_embeddings = 2048;
  const std::vector<std::uint32_t> positions = positions_from({0, 1022});
  Runtime cpu = start_portable_runtime({.target = Target::cpu, .workers = 2});
  PortableGenerator oracle(cpu, config, random_weights(cpu, config, 3), 1040);
  const auto portable = logits_at(oracle, positions);
  Runtime runtime = emulated_runtime(config, 1040, 3, true, heads.workers);
  TunedGenerator generator(runtime, config, random_weights(runtime, config, 3), 1040);
  CHECK(generator.memory().splits > 1);
  const auto tuned = logits_at(generator, positions);
  for (std::size_t i = 0; i < portable.size(); ++i) CHECK(relative_error(tuned[i], portable[i]) < kMostTunedError);
}

TEST_CASE("emulated: 16 texts in one compiled step, each as the portable decode has it alone") {
  Config config = small_config();
  config.hidden_size = 2048;
  config.intermediate_size = 4096;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 8;
  config.head_dim = 256;
  std::vector<std::vector<std::uint32_t>> texts;
  for (std::uint32_t t = 0; t < 16; ++t) texts.push_back({3 + t, 17 * t % 300, 40 + t});
  for (std::size_t t = 0; t < texts.size(); ++t) texts[t].resize(1 + t % 3);
  Runtime runtime = emulated_runtime(config, 32, 3, true);
  TunedGenerator generator(runtime, config, random_weights(runtime, config, 5), 32, 16);
  REQUIRE(generator.sequences() == 16);
  const auto logits = generator.logits_of(texts);
  Runtime cpu = start_portable_runtime({.target = Target::cpu, .workers = 2});
  PortableGenerator oracle(cpu, config, random_weights(cpu, config, 5), 32);
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const auto alone = oracle.logits(texts[t]);
    REQUIRE(logits[t].size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
      INFO("text " << t << ", position " << i);
      CHECK(relative_error(logits[t][i], alone[i]) < kMostTunedError);
    }
  }
}

TEST_CASE("emulated: weights that no half keeps count as they are, in steps and in passes over a prompt") {
  Config config = small_config();
  config.tie_word_embeddings = false;
  const std::vector<std::uint32_t> prompt{5, 9, 2, 11, 7, 3, 1, 12, 6, 4, 8};
  Runtime cpu = start_portable_runtime({.target = Target::cpu, .workers = 2});
  PortableGenerator oracle(cpu, config, large_weights(cpu, config), 32);
  Runtime runtime = start_bulk(config, 32);
  TunedGenerator generator(runtime, config, large_weights(runtime, config), 32);
  CHECK(generator.streamed_weights().patches() > 1000);
  CHECK(relative_error(generator.logits(prompt).back(), oracle.logits(prompt).back()) < kMostTunedError);
  CHECK(write_tokens(generator, undrawn(prompt, 4)) == write_tokens(oracle, undrawn(prompt, 4)));
}

// Attention weighs whole blocks of 16 positions: those to come with 0, whatever an earlier text has left there.
TEST_CASE("emulated: a text that failed for its numbers leaves nothing to the next") {
  Config config = small_config();
  config.tie_word_embeddings = false;
  Runtime runtime = start_bulk(config, 32);
  Weights weights = random_weights(runtime, config, 3);
  constexpr std::uint32_t kTooLarge = 7;
  const std::vector<std::uint16_t> row(static_cast<std::size_t>(config.hidden_size), 0x7f00);
  weights.embedding.bytes.write(reinterpret_cast<const unsigned char*>(row.data()), row.size() * 2, kTooLarge * row.size() * 2);
  TunedGenerator generator(runtime, config, std::move(weights), 32);
  const auto tokens = write_tokens(generator, undrawn({5}, 3));
  CHECK(mentions(request_error_of([&] { write_tokens(generator, undrawn({5, 6, kTooLarge}, 1)); }), {"too large"}));
  CHECK(write_tokens(generator, undrawn({5}, 3)) == tokens);
  CHECK(mentions(request_error_of([&] { generator.logits({5, 6, kTooLarge}); }), {"too large"}));
  CHECK(write_tokens(generator, undrawn({5}, 3)) == tokens);
}

TEST_CASE("emulated: steps of many texts, and crowds through them") {
  for (const char* name : {"qwen3_heads64", "llama_heads256"})
    for (const int texts : {16, 32}) check_wide_logits(start_bulk, name, texts, 4);
  check_crowd(start_bulk, kFamily, {.texts = 18, .places = 16, .prompt = 12, .tokens = 2, .places_of_each = 16});
  check_crowd(start_bulk, kFamily, {.texts = 34, .places = 32, .prompt = 12, .tokens = 2, .places_of_each = 32});
}

TEST_CASE("emulated: drawn tokens are those that sorting chooses, and a seed names a text") {
  Tuned tuned(start_bulk, kFamily);
  check_drawn_texts(tuned.generator, undrawn(kPrompt, 4));
}

TEST_CASE("emulated: an end-of-text token ends the text if it is asked for") {
  check_end_of_text(start_bulk, kFamily, undrawn(kPrompt, 8));
}

TEST_CASE("emulated: what a callback throws ends the run, and the next text is whole") {
  Tuned tuned(start_bulk, kFamily);
  check_cancellation(tuned.generator, undrawn(kPrompt, 100));
}

TEST_CASE("emulated: requests that cannot be served say why") {
  Tuned tuned(start_bulk, kFamily);
  check_refusals(tuned.generator);
}

TEST_CASE("emulated: a single logit that is no number is one, whatever its sign") { check_damaged_row(start_bulk, kFamily); }

TEST_CASE("emulated: logits that are no numbers are the weights' fault") {
  check_damaged_weights(start_bulk, kFamily, {std::nanf(""), 1e8f});
}

TEST_CASE("emulated: logits after prompts agree with transformers, and the cache with a step a token") {
  check_prompts(start_bulk, GENERATE(from_range(kTunedFamilies)), {2, 3, 9, 10, 12, 26});
}

TEST_CASE("emulated: several prompts are read in one run, each into its own cache") {
  check_prompts_together(start_without_bulk, "qwen3");
}

TEST_CASE("emulated: prompts read by matrix products, heads of all sizes that these know, and a window") {
  check_products(start_bulk, GENERATE("llama3_heads64", "llama_heads96", "mistral_window", "qwen3"), {19, 40});
}

TEST_CASE("emulated: a prompt that fills the room") { check_full_room(start_bulk, "llama3_heads64"); }

TEST_CASE("emulated: a prompt whose context attention takes in parts") {
  const StartTuned start_many = [](const Config& config, int context) {
    return emulated_runtime(config, context, 3, true, 17);
  };
  check_long_prompt(start_many, "qwen3_heads64", 1054);
}

TEST_CASE("emulated: more texts than places, each as alone") {
  check_crowd(start_bulk, kFamily, {.texts = 5, .places = 2, .prompt = 18, .tokens = 5, .places_of_each = 2});
  check_long_comes_late(start_without_bulk, kFamily, 40);
}

}  // namespace llama
