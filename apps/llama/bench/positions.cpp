#include "apps/llama/bench/positions.hpp"

#include <algorithm>

#include "apps/llama/bench/check_context.hpp"
#include "apps/llama/decode/request.hpp"

namespace llama {
namespace {

constexpr std::uint32_t kStarts[] = {32, 1024};

std::uint64_t most_of(const Config& config) { return static_cast<std::uint64_t>(config.max_position_embeddings); }

std::string option(const char* name, std::uint64_t value) { return std::string(name) + " " + std::to_string(value); }

int checked(const Config& config, std::uint64_t positions, const std::string& asked) {
  const std::uint64_t most = most_of(config);
  if (positions <= most) return static_cast<int>(positions);
  throw RequestError(asked + ": that takes " + std::to_string(positions) + " positions, and the model was made for " +
                     std::to_string(most) + ": ask for fewer");
}

}  // namespace

int positions_of_run(const Config& config, std::uint64_t start, std::uint64_t tokens, const std::string& asked) {
  return checked(config, start + tokens, option("--context", start) + " and " + asked);
}

int positions_of_check(const Config& config, std::uint64_t positions) {
  return checked(config, positions, option("--portable-check", positions));
}

int positions_of_prompt(const Config& config, std::uint64_t length) {
  return checked(config, length, option("--prefill", length));
}

int positions_of_contexts(const Config& config, const std::vector<std::uint32_t>& starts) {
  const std::uint64_t last = starts.empty() ? 0 : *std::ranges::max_element(starts);
  return checked(config, last + kStepsOfContext,
                 option("--portable-context", last) + " and " + std::to_string(kStepsOfContext) + " steps from there");
}

std::vector<std::uint32_t> default_starts(const Config& config, std::uint64_t tokens, const std::string& asked) {
  std::vector<std::uint32_t> starts;
  for (const std::uint32_t start : kStarts)
    if (start + tokens <= most_of(config)) starts.push_back(start);
  if (starts.empty()) positions_of_run(config, kStarts[0], tokens, asked);  // throws
  return starts;
}

}  // namespace llama
