#include "apps/llama/decode/tally.hpp"

#include <algorithm>

namespace llama {

Tally::Tally(const std::vector<Request>& requests, const Config& config, const OnTextToken& on_token, const OnTextEnd& on_end)
    : requests_(requests),
      ends_(config.eos_token_ids),
      on_token_(on_token),
      on_end_(on_end),
      outcomes_(requests.size()) {}

bool Tally::add(std::size_t text, std::uint32_t token) {
  const Request& request = requests_.at(text);
  Outcome& outcome = outcomes_.at(text);
  outcome.time = std::chrono::steady_clock::now() - begin_;
  if (outcome.tokens++ == 0) outcome.first_token = outcome.time;
  outcome.ended = request.stop_at_end && std::ranges::find(ends_, static_cast<int>(token)) != ends_.end();
  const bool last = outcome.ended || outcome.tokens == request.tokens;
  on_token_(text, token);
  if (last && on_end_) on_end_(text, outcome);
  return last;
}

std::vector<Outcome> Tally::outcomes() const {
  std::vector<Outcome> all = outcomes_;
  for (Outcome& outcome : all) outcome.steps = steps_;
  return all;
}

}  // namespace llama
