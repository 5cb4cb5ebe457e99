#include "apps/llama/bench/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/llama/bench/positions.hpp"
#include "apps/llama/bench/step_words.hpp"
#include "apps/llama/decode/fill_random.cuh"
#include "apps/llama/portable/generator.hpp"
#include "apps/llama/portable/options.hpp"
#include "apps/llama/portable/start.hpp"
#include "apps/llama/tuned/generator.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"

namespace llama {
namespace {

using Ids = std::vector<std::uint32_t>;
using Texts = std::vector<Ids>;
using Logits = std::vector<std::vector<float>>;

/// No two of which are alike.
Texts random_texts(const BenchModel& model, int count, std::uint32_t positions) {
  Texts texts;
  for (int i = 0; i < count; ++i)
    texts.push_back(random_ids(model.config, positions, model.seed + static_cast<std::uint64_t>(i)));
  return texts;
}

std::vector<Logits> by_portable_tasks(const BenchModel& model, const Texts& texts, const Options& options) {
  const int context = static_cast<int>(texts.front().size());
  Runtime runtime = start_portable_runtime(portable_options(model.config, context, options));
  PortableGenerator generator(runtime, model.config, model.weights(runtime), context);
  std::vector<Logits> all;
  for (const Ids& ids : texts) all.push_back(generator.logits(ids));
  return all;
}

/// Of a run of all texts at once; and where a second one first left other words.
std::pair<std::vector<Logits>, std::string> by_tuned_tasks(const BenchModel& model, const Texts& texts,
                                                           const Options& options) {
  const int context = static_cast<int>(texts.front().size()), count = static_cast<int>(texts.size());
  Runtime runtime = start_tuned_runtime(
      tuned_options(model.config, {.context = context, .texts = count, .prompts = PromptWay::token_by_token}, options));
  TunedGenerator generator(runtime, model.config, model.weights(runtime), context, count, PromptWay::token_by_token);
  std::vector<StepWords> words;
  std::vector<Logits> first = generator.logits_of(texts, [&] { words.emplace_back(generator); });
  std::string differs;
  std::uint32_t position = 0;
  generator.logits_of(texts, [&] {
    if (differs.empty()) differs = first_difference(position, words[position], StepWords(generator));
    ++position;
  });
  return {std::move(first), std::move(differs)};
}

}  // namespace

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    size += y * y;
  }
  const double error = std::sqrt(difference / size);
  return a.size() == b.size() && std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

std::vector<std::uint32_t> random_ids(const Config& config, std::uint32_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < count; ++i)
    ids.push_back(static_cast<std::uint32_t>(FillRandom::mix(seed, i) % static_cast<std::uint64_t>(config.vocab_size)));
  return ids;
}

CheckResult check_against_portable(const BenchModel& model, int count, std::uint32_t positions, const Options& options) {
  if (positions == 0) throw RequestError("a check of no positions shows nothing: ask for 1 or more");
  positions_of_check(model.config, positions);
  const Texts texts = random_texts(model, sequences_for(count), positions);
  const std::vector<Logits> wanted = by_portable_tasks(model, texts, options);
  auto [first, differs] = by_tuned_tasks(model, texts, options);
  CheckResult result{.differs = std::move(differs)};
  for (std::size_t text = 0; text < texts.size(); ++text)
    for (std::size_t i = 0; i < positions; ++i)
      result.worst = std::max(result.worst, relative_error(first[text][i], wanted[text][i]));
  return result;
}

}  // namespace llama
