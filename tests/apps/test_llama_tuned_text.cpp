// Texts of the tuned decode on CPU workers: its portable bodies, graph and choice of tokens.
#include "llama_tuned_support.hpp"

#include "apps/llama/tuned/start.hpp"

namespace llama {
namespace {

Runtime start_tuned(const Config& config, int context) {
  return start_tuned_runtime(
      {.target = Target::cpu, .workers = 3, .scratch_bytes = tuned_scratch_bytes(config, false, context)});
}

const std::vector<std::uint32_t> kPrompt{50, 47, 200};
const auto kFamily = family_folder("qwen3_heads64");

TEST_CASE("tuned: logits of all families agree with transformers") {
  check_family_logits(start_tuned, GENERATE(from_range(kTunedFamilies)), 48);
}

TEST_CASE("tuned: all families write the likeliest tokens that transformers writes") {
  check_family_text(start_tuned, GENERATE(from_range(kTunedFamilies)));
}

TEST_CASE("tuned: without the biases of a family that has some logits are far off") {
  check_family_without_bias(start_tuned, GENERATE("qwen2", "qwen2_heads80"));
}

TEST_CASE("tuned: windows as long as the context, shorter ones, and one that is too long to say") {
  check_family_windows(start_tuned);
}

TEST_CASE("tuned: a greedy text of the shipped model is the portable one, near ties aside") {
  const Request request = undrawn(kPrompt, 256);
  const auto tokens = text_of(start_tuned, kModelFolder, 512, request);
  Runtime runtime = cpu_runtime();
  PortableGenerator portable(runtime, kModelFolder);
  check_text_against_portable(tokens, portable, request);
}

TEST_CASE("tuned: drawn tokens are those that sorting chooses, and a seed names a text") {
  Tuned tuned(start_tuned, kModelFolder);
  check_drawn_texts(tuned.generator, undrawn(kPrompt, 60));
}

TEST_CASE("tuned: an end-of-text token ends the text if it is asked for") {
  check_end_of_text(start_tuned, kModelFolder, undrawn(kPrompt, 40));
}

TEST_CASE("tuned: what a callback throws ends the run, and the next text is whole") {
  Tuned tuned(start_tuned, kModelFolder);
  check_cancellation(tuned.generator, undrawn(kPrompt, 120));
}

TEST_CASE("tuned: requests that cannot be served say why") {
  Tuned tuned(start_tuned, kModelFolder);
  check_refusals(tuned.generator);
}

TEST_CASE("tuned: a context of no whole blocks of 16 positions holds as many as were asked for") {
  Runtime runtime = start_tuned(read_config(kModelFolder), 21);
  TunedGenerator generator(runtime, kModelFolder, 21, 2);
  CHECK(generator.context() == 21);
  CHECK(mentions(request_error_of([&] { write_tokens(generator, undrawn(kPrompt, 20)); }), {"context of 21", "at most 19"}));
  const auto full = write_tokens(generator, undrawn(kPrompt, 19));
  REQUIRE(full.size() == 19);
  std::vector<std::uint32_t> prompt(kPrompt), second;
  prompt.insert(prompt.end(), full.begin(), full.end() - 1);
  generator.generate({undrawn({7}, 1), undrawn(prompt, 1)}, [&](std::size_t text, std::uint32_t token) {
    if (text == 1) second.push_back(token);
  });
  CHECK(second == std::vector{full.back()});  // the prompt of the second text lies where it is looked for
}

TEST_CASE("tuned: a single logit that is no number is one, whatever its sign") { check_damaged_row(start_tuned, kFamily); }

TEST_CASE("tuned: logits that are no numbers are the weights' fault") {
  check_damaged_weights(start_tuned, kFamily, {std::nanf("")});
}

TEST_CASE("tuned: models without tuned tasks are sent to the portable ones") {
  const auto error_of = [](const char* name) { return request_error_of([&] { Tuned(start_tuned, family_folder(name)); }); };
  CHECK(mentions(error_of("llama3"), {"16 values", "without --tuned"}));
  CHECK(mentions(error_of("qwen3_untied"), {"24 values", "without --tuned"}));
}

}  // namespace
}  // namespace llama
