// Several texts at once by the tuned decode on a GPU: against the portable decode, and against each text alone.
#include "apps/llama/bench/check.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"
#include "catch.hpp"
#include "llama_texts_support.hpp"

namespace llama {
namespace {

constexpr double kMostError = 1e-3;  // keys, values and activations are rounded to halves

Runtime gpu_runtime(const Config& config) {
  return start_tuned_runtime(
      tuned_options(config, {.context = 128, .texts = 8}, {.target = Target::gpu, .tuning = {.operand_window = kBestWindow}}));
}

TEST_CASE("GPU: logits of several different texts are those of the portable decode") {
  const Config config = read_config(kModelFolder);
  const BenchModel model{"shipped", config, kModelFolder};
  for (const int texts : {1, 2, 3, 8}) {
    const CheckResult result = check_against_portable(model, texts, 24, {.target = Target::gpu});
    INFO(texts << " texts, worst error " << result.worst);
    CHECK(result.differs == "");
    CHECK(result.worst < kMostError);
  }
}

TEST_CASE("GPU: several texts written greedily are those that each request alone gives, but for near ties") {
  const Config config = read_config(kModelFolder);
  const Golden golden;
  Runtime runtime = gpu_runtime(config);
  TunedGenerator one(runtime, kModelFolder, 128);
  for (const int count : {2, 3, 5, 8}) {
    auto requests = different_requests(golden, count, true);
    for (Request& request : requests) request.tokens += 80;
    TunedGenerator generator(runtime, kModelFolder, 128, count);
    const Texts texts = write_texts(generator, requests), alone = write_alone(one, requests);
    for (std::size_t text = 0; text < texts.size(); ++text) {
      const NearTie tie = first_difference(one, requests[text].prompt, texts[text], alone[text]);
      INFO(count << " texts, text " << text << " is another one from token " << tie.at << " on");
      CHECK(texts[text].size() == alone[text].size());
      CHECK(tie.gap < 4 * kMostError);
    }
  }
}

TEST_CASE("GPU: a text is the same beside whatever is written, greedy and drawn") {
  const Config config = read_config(kModelFolder);
  const Golden golden;
  Runtime runtime = gpu_runtime(config);
  TunedGenerator generator(runtime, kModelFolder, 128, 8);
  for (const bool greedy : {true, false}) {
    const auto requests = different_requests(golden, 8, greedy);
    const Texts texts = write_texts(generator, requests);
    CHECK(write_texts(generator, requests) == texts);
    CHECK(write_alone(generator, requests) == texts);
  }
}

TEST_CASE("GPU: each of several texts ends at its own end-of-text token, and the run with the last") {
  Config config = read_config(kModelFolder);
  const Golden golden;
  auto requests = different_requests(golden, 5, true);
  Runtime runtime = gpu_runtime(config);
  TunedGenerator endless(runtime, kModelFolder, 128, 5);
  const Texts all = write_texts(endless, requests);
  for (const auto& text : all) config.eos_token_ids.push_back(static_cast<int>(text[2]));
  const Texts cut = cut_at(config.eos_token_ids, all);
  for (Request& request : requests) request.stop_at_end = true;
  TunedGenerator generator(runtime, config, load_weights(runtime, config, kModelFolder), 128, 5);
  CHECK(write_texts(generator, requests) == cut);
  const auto outcomes = generator.generate(requests, [](std::size_t, std::uint32_t) {});
  CHECK(outcomes[0].ended);
  CHECK(outcomes[0].steps == steps_of(requests, cut));
}

}  // namespace
}  // namespace llama
