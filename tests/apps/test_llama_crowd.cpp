// More texts than places: who ends leaves, who waits takes the place. On CPU workers, which round no activations: exactly.
#include "llama_crowd_support.hpp"

#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"
#include "llama_small_config.hpp"

namespace llama {
namespace {

const auto kFamily = family_folder("qwen3_heads64");

Runtime start_tuned(const Config& config, int context) {
  return start_tuned_runtime(tuned_options(config, {.context = context, .texts = 16}, {.target = Target::cpu, .workers = 2}));
}

}  // namespace

TEST_CASE("crowd: texts of random lengths are each what they are alone, whatever the number of places") {
  check_crowd(start_tuned, kFamily, {.texts = 60, .places = GENERATE(1, 2, 4, 8), .prompt = 60, .tokens = 40});
}

TEST_CASE("crowd: through more places than the compiled decode has") {
  const auto start = [](const Config& config, int context) {
    return start_tuned_runtime(tuned_options(config, {.context = context, .texts = 64}, {.target = Target::cpu, .workers = 2}));
  };
  for (const int places : {16, 32})
    check_crowd(start, kFamily, {.texts = 40, .places = places, .prompt = 40, .tokens = 12, .places_of_each = places});
  check_crowd(start, kFamily, {.texts = 70, .places = 64, .prompt = 12, .tokens = 4, .places_of_each = 64});
  check_crowd_cancellation(start, kFamily, {.texts = 40, .places = 32, .prompt = 20, .tokens = 8});
}

TEST_CASE("crowd: where matrix products read the prompts, and write each text's first token") {
  for (const int places : {1, 2, 32})
    check_crowd(
        start_tuned, kFamily,
        {.texts = 40, .places = places, .prompt = 50, .tokens = 6, .places_of_each = places, .way = PromptWay::products});
  check_crowd_cancellation(start_tuned, kFamily,
                           {.texts = 9, .places = 2, .prompt = 30, .tokens = 5, .way = PromptWay::products});
}

TEST_CASE("crowd: more than sixteen places want a vocabulary whose logits are whole vectors") {
  Config config = small_config();
  config.vocab_size = 302;
  Runtime runtime = start_tuned(config, 16);
  const auto error_of = [&](int texts) {
    return request_error_of([&] { TunedGenerator(runtime, config, random_weights(runtime, config, 3), 16, texts); });
  };
  CHECK(error_of(16).empty());
  CHECK(mentions(error_of(32), {"more than 16 texts", "multiple of 4", "302", "16 or fewer"}));
}

TEST_CASE("crowd: steps of many texts agree with transformers, all families") {
  check_wide_logits(start_tuned, GENERATE(from_range(kTunedFamilies)), GENERATE(16, 32), 24);
}

TEST_CASE("crowd: a text with a long prompt joins while another is written") {
  check_long_comes_late(start_tuned, kFamily, 100);
  check_long_comes_late(start_tuned, kFamily, 1100);  // attention takes it in parts
}

TEST_CASE("crowd: what a callback throws ends all texts, and the next ones are whole") {
  check_crowd_cancellation(start_tuned, kFamily, {.texts = 9, .places = 2, .prompt = 30, .tokens = 12});
}

TEST_CASE("crowd: where the decode's steps read the prompts") {
  const Config config = read_config(kFamily);
  Runtime runtime = start_tuned(config, 64);
  TunedGenerator generator(runtime, config, load_weights(runtime, config, kFamily), 64, 2, PromptWay::token_by_token);
  const auto requests = RandomRequests(config, 3).several({.texts = 7, .places = 2, .prompt = 20, .tokens = 10});
  CHECK(tell(generator, requests).texts == write_alone(generator, requests));
}

TEST_CASE("crowd: the portable decode writes one text after the other") {
  const Config config = read_config(kFamily);
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, config, load_weights(runtime, config, kFamily), 64);
  const auto requests = RandomRequests(config, 4).several({.texts = 5, .places = 1, .prompt = 20, .tokens = 10});
  const Told told = tell(generator, requests);
  std::size_t steps = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CHECK(told.texts[i] == write_tokens(generator, requests[i]));
    CHECK((i == 0 || told.outcomes[i - 1].time <= told.outcomes[i].first_token));
    steps += steps_from(0, requests[i]);
  }
  CHECK(told.outcomes[0].steps == steps);
}

}  // namespace llama
