// The tuned decode of the shipped model through the GPU's kernel, on an emulated GPU, against transformers: control,
// load, compute and store roles, pages and handoffs together, at random paces.
#include "llama_emulated_support.hpp"

#include "apps/llama/tuned/generator.hpp"
#include "apps/llama/tuned/start.hpp"
#include "llama_families_support.hpp"
#include "llama_sampling_support.hpp"
#include "llama_texts_support.hpp"

namespace llama {
namespace {

constexpr double kMostError = 1e-3;  // keys, values and activations are rounded to halves

Runtime cpu_tuned_runtime(const Config& config, int context) {
  Options options;
  options.target = Target::cpu;
  options.workers = 2;
  options.scratch_bytes = tuned_scratch_bytes(config, false, context);
  return start_tuned_runtime(options);
}

}  // namespace

TEST_CASE("emulated: logits of the shipped model agree with transformers") {
  const Golden golden;
  const Config config = read_config(kModelFolder);
  for (const bool bulk : {true, false}) {
    const std::vector<std::uint32_t> ids(golden.ids.begin(), golden.ids.begin() + (bulk ? 16 : 6));
    Runtime runtime = emulated_runtime(config, 256, bulk ? 3 : 2, bulk);
    INFO(runtime.device());
    TunedGenerator generator(runtime, kModelFolder, 256);
    const double worst = worst_error(generator.logits(ids), golden);
    CHECK(worst < kMostError);
  }
}

// One submission: all steps loop on the device.
TEST_CASE("emulated: a text written greedily is the one of CPU workers") {
  const Config config = read_config(kModelFolder);
  const Golden golden;
  Request request;
  request.prompt.assign(golden.ids.begin(), golden.ids.begin() + 8);
  request.tokens = 16;
  const auto write = [&](Runtime&& runtime) {
    TunedGenerator generator(runtime, kModelFolder, 256);
    std::vector<std::uint32_t> tokens;
    generator.generate(request, [&](std::uint32_t token) { tokens.push_back(token); });
    return tokens;
  };
  const auto expected = write(cpu_tuned_runtime(config, 256));
  CHECK(expected.size() == 16);
  CHECK(write(emulated_runtime(config, 256, 5, true)) == expected);
}

// With 8 a compute part has two blocks of columns and hands over more often. The portable tasks are the oracle.
TEST_CASE("emulated: logits of several different texts are those of the portable decode") {
  const Config config = read_config(kModelFolder);
  const Golden golden;
  Runtime cpu = cpu_runtime();
  PortableGenerator oracle(cpu, kModelFolder, 64);
  for (const int count : {2, 4, 8}) {
    Runtime runtime = emulated_runtime(config, 64, 3, true);
    INFO(runtime.device() << ", " << count << " texts");
    TunedGenerator generator(runtime, kModelFolder, 64, count);
    Texts texts;
    for (int i = 0; i < count; ++i) texts.emplace_back(golden.ids.begin() + 20 * i, golden.ids.begin() + 20 * i + 2 + i % 4);
    const auto logits = generator.logits_of(texts);
    for (std::size_t text = 0; text < texts.size(); ++text) {
      const auto wanted = oracle.logits(texts[text]);
      REQUIRE(logits[text].size() == wanted.size());
      for (std::size_t position = 0; position < wanted.size(); ++position)
        CHECK(relative_error(logits[text][position], wanted[position]) < kMostError);
    }
  }
}

// One submission: all steps of all texts loop on the device.
TEST_CASE("emulated: several texts written greedily are those that each request alone gives, but for near ties") {
  const Config config = read_config(kModelFolder);
  const Golden golden;
  Runtime cpu = cpu_tuned_runtime(config, 64);
  TunedGenerator one(cpu, kModelFolder, 64);
  for (const int count : {2, 3, 8}) {
    const auto requests = different_requests(golden, count, true);
    Runtime runtime = emulated_runtime(config, 64, 3, true);
    INFO(runtime.device() << ", " << count << " texts");
    TunedGenerator generator(runtime, kModelFolder, 64, count);
    const Texts texts = write_texts(generator, requests), alone = write_alone(one, requests);
    for (std::size_t text = 0; text < texts.size(); ++text) {
      const NearTie tie = first_difference(one, requests[text].prompt, texts[text], alone[text]);
      INFO("text " << text << " is another one from token " << tie.at << " on");
      CHECK(texts[text].size() == alone[text].size());
      CHECK(tie.gap < 4 * kMostError);
    }
  }
}

// Top-k and top-p from the largest logits of groups of rows, top-p alone from all logits.
TEST_CASE("emulated: each of several texts has the tokens that sorting chooses from its logits") {
  const Config config = read_config(kModelFolder);
  const Golden golden;
  for (const int count : {1, 8}) {
    auto requests = different_requests(golden, count, false);
    for (std::size_t text = 1; text < requests.size(); text += 2) requests[text].sampling.top_k = 0;
    Runtime runtime = emulated_runtime(config, 64, 3, true);
    INFO(runtime.device() << ", " << count << " texts");
    TunedGenerator generator(runtime, kModelFolder, 64, count);
    const Texts texts = write_texts(generator, requests);
    Texts read;
    for (std::size_t text = 0; text < texts.size(); ++text) {
      read.push_back(requests[text].prompt);
      read.back().insert(read.back().end(), texts[text].begin(), texts[text].end() - 1);
    }
    const auto logits = generator.logits_of(read);
    for (std::size_t text = 0; text < texts.size(); ++text)
      for (std::size_t i = 0; i < texts[text].size(); ++i) {
        const std::size_t position = requests[text].prompt.size() - 1 + i;
        CHECK(texts[text][i] ==
              sampled_by_sorting(logits[text][position], requests[text].sampling, static_cast<std::uint32_t>(position)));
      }
  }
}

// The tasks that choose are with several workers, and the last of them to end its text ends the run.
TEST_CASE("emulated: each of several texts ends at its own end-of-text token, and the run with the last") {
  Config config = read_config(kModelFolder);
  const Golden golden;
  auto requests = different_requests(golden, 4, true);
  Runtime runtime = emulated_runtime(config, 64, 3, true);
  INFO(runtime.device());
  TunedGenerator endless(runtime, kModelFolder, 64, 4);
  const Texts all = write_texts(endless, requests);
  for (const auto& text : all) config.eos_token_ids.push_back(static_cast<int>(text[2]));
  const Texts cut = cut_at(config.eos_token_ids, all);
  for (Request& request : requests) request.stop_at_end = true;
  TunedGenerator generator(runtime, config, load_weights(runtime, config, kModelFolder), 64, 4);
  CHECK(write_texts(generator, requests) == cut);
  const auto outcomes = generator.generate(requests, [](std::size_t, std::uint32_t) {});
  CHECK(outcomes[0].ended);
  CHECK(outcomes[0].steps == steps_of(requests, cut));
  CHECK(steps_of(requests, cut) < steps_of(requests, all));
}

}  // namespace llama
