// What reading a prompt in chunks must leave, wherever it runs: on CPU workers, on an emulated GPU and on a GPU.
#pragma once

#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"
#include "llama_tuned_support.hpp"

namespace llama {

/// Keys and values of the positions before `count` of text `text`, in all layers.
inline std::vector<float> cached_before(TunedGenerator& generator, int text, int count) {
  const TunedMemory& memory = generator.memory();
  const Config& config = generator.config();
  std::vector<float> all;
  for (std::size_t layer = 0; layer < memory.keys.size(); ++layer) {
    std::vector<Half> keys = memory.keys[layer].read(), values = memory.values_cache[layer].read();
    for (int head = 0; head < config.num_key_value_heads; ++head) {
      const TunedCache of = TunedCache{keys.data(), values.data()}.head(text * config.num_key_value_heads + head,
                                                                        memory.context, config.head_dim);
      for (int position = 0; position < count; ++position)
        for (int i = 0; i < config.head_dim; ++i) {
          all.push_back(to_float(of.keys[TunedCache::key_at(position, i, config.head_dim)]));
          all.push_back(to_float(of.values[TunedCache::value_at(position, i, config.head_dim)]));
        }
    }
  }
  return all;
}

/// A step with more sequences adds the squares of a norm in another order, which moves sums by their last bits, and halves now
/// and then by one of theirs.
inline double cache_error(TunedGenerator& one, TunedGenerator& other, int text, std::uint32_t count) {
  if (count == 0) return 0;
  return relative_error(cached_before(one, text, static_cast<int>(count)), cached_before(other, text, static_cast<int>(count)));
}
inline constexpr double kMostCacheError = 1e-3;

/// Of a family's model, a generator that reads prompts in chunks and one that reads them token by token.
struct TwoReaders {
  TwoReaders(const StartTuned& start, const std::string& name, int context = kFamilyContext, int texts = 1,
             PromptWay way = PromptWay::chunks)
      : folder(family_folder(name)),
        config(read_config(folder)),
        runtime(start(config, context)),
        chunks(runtime, config, load_weights(runtime, config, folder), context, texts, way),
        tokens(runtime, config, load_weights(runtime, config, folder), context, texts, PromptWay::token_by_token) {}

