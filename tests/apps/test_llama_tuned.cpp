// The compiled decode on CPU workers: its portable bodies, graph, cache layout and schedule, against transformers.
#include "catch.hpp"
#include "llama_families_support.hpp"

#include "apps/llama/tuned/start.hpp"
#include "llama_texts_support.hpp"

namespace llama {
namespace {

// Keys and values are rounded to halves, so the error is that of their last bit, not of float sums.
constexpr double kMostError = 1e-2;

Runtime tuned_runtime(const Config& config, int context, std::uint32_t workers) {
  Options options;
  options.target = Target::cpu;
  options.workers = workers;
  options.scratch_bytes = tuned_scratch_bytes(config, false, context);
  return start_tuned_runtime(options);
}

TEST_CASE("compiled: logits of the shipped model agree with transformers, whatever the number of workers") {
  const Golden golden;
  const Config config = read_config(kModelFolder);
  const std::vector<std::uint32_t> ids(golden.ids.begin(), golden.ids.begin() + 150);
  for (const std::uint32_t workers : {1u, 3u, 7u}) {
    Runtime runtime = tuned_runtime(config, 512, workers);
    TunedGenerator generator(runtime, kModelFolder);
    const auto logits = generator.logits(ids);
    double worst = 0;
    for (std::size_t position = 0; position < logits.size(); ++position)
      worst = std::max(worst, relative_error(logits[position], golden.at(position)));
    INFO("workers " << workers << ", worst error " << worst);
    CHECK(worst < kMostError);
  }
}

TunedGenerator generator_of(Runtime& runtime, const Config& config, int context, int texts) {
  return TunedGenerator(runtime, config, load_weights(runtime, config, kModelFolder), context, texts);
}

// Exactly: CPU workers do not round activations, and so short a context is not split.
TEST_CASE("compiled: each of several texts is the one that its request alone gives") {
  const Golden golden;
  const Config config = read_config(kModelFolder);
  Runtime runtime = tuned_runtime(config, 64, 3);
  TunedGenerator one = generator_of(runtime, config, 64, 1);
  for (const bool greedy : {true, false}) {
    const auto requests = different_requests(golden, 8, greedy);
    const Texts alone = write_alone(one, requests);
    CHECK(alone[0].size() == 5);
    CHECK(alone[1].size() == 8);
    for (const int count : {2, 3, 5, 8}) {
      INFO(count << " texts");
      TunedGenerator several = generator_of(runtime, config, 64, count);
      const auto some = std::vector(requests.begin(), requests.begin() + count);
      CHECK(write_texts(several, some) == Texts(alone.begin(), alone.begin() + count));
      CHECK(write_texts(several, {some[1]}) == Texts{alone[1]});
    }
  }
}

TEST_CASE("compiled: each text ends at its own end-of-text token, and the run when all have") {
  const Golden golden;
  Config config = read_config(kModelFolder);
  Runtime runtime = tuned_runtime(config, 256, 2);
  auto requests = different_requests(golden, 3, true);
  for (Request& request : requests) request.tokens = 200;
  TunedGenerator endless = generator_of(runtime, config, 256, 3);
  const Texts all = write_texts(endless, requests);
  config.eos_token_ids = {static_cast<int>(all[0][20]), static_cast<int>(all[1][9]), static_cast<int>(all[2][30])};
  const Texts cut = cut_at(config.eos_token_ids, all);
  TunedGenerator generator = generator_of(runtime, config, 256, 3);
  for (Request& request : requests) request.stop_at_end = true;
  CHECK(write_texts(generator, requests) == cut);
  const auto ignore = [](std::size_t, std::uint32_t) {};
  CHECK(generator.generate(requests, ignore)[0].steps == steps_of(requests, cut));
  requests[1].stop_at_end = false;
  CHECK(write_texts(generator, requests) == Texts{cut[0], all[1], cut[2]});
  const auto outcomes = generator.generate(requests, ignore);
  CHECK(outcomes[0].ended);
  CHECK_FALSE(outcomes[1].ended);
  CHECK(outcomes[0].steps == steps_of(requests, {cut[0], all[1], cut[2]}));
}

TEST_CASE("compiled: logits of several texts are those of each alone") {
  const Golden golden;
  const Config config = read_config(kModelFolder);
  Runtime runtime = tuned_runtime(config, 64, 3);
  TunedGenerator one = generator_of(runtime, config, 64, 1), several = generator_of(runtime, config, 64, 3);
  const auto ids = golden.ids.begin();
  const Texts texts{{ids, ids + 7}, {ids + 40, ids + 41}, {ids + 60, ids + 72}};
  const auto all = several.logits_of(texts);
  REQUIRE(all.size() == 3);
  for (std::size_t text = 0; text < texts.size(); ++text) CHECK(all[text] == one.logits(texts[text]));
  CHECK(several.logits(texts[2]) == all[2]);
}

TEST_CASE("compiled: requests for several texts that cannot be served say why") {
  const Golden golden;
  const Config config = read_config(kModelFolder);
  Runtime runtime = tuned_runtime(config, 64, 2);
  TunedGenerator generator = generator_of(runtime, config, 64, 2);
  const auto error_of = [&](const std::vector<Request>& requests) {
    return request_error_of([&] { write_texts(generator, requests); });
  };
  auto requests = different_requests(golden, 2, true);
  CHECK(mentions(error_of({}), {"no text", "one prompt"}));
  requests[1].tokens = 65;
  CHECK(mentions(error_of(requests), {"text 2 of 2", "context of 64", "write at most"}));
  requests[1].prompt.assign(65, 1);
  CHECK(mentions(error_of(requests), {"text 2 of 2", "65 tokens", "shorten"}));
  requests[1].prompt.clear();
  CHECK(mentions(error_of(requests), {"text 2 of 2", "no tokens"}));
  for (const int texts : {0, 65})
    CHECK(mentions(request_error_of([&] { generator_of(runtime, config, 64, texts); }), {"1 to 64", std::to_string(texts)}));
  CHECK(mentions(request_error_of([&] { generator.logits_of({{1}, {2}, {3}}); }), {"not 3"}));
  CHECK(mentions(request_error_of([&] { generator.logits_of({{1}, {}}); }), {"no tokens"}));
}

TEST_CASE("compiled: what a callback throws ends the run of all texts, and the next ones are whole") {
  const Golden golden;
  const Config config = read_config(kModelFolder);
  Runtime runtime = tuned_runtime(config, 512, 2);
  TunedGenerator generator = generator_of(runtime, config, 512, 2);
  auto requests = different_requests(golden, 2, true);
  const Texts texts = write_texts(generator, requests);
  requests[0].tokens = 400;
  const auto stop_early = [](std::size_t text, std::uint32_t) {
    if (text == 1) throw std::out_of_range("enough");
  };
  CHECK_THROWS_AS(generator.generate(requests, stop_early), std::out_of_range);
  requests[0].tokens = 5;
  CHECK(write_texts(generator, requests) == texts);
}

}  // namespace
}  // namespace llama
