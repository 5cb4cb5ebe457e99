// What the tuned decode must do wherever it runs. Three tests say how to start a runtime and call these: on CPU workers, on
// an emulated GPU and on a GPU.
#pragma once

#include <functional>

#include "apps/llama/tuned/generator.hpp"
#include "catch.hpp"
#include "llama_families_support.hpp"
#include "llama_sampling_support.hpp"

namespace llama {

/// Keys and values are rounded to halves, activations to 16 bits: the error is that of their last bits, not of float sums.
inline constexpr double kMostTunedError = 1e-2;

/// A runtime for the tuned tasks of such a model, with room for so many positions.
using StartTuned = std::function<Runtime(const Config& config, int context)>;

/// A model of a folder, ready to write.
struct Tuned {
  Tuned(const StartTuned& start, const std::filesystem::path& folder, int context = kFamilyContext,
        PromptWay way = PromptWay::best)
      : Tuned(start, folder, read_config(folder), context, way) {}
  Tuned(const StartTuned& start, const std::filesystem::path& folder, const Config& config, int context = kFamilyContext,
        PromptWay way = PromptWay::best)
      : runtime(start(config, context)),
        generator(runtime, config, load_weights(runtime, config, folder), context, 1, way) {}

  Runtime runtime;
  TunedGenerator generator;
};

/// Written by a runtime that is gone by then: a GPU has room for one at a time.
inline std::vector<std::uint32_t> text_of(const StartTuned& start, const std::filesystem::path& folder, int context,
                                          const Request& request) {
  Tuned tuned(start, folder, context);
  return write_tokens(tuned.generator, request);
}

inline Request undrawn(const std::vector<std::uint32_t>& prompt, std::uint32_t tokens) {
  return {.prompt = prompt, .tokens = tokens, .sampling = {}, .stop_at_end = false};
}

/// What has been fed in when the last token is chosen.
inline std::vector<std::uint32_t> all_but_last(std::vector<std::uint32_t> prompt, const std::vector<std::uint32_t>& tokens) {
  prompt.insert(prompt.end(), tokens.begin(), tokens.end() - 1);
  return prompt;
}

/// The first `positions` positions of a family.
inline void check_family_logits(const StartTuned& start, const std::string& name, std::size_t positions,
                                int context = kFamilyContext) {
  const FamilyGolden golden(name);
  Tuned tuned(start, family_folder(name), context);
  const auto logits = tuned.generator.logits({golden.ids.begin(), golden.ids.begin() + static_cast<std::ptrdiff_t>(positions)});
  REQUIRE(logits.size() == positions);
  for (std::size_t position = 0; position < positions; ++position) {
    INFO(name << " at position " << position);
    CHECK(relative_error(logits[position], golden.at(position)) < kMostTunedError);
  }
}

/// Activations of steps by matrix products are bf16, which these small models make most of.
inline constexpr double kMostWideError = 3e-2;

/// The same of many texts at once, which begin alike and end one after the other.
inline void check_wide_logits(const StartTuned& start, const std::string& name, int texts, std::size_t positions) {
  const FamilyGolden golden(name);
  const Config config = read_config(family_folder(name));
  Runtime runtime = start(config, kFamilyContext);
  TunedGenerator generator(runtime, config, load_weights(runtime, config, family_folder(name)), kFamilyContext, texts);
  REQUIRE(generator.sequences() == texts);
  std::vector<std::vector<std::uint32_t>> ids;
  for (std::size_t text = 0; text < static_cast<std::size_t>(texts); ++text) {
    const std::size_t length = positions - text % (positions / 2);
    ids.emplace_back(golden.ids.begin(), golden.ids.begin() + static_cast<std::ptrdiff_t>(length));
  }
  const auto logits = generator.logits_of(ids);
  for (std::size_t text = 0; text < ids.size(); ++text)
    for (std::size_t position = 0; position < ids[text].size(); ++position) {
      INFO(name << ", text " << text << " at position " << position);
      CHECK(relative_error(logits[text][position], golden.at(position)) < kMostWideError);
      CHECK(logits[text][position] == logits[0][position]);
    }
}

/// What a decode that knows no biases would compute is no rounding error.
inline void check_family_without_bias(const StartTuned& start, const std::string& name) {
  const FamilyGolden golden(name);
  const Config config = read_config(family_folder(name));
  Runtime runtime = start(config, kFamilyContext);
  Weights weights = load_weights(runtime, config, family_folder(name));
  for (LayerWeights& layer : weights.layers) {
    REQUIRE(layer.qkv_bias.size() == static_cast<std::size_t>(config.qkv_size()));
    layer.qkv_bias = {};
  }
  TunedGenerator generator(runtime, config, std::move(weights), kFamilyContext);
  const auto logits = generator.logits({golden.ids.begin(), golden.ids.begin() + 4});
  for (std::size_t position = 0; position < logits.size(); ++position) {
    INFO(name << " at position " << position);
    CHECK(relative_error(logits[position], golden.at(position)) > 10 * kMostTunedError);
  }
}

/// A window as long as the context changes nothing; a shorter one does, from its own length on; one that no task can say is
/// refused.
inline void check_family_windows(const StartTuned& start) {
  const auto [name, window] = kWindowedFamilies.front();
  check_family_logits(start, name, window, static_cast<int>(window));
  const FamilyGolden golden(name);
  const auto folder = family_folder(name);
  Config config = read_config(folder);
  config.windows.assign(config.windows.size(), static_cast<int>(window) + 1);
  Tuned other(start, folder, config);
  const auto logits =
      other.generator.logits({golden.ids.begin(), golden.ids.begin() + static_cast<std::ptrdiff_t>(window) + 1});
  CHECK(relative_error(logits.at(window - 1), golden.at(window - 1)) < kMostTunedError);
  CHECK(relative_error(logits.at(window), golden.at(window)) > 2 * kMostTunedError);
  config.windows.back() = 70000;
  const std::string error = request_error_of([&] { Tuned(start, folder, config, 80000); });
  INFO(error);
  CHECK(mentions(error, {"last 70000 positions", "context is of 80000", "at most 70000", "without --tuned"}));
}

/// The golden texts choose clearly everywhere: a logit's error is some thousandths.
inline void check_family_text(const StartTuned& start, const std::string& name) {
  INFO(name);
  const FamilyGolden golden(name);
  REQUIRE(golden.greedy.size() == 64);
  REQUIRE(golden.least_gap() > 1e-2);
  Tuned tuned(start, family_folder(name));
  CHECK(write_tokens(tuned.generator, golden.greedy_request()) == golden.greedy);
}

/// Where two logits are closer than this, either may be the likeliest. Over 256 tokens of the shipped model the tuned
/// decode's logits are up to 0.003 from those of the portable tasks (on CPU workers).
inline constexpr float kNearTie = 0.02f;

/// Each token of a greedy text is the one that the portable tasks find the likeliest after those before it, or as good as.
inline void check_text_against_portable(const std::vector<std::uint32_t>& tokens, Generator& portable, const Request& request) {
  REQUIRE(tokens.size() == request.tokens);
  const auto logits = portable.logits(all_but_last(request.prompt, tokens));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    INFO("token " << i);
    const auto& after = logits[request.prompt.size() - 1 + i];
    CHECK(*std::ranges::max_element(after) - after.at(tokens[i]) < kNearTie);
  }
}

