// The tuned decode on a GPU: against transformers and the portable tasks, the choice of tokens, and how a text ends.
#include "llama_crowd_support.hpp"
#include "llama_prompts_support.hpp"

#include "apps/llama/tuned/start.hpp"

namespace llama {
namespace {

Runtime start_with(const Config& config, int context, bool bulk) {
  Options options;
  options.target = Target::gpu;
  options.scratch_bytes = tuned_scratch_bytes(config, true, context);
  options.tuning.bulk_copies = bulk;
  return start_tuned_runtime(options);
}
Runtime start_tuned(const Config& config, int context) { return start_with(config, context, true); }
Runtime start_without_bulk(const Config& config, int context) { return start_with(config, context, false); }

constexpr int kContext = 512;
const std::vector<std::uint32_t> kPrompt{50, 47, 200};
const auto kFamily = family_folder("qwen3_heads64");

TEST_CASE("tuned on the GPU: logits of the shipped model agree with transformers, and repeat to the last bit") {
  const Golden golden;
  for (const auto& start : {start_tuned, start_without_bulk}) {
    Tuned tuned(start, kModelFolder, kContext);
    REQUIRE(tuned.runtime.on_gpu());
    const auto logits = tuned.generator.logits(golden.ids);
    CHECK(worst_error(logits, golden) < kMostTunedError);
    CHECK(tuned.generator.logits(golden.ids) == logits);
  }
}

TEST_CASE("tuned on the GPU: logits of all families agree with transformers at every position") {
  const std::string name = GENERATE(from_range(kTunedFamilies));
  check_family_logits(start_tuned, name, 48);
  check_family_logits(start_without_bulk, name, 48);
}

TEST_CASE("tuned on the GPU: all families write the likeliest tokens that transformers writes") {
  const std::string name = GENERATE(from_range(kTunedFamilies));
  check_family_text(start_tuned, name);
  check_family_text(start_without_bulk, name);
}

TEST_CASE("tuned on the GPU: logits after prompts agree with transformers, and the cache with a step a token") {
  std::vector<std::size_t> lengths;
  for (std::size_t length = 1; length <= 35; ++length) lengths.push_back(length);
  check_prompts(start_tuned, GENERATE(from_range(kTunedFamilies)), lengths);
}

TEST_CASE("tuned on the GPU: logits after prompts that matrix products read agree with transformers") {
  check_products(start_tuned, GENERATE(from_range(kProductFamilies)), {18, 19, 31, 48});
}

TEST_CASE("tuned on the GPU: prompts of several tiles of rows, read at once and in parts, leave the same bits") {
  check_long_products(start_tuned, "qwen3_heads64", GENERATE(129, 300, 512, 513, 514, 700, 3000));
}

TEST_CASE("tuned on the GPU: prompts of several texts at once, one that fills the room, and a long one") {
  check_prompts_together(start_tuned, "qwen3");
  check_full_room(start_without_bulk, "llama3_heads64");
  check_long_prompt(start_tuned, "qwen3_heads64", 3000);
}

TEST_CASE("tuned on the GPU: without the biases of a family that has some logits are far off") {
  check_family_without_bias(start_tuned, GENERATE("qwen2", "qwen2_heads80"));
}

TEST_CASE("tuned on the GPU: windows as long as the context, shorter ones, and one that is too long to say") {
  check_family_windows(start_tuned);
}

TEST_CASE("tuned on the GPU: steps of many texts agree with transformers, all families") {
  const auto name = GENERATE(from_range(kTunedFamilies));
  for (const int texts : {16, 32, 64}) check_wide_logits(start_tuned, name, texts, 24);
}

TEST_CASE("tuned on the GPU: more texts than places, each as alone") {
  for (const int places : {2, 8})
    check_crowd(start_tuned, kFamily, {.texts = 60, .places = places, .prompt = 60, .tokens = 40, .places_of_each = places});
  check_long_comes_late(start_tuned, kFamily, 1100);
  for (const int places : {16, 32, 64})
    check_crowd(start_tuned, kFamily, {.texts = 90, .places = places, .prompt = 60, .tokens = 20, .places_of_each = places});
  check_crowd_cancellation(start_without_bulk, kFamily, {.texts = 9, .places = 2, .prompt = 30, .tokens = 12});
}

TEST_CASE("tuned on the GPU: a greedy text of the shipped model is the portable one, near ties aside") {
  const Request request = undrawn(kPrompt, 256);
  const auto tokens = text_of(start_tuned, kModelFolder, kContext, request);
  Runtime runtime = start_portable_runtime({.target = Target::gpu});
  PortableGenerator portable(runtime, kModelFolder);
  check_text_against_portable(tokens, portable, request);
}

TEST_CASE("tuned on the GPU: drawn tokens are those that sorting chooses, and a seed names a text") {
  Tuned tuned(start_tuned, kModelFolder, kContext);
  check_drawn_texts(tuned.generator, undrawn(kPrompt, 120));
}

TEST_CASE("tuned on the GPU: a seed names a text in a runtime of its own, too, with bulk copies or without") {
  Request request = undrawn(kPrompt, 120);
  request.sampling = {.temperature = 0.8f, .top_p = 0.95f, .top_k = 50, .seed = 1623};
  const auto write = [&](const StartTuned& start) { return text_of(start, kModelFolder, kContext, request); };
  const auto tokens = write(start_tuned);
  CHECK(write(start_tuned) == tokens);
  CHECK(write(start_without_bulk) == tokens);
}

TEST_CASE("tuned on the GPU: an end-of-text token ends the text if it is asked for") {
  check_end_of_text(start_tuned, kModelFolder, undrawn(kPrompt, 40));
}

TEST_CASE("tuned on the GPU: what a callback throws ends the run, and the next text is whole") {
  Tuned tuned(start_tuned, kModelFolder, kContext);
  check_cancellation(tuned.generator, undrawn(kPrompt, 500));
}

TEST_CASE("tuned on the GPU: requests that cannot be served say why") {
  Tuned tuned(start_tuned, kModelFolder);
  check_refusals(tuned.generator);
}

TEST_CASE("tuned on the GPU: a single logit that is no number is one, whatever its sign") {
  check_damaged_row(start_tuned, kFamily);
}

TEST_CASE("tuned on the GPU: logits that are no numbers are the weights' fault") {
  check_damaged_weights(start_tuned, kFamily, {std::nanf(""), 1e8f});
}

}  // namespace
}  // namespace llama
