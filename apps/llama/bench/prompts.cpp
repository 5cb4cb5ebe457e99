#include "apps/llama/bench/prompts.hpp"

#include <cstdio>

namespace llama {
namespace {

/// Some ids of the vocabulary; which ones costs nothing.
std::vector<std::uint32_t> some_ids(std::uint32_t count, int vocabulary) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < count; ++i) ids.push_back((7919 * i + 13) % static_cast<std::uint32_t>(vocabulary));
  return ids;
}

std::string name_of(const std::string& model, const PromptTimes& times) {
  return "prefill." + model + ".p" + std::to_string(times.tokens);
}

}  // namespace

void trace_prompt(TunedGenerator& generator, std::uint32_t length, Trace& trace) {
  const std::vector<std::vector<std::uint32_t>> prompts{some_ids(length, generator.config().vocab_size)};
  generator.read_prompts(prompts);  // what the first one fetches belongs to no trace
  generator.read_prompts(prompts, &trace);
}

std::vector<PromptTimes> measure_prompts(TunedGenerator& generator, const std::vector<std::uint32_t>& lengths, int runs) {
  std::vector<PromptTimes> all;
  for (const std::uint32_t length : lengths) {
    PromptTimes& times = all.emplace_back(PromptTimes{length, {}, {}});
    const Request request{some_ids(length, generator.config().vocab_size), 1, {}, false};
    for (int round = 0; round <= runs; ++round) {
      const double chunks = generator.generate(request, [](std::uint32_t) {}).time.count() * 1e3;
      const double steps = generator.run(0, length).count() * 1e3;
      if (round == 0) continue;
      times.chunks.push_back(chunks);
      times.token_by_token.push_back(steps);
    }
  }
  return all;
}

std::vector<Row> prompt_rows(const std::string& model, const std::vector<PromptTimes>& all, const measure::Stamp& stamp) {
  std::vector<Row> rows;
  for (const PromptTimes& times : all) {
    Row row = row_of(name_of(model, times), times.chunks, "ms", measure::Better::lower, stamp);
    row.peer = "the decode, token by token";
    row.peer_value = median(times.token_by_token);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string prompt_table(const std::string& model, const std::vector<PromptTimes>& all) {
  char line[200];
  std::snprintf(line, sizeof line, "%-44s %9s %9s %9s %15s\n", "prompt, to its first token", "ms", "least", "tokens/s",
                "token by token");
  std::string text = line;
  for (const PromptTimes& times : all) {
    const double ms = median(times.chunks), least = measure::percentile(times.chunks, 1);
    std::snprintf(line, sizeof line, "%-44s %9.3f %9.3f %9.0f %12.3f ms\n", name_of(model, times).c_str(), ms, least,
                  times.tokens / ms * 1e3, median(times.token_by_token));
    text += line;
  }
  return text;
}

}  // namespace llama