/// Each token is the one that sorting would choose from the logits at its place.
inline void check_drawn(TunedGenerator& generator, const Request& request, const std::vector<std::uint32_t>& tokens) {
  const auto logits = generator.logits(all_but_last(request.prompt, tokens));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t position = request.prompt.size() - 1 + i;
    INFO("token " << i << ", temperature " << request.sampling.temperature << ", top-k " << request.sampling.top_k << ", top-p "
                  << request.sampling.top_p);
    CHECK(tokens[i] == sampled_by_sorting(logits[position], request.sampling, static_cast<std::uint32_t>(position)));
  }
}

inline void check_drawn_texts(TunedGenerator& generator, Request request) {
  for (const Sampling& how : {Sampling{.temperature = 1.3f, .seed = 1}, Sampling{.temperature = 0.9f, .top_k = 5, .seed = 2},
                              Sampling{.temperature = 1.1f, .top_p = 0.6f, .seed = 3},
                              Sampling{.temperature = 0.8f, .top_p = 0.95f, .top_k = 50, .seed = 1623}}) {
    request.sampling = how;
    const auto tokens = write_tokens(generator, request);
    REQUIRE(tokens.size() == request.tokens);
    check_drawn(generator, request, tokens);
    CHECK(write_tokens(generator, request) == tokens);
    request.sampling.seed += 1000;
    CHECK(write_tokens(generator, request) != tokens);
  }
}

/// A token of the greedy text is made an end-of-text token.
inline void check_end_of_text(const StartTuned& start, const std::filesystem::path& folder, const Request& request) {
  std::vector<std::uint32_t> tokens = text_of(start, folder, kFamilyContext, request);
  const std::uint32_t end = tokens.at(tokens.size() / 2);
  Config config = read_config(folder);
  config.eos_token_ids = {static_cast<int>(end)};
  Tuned tuned(start, folder, config);
  Request ending = request;
  ending.stop_at_end = true;
  std::vector<std::uint32_t> ended;
  const Outcome outcome = tuned.generator.generate(ending, [&](std::uint32_t token) { ended.push_back(token); });
  CHECK(outcome.ended);
  CHECK(outcome.tokens == ended.size());
  CHECK(write_tokens(tuned.generator, request) == tokens);
  tokens.erase(std::ranges::find(tokens, end) + 1, tokens.end());
  CHECK(ended == tokens);
}

