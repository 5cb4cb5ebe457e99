#include "apps/llama/bench/check_context.hpp"

#include <algorithm>

#include "apps/llama/bench/check.hpp"
#include "apps/llama/bench/positions.hpp"
#include "apps/llama/bench/step_words.hpp"
#include "apps/llama/decode/fill_random.cuh"
#include "apps/llama/portable/options.hpp"
#include "apps/llama/portable/start.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"

namespace llama {
namespace {

using Logits = std::vector<std::vector<float>>;
using Positions = std::vector<std::uint32_t>;

constexpr std::uint64_t kSeedOfContext = 78;

int room_for(const Positions& positions) { return static_cast<int>(*std::ranges::max_element(positions)) + 1; }

/// Which of a layer's two caches.
enum class Part : std::uint64_t { keys, values };

/// f(head, position, dimension, number) for all of a layer's keys or values at positions 0..count-1. Numbers from -2 to 2 are
/// about as large as normed keys are. (With twice that a few positions would have all the weight, and 28 random layers
/// would blow up what halves round.)
template <class F>
void for_each_number(const Config& config, std::size_t layer, Part part, int count, F&& f) {
  const std::uint64_t seed = FillRandom::mix(kSeedOfContext, 2 * layer + static_cast<std::uint64_t>(part));
  std::uint64_t index = 0;
  for (int head = 0; head < config.num_key_value_heads; ++head)
    for (int position = 0; position < count; ++position)
      for (int i = 0; i < config.head_dim; ++i)
        f(head, position, i, static_cast<float>(static_cast<int>(FillRandom::mix(seed, index++) & 255) - 128) / 64.f);
}

void fill_caches(PortableMemory& memory, const Config& config, int count) {
  for (std::size_t layer = 0; layer < memory.caches.size(); ++layer) {
    CacheBuffer& to = memory.caches[layer];
    std::vector<float> keys(to.keys.size()), values(to.values.size());
    const KvCache cache{keys.data(), values.data(), to.cache.context, to.cache.head_dim};
    for_each_number(config, layer, Part::keys, count, [&](int head, int position, int i, float number) {
      cache.key(head, position)[i * KvCache::kStride] = number;
    });
    for_each_number(config, layer, Part::values, count,
                    [&](int head, int position, int i, float number) { cache.value(head, position)[i] = number; });
    to.keys.write(keys);
    to.values.write(values);
  }
}

/// Of a decode of one text.
void fill_caches(TunedMemory& memory, const Config& config, int count) {
  const auto fill = [&](Buffer<Half>& to, std::size_t layer, Part part, auto&& place_of) {
    std::vector<Half> numbers(to.size());
    const std::size_t of_head = numbers.size() / static_cast<std::size_t>(config.num_key_value_heads);
    for_each_number(config, layer, part, count, [&](int head, int position, int i, float number) {
      const std::size_t at = static_cast<std::size_t>(head) * of_head + place_of(position, i, config.head_dim);
      numbers[at].bits = static_cast<std::uint16_t>(round_to_half(number));
    });
    to.write(numbers);
  };
  for (std::size_t layer = 0; layer < memory.keys.size(); ++layer) {
    fill(memory.keys[layer], layer, Part::keys, TunedCache::key_at);
    fill(memory.values_cache[layer], layer, Part::values, TunedCache::value_at);
  }
}

Logits step_at(Generator& generator, const Positions& positions, const std::function<void()>& after_step) {
  Logits all;
  for (const std::uint32_t position : positions) {
    all.push_back(generator.logits_from({{position, 0}}));
    after_step();
  }
  return all;
}

Logits by_portable_tasks(const BenchModel& model, const Positions& positions, const Options& options) {
  const int room = room_for(positions);
  Runtime runtime = start_portable_runtime(portable_options(model.config, room, options));
  PortableGenerator generator(runtime, model.config, model.weights(runtime), room);
  return logits_at(generator, positions);
}

/// The logits of a run, and for each step where a second run first left other words, if anywhere.
std::pair<Logits, std::vector<std::string>> by_tuned_tasks(const BenchModel& model, const Positions& positions,
                                                           const Options& options) {
  const int room = room_for(positions);
  Runtime runtime =
      start_tuned_runtime(tuned_options(model.config, {.context = room, .prompts = PromptWay::token_by_token}, options));
  TunedGenerator generator(runtime, model.config, model.weights(runtime), room, 1, PromptWay::token_by_token);
  std::vector<StepWords> words;
  Logits logits = logits_at(generator, positions, [&] { words.emplace_back(generator); });
  std::vector<std::string> differs;
  logits_at(generator, positions, [&] {
    const std::size_t step = differs.size();
    differs.push_back(first_difference(positions[step], words[step], StepWords(generator)));
  });
  return {std::move(logits), std::move(differs)};
}

}  // namespace

Positions positions_from(const Positions& starts) {
  Positions all;
  for (const std::uint32_t start : starts)
    for (std::uint32_t step = 0; step < kStepsOfContext; ++step) all.push_back(start + step);
  return all;
}

Logits logits_at(PortableGenerator& generator, const Positions& positions) {
  fill_caches(generator.memory(), generator.config(), room_for(positions));
  return step_at(generator, positions, [] {});
}

Logits logits_at(TunedGenerator& generator, const Positions& positions, const std::function<void()>& after_step) {
  fill_caches(generator.memory(), generator.config(), room_for(positions));
  return step_at(generator, positions, after_step);
}

std::vector<ContextResult> check_contexts(const BenchModel& model, const Positions& starts, const Options& options) {
  positions_of_contexts(model.config, starts);
  const Positions positions = positions_from(starts);
  const Logits wanted = by_portable_tasks(model, positions, options);
  const auto [tuned, differs] = by_tuned_tasks(model, positions, options);
  std::vector<ContextResult> results(starts.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ContextResult& result = results[i / kStepsOfContext];
    result.worst = std::max(result.worst, relative_error(tuned[i], wanted[i]));
    if (result.differs.empty()) result.differs = differs[i];
  }
  return results;
}

}  // namespace llama