  std::filesystem::path folder;
  Config config;
  Runtime runtime;
  TunedGenerator chunks, tokens;
};

/// Prompts of these lengths of a family: the logits after each, in one step from where the chunks end, are those that
/// transformers computes, and the cache has what a step a token leaves.
inline void check_prompts(const StartTuned& start, const std::string& name, const std::vector<std::size_t>& lengths) {
  const FamilyGolden golden(name);
  TwoReaders two(start, name);
  two.tokens.logits({golden.ids.begin(), golden.ids.begin() + static_cast<std::ptrdiff_t>(std::ranges::max(lengths))});
  for (const std::size_t length : lengths) {
    INFO(name << ", a prompt of " << length);
    const std::vector<std::uint32_t> prompt(golden.ids.begin(), golden.ids.begin() + static_cast<std::ptrdiff_t>(length));
    const std::uint32_t first = two.chunks.read_prompts({prompt}).at(0);
    CHECK(first + 1 >= prompt.size() - 1);
    CHECK((length < 3 || first > 0));
    CHECK(cache_error(two.chunks, two.tokens, 0, first) < kMostCacheError);
    std::vector<float> logits;
    for (std::uint32_t position = first; position < length; ++position)
      logits = two.chunks.logits_from({{position, prompt[position]}});
    CHECK(relative_error(logits, golden.at(length - 1)) < kMostTunedError);
  }
}

/// Prompts of different lengths, read in one run, are in the caches of their own texts and nowhere else.
inline void check_prompts_together(const StartTuned& start, const std::string& name) {
  const FamilyGolden golden(name);
  TwoReaders two(start, name, kFamilyContext, 4);
  std::vector<std::vector<std::uint32_t>> prompts;
  for (const std::ptrdiff_t length : {19, 1, 40, 10}) prompts.emplace_back(golden.ids.end() - length, golden.ids.end());
  const auto nothing = cached_before(two.chunks, 1, 16);
  const std::vector<std::uint32_t> first = two.chunks.read_prompts(prompts);
  CHECK(first == std::vector<std::uint32_t>{18, 0, 39, 8});
  CHECK((cached_before(two.chunks, 1, 16) == nothing));
  two.tokens.logits_of(prompts);
  for (std::size_t text = 0; text < prompts.size(); ++text) {
    INFO("text " << text);
    CHECK(cache_error(two.chunks, two.tokens, static_cast<int>(text), first[text]) < kMostCacheError);
  }
}

/// Products round activations to bf16, which keeps 8 bits.
inline constexpr double kMostProductError = 1e-2;

/// Prompts of these lengths of a family, read by matrix products: as check_prompts(), but for the rounding.
inline void check_products(const StartTuned& start, const std::string& name, const std::vector<std::size_t>& lengths) {
  const FamilyGolden golden(name);
  TwoReaders two(start, name, kFamilyContext, 1, PromptWay::products);
  two.tokens.logits({golden.ids.begin(), golden.ids.begin() + static_cast<std::ptrdiff_t>(std::ranges::max(lengths))});
  for (const std::size_t length : lengths) {
    INFO(name << ", a prompt of " << length);
    const std::vector<std::uint32_t> prompt(golden.ids.begin(), golden.ids.begin() + static_cast<std::ptrdiff_t>(length));
    const std::uint32_t first = two.chunks.read_prompts({prompt}).at(0);
    CHECK(first == length - 1);
    CHECK(cache_error(two.chunks, two.tokens, 0, first) < kMostProductError);
    CHECK(relative_error(two.chunks.logits_from({{first, prompt[first]}}), golden.at(first)) < kMostProductError);
  }
}

/// The run that reads a prompt by matrix products writes the text's first token: a likeliest one of those logits. The next
/// ones are what steps write behind it.
inline void check_first_token(const StartTuned& start, const std::string& name, const std::vector<std::size_t>& lengths) {
  const FamilyGolden golden(name);
  TwoReaders two(start, name, kFamilyContext, 1, PromptWay::products);
  for (const std::size_t length : lengths) {
    INFO(name << ", a prompt of " << length);
    const std::vector<std::uint32_t> prompt(golden.ids.begin(), golden.ids.begin() + static_cast<std::ptrdiff_t>(length));
    const auto tokens = write_tokens(two.chunks, {.prompt = prompt, .tokens = 3, .sampling = {}, .stop_at_end = false});
    REQUIRE(tokens.size() == 3);
    const std::span<const float> logits = golden.at(length - 1);
    double largest = 0;
    for (const float one : logits) largest = std::max(largest, std::abs(static_cast<double>(one)));
    CHECK(logits[tokens[0]] > std::ranges::max(logits) - 2 * kMostProductError * largest);
    for (std::uint32_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto next = two.chunks.logits_from({{static_cast<std::uint32_t>(length) + i, tokens[i]}});
      CHECK(tokens[i + 1] == static_cast<std::uint32_t>(std::ranges::max_element(next) - next.begin()));
    }
    CHECK(write_tokens(two.chunks, {.prompt = prompt, .tokens = 1, .sampling = {}, .stop_at_end = false}) ==
          std::vector{tokens[0]});
  }
}

/// A prompt of several tiles of rows, read at once and in short parts beside another text: the same bits, and nearly those of
/// a step a token.
inline void check_long_products(const StartTuned& start, const std::string& name, int length) {
  const FamilyGolden golden(name);
  std::vector<std::uint32_t> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back(golden.ids[static_cast<std::size_t>(i * i + i / 7) % golden.ids.size()]);
  TwoReaders two(start, name, length + 8, 2, PromptWay::products);
  REQUIRE(two.chunks.read_prompts({{1, 2, 3}, prompt}).at(1) == prompt.size() - 1);
  const auto count = static_cast<int>(prompt.size()) - 1;
  const auto at_once = cached_before(two.chunks, 1, count);
  two.tokens.logits_of({{1}, prompt});
  CHECK(relative_error(at_once, cached_before(two.tokens, 1, count)) < kMostProductError);
  const Request beside{.prompt = {1, 2, 3}, .tokens = 12, .sampling = {}, .stop_at_end = false};
  const Request late{.prompt = prompt, .tokens = 1, .sampling = {}, .stop_at_end = false};
  Request early = beside;
  early.tokens = 2;  // its place is the long prompt's, while the other is written
  two.chunks.generate({early, beside, late}, [](std::size_t, std::uint32_t) {});
  CHECK((cached_before(two.chunks, 0, count) == at_once));
}

/// A prompt that fills the room to its last position, where a chunk goes beyond it.
inline void check_full_room(const StartTuned& start, const std::string& name) {
  const FamilyGolden golden(name);
  constexpr int kRoom = 27;
  TwoReaders two(start, name, kRoom);
  const Request request{
      .prompt = {golden.ids.begin(), golden.ids.begin() + kRoom}, .tokens = 1, .sampling = {}, .stop_at_end = false};
  const auto token = write_tokens(two.chunks, request);
  CHECK(token == write_tokens(two.tokens, request));
  const std::span<const float> logits = golden.at(kRoom - 1);
  CHECK(token == std::vector{static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin())});
}

/// A prompt beyond kAlone, where attention takes the context in parts. The oracle is the decode of CPU workers, step by step.
inline void check_long_prompt(const StartTuned& start, const std::string& name, int length) {
  const FamilyGolden golden(name);
  const int room = length + 8;
  std::vector<std::uint32_t> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back(golden.ids[static_cast<std::size_t>(i * i + i / 7) % golden.ids.size()]);
  Tuned tuned(start, family_folder(name), room, PromptWay::chunks);
  REQUIRE(tuned.generator.memory().splits > 1);
  const std::uint32_t first = tuned.generator.read_prompts({prompt}).at(0);
  REQUIRE(first == prompt.size() - 1);
  const auto logits = tuned.generator.logits_from({{first, prompt[first]}});
  const StartTuned start_oracle = [](const Config& config, int context) {
    return start_tuned_runtime(tuned_options(config, {.context = context}, {.target = Target::cpu, .workers = 2}));
  };
  Tuned oracle(start_oracle, family_folder(name), room);
  for (std::uint32_t position = 0; position < prompt.size(); ++position)
    oracle.generator.logits_from({{position, prompt[position]}});
  CHECK(relative_error(logits, oracle.generator.last_logits()) < kMostTunedError);
}

}  // namespace llama