/// What a callback throws ends the run, and the next text is whole.
inline void check_cancellation(TunedGenerator& generator, const Request& request) {
  Request few = request;
  few.tokens = 10;
  const auto tokens = write_tokens(generator, few);
  std::vector<std::uint32_t> seen;
  const auto throw_at_third = [&](std::uint32_t token) {
    seen.push_back(token);
    if (seen.size() == 3) throw std::out_of_range("enough");
  };
  CHECK_THROWS_AS(generator.generate(request, throw_at_third), std::out_of_range);
  CHECK(seen == std::vector<std::uint32_t>(tokens.begin(), tokens.begin() + 3));
  // Tokens come as they are made: these were seen before the last was.
  CHECK(generator.memory().states.read()[0].position < request.prompt.size() - 1 + request.tokens);
  CHECK(write_tokens(generator, few) == tokens);
}

/// Requests that cannot be served say why, and the next one is served.
inline void check_refusals(TunedGenerator& generator) {
  const auto error_of = [&](const Request& request) { return request_error_of([&] { write_tokens(generator, request); }); };
  const auto vocabulary = static_cast<std::uint32_t>(generator.config().vocab_size);
  const auto room = static_cast<std::uint32_t>(generator.context());
  CHECK(mentions(error_of(undrawn({}, 1)), {"no tokens"}));
  CHECK(mentions(error_of(undrawn({vocabulary}, 1)), {std::to_string(vocabulary), "0 to"}));
  CHECK(mentions(error_of(undrawn(std::vector<std::uint32_t>(room + 1, 1), 1)), {std::to_string(room), "shorten"}));
  CHECK(mentions(error_of(undrawn({1, 2}, room)), {"at most " + std::to_string(room - 1)}));
  CHECK(mentions(error_of(undrawn({1}, 0)), {"1 or more"}));
  Request request = undrawn({1}, 1);
  request.sampling.top_p = 0;
  CHECK(mentions(error_of(request), {"top-p"}));
  request.sampling = {.temperature = -1};
  CHECK(mentions(error_of(request), {"temperature"}));
  CHECK(write_tokens(generator, undrawn({1}, 2)).size() == 2);
}

/// Weights of the last norm that make no numbers, or activations beyond what halves hold; greedily and drawn.
inline void check_damaged_weights(const StartTuned& start, const std::filesystem::path& folder,
                                  const std::vector<float>& damaged) {
  const Config config = read_config(folder);
  for (const float weight : damaged) {
    Runtime runtime = start(config, kFamilyContext);
    Weights weights = load_weights(runtime, config, folder);
    weights.final_norm.write(std::vector<float>(weights.final_norm.size(), weight));
    TunedGenerator generator(runtime, config, std::move(weights), kFamilyContext);
    Request request = undrawn({1}, 5);
    for (const float temperature : {0.f, 1.f}) {
      request.sampling.temperature = temperature;
      CHECK(mentions(request_error_of([&] { write_tokens(generator, request); }), {"damaged", "too large"}));
    }
  }
}

/// One logit that is no number, of either sign; greedily and drawn.
inline void check_damaged_row(const StartTuned& start, const std::filesystem::path& folder) {
  const Config config = read_config(folder);
  for (const std::uint16_t bits : {0x7fc0, 0xffc0}) {
    Runtime runtime = start(config, kFamilyContext);
    Weights weights = load_weights(runtime, config, folder);
    // Written once it is loaded: a file with such a weight would be refused.
    Buffer<unsigned char>& table = (config.tie_word_embeddings ? weights.embedding : weights.head).bytes;
    const std::vector<std::uint16_t> row(static_cast<std::size_t>(config.hidden_size), bits);
    const std::size_t bytes = row.size() * sizeof bits;
    table.write(reinterpret_cast<const unsigned char*>(row.data()), bytes, 7 * bytes);
    TunedGenerator generator(runtime, config, std::move(weights), kFamilyContext);
    Request request = undrawn({1}, 5);
    for (const Sampling& how : {Sampling{}, Sampling{.temperature = 1}, Sampling{.temperature = 1, .top_k = 5}}) {
      request.sampling = how;
      INFO("bits " << bits << ", temperature " << how.temperature << ", top-k " << how.top_k);
      CHECK(mentions(request_error_of([&] { write_tokens(generator, request); }), {"damaged", "too large"}));
    }
  }
}

}  // namespace llama
