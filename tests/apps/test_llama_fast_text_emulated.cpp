// Texts of the tuned decode through the GPU's kernel, on an emulated GPU: small models against transformers, the choice of
// tokens, and how a text ends.
#include "llama_emulated_support.hpp"

#include "llama_tuned_support.hpp"

namespace flywheel::llama {
namespace {

Runtime start_bulk(const Config& config, int context) { return emulated_runtime(config, context, 3, true); }
Runtime start_without_bulk(const Config& config, int context) { return emulated_runtime(config, context, 2, false); }

const auto kFamily = family_folder("qwen3_heads64");
const std::vector<std::uint32_t> kPrompt{50, 47, 120};

}  // namespace

TEST_CASE("emulated: logits of both families agree with transformers") {
  const std::string name = GENERATE(from_range(kTunedFamilies));
  check_family_logits(start_bulk, name, 16);
  check_family_logits(start_without_bulk, name, 6);
}

TEST_CASE("emulated: both families write the likeliest tokens that transformers writes") {
  check_family_text(start_bulk, GENERATE(from_range(kTunedFamilies)));
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

TEST_CASE("emulated: logits that are no numbers are the weights' fault") { check_damaged_weights(start_bulk, kFamily); }

}  // namespace flywheel::llama
