#include "apps/llama/decode/request.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace llama {
namespace {

constexpr int kDefaultContext = 4096;

std::string counted(std::size_t n, const char* thing) { return std::to_string(n) + " " + thing + (n == 1 ? "" : "s"); }

void check_sampling(const Sampling& how) {
  if (!std::isfinite(how.temperature) || how.temperature < 0)
    throw RequestError("the temperature must be 0 (always the likeliest token) or more, and finite");
  if (!(how.top_p > 0 && how.top_p <= 1)) throw RequestError("top-p is a probability: give a number above 0 and at most 1");
}

void check_request(const Request& request, const Config& config, int context) {
  if (request.tokens == 0) throw RequestError("there are no tokens to write: ask for 1 or more");
  check_sampling(request.sampling);
  check_ids(request.prompt, config, context);
  // The last token written needs no position: nothing comes after it.
  const std::size_t room = static_cast<std::size_t>(context) + 1 - request.prompt.size();
  if (request.tokens > room)
    throw RequestError(counted(request.prompt.size(), "token") + " of prompt and " + std::to_string(request.tokens) +
                       " to write go beyond the context of " + std::to_string(context) + ": write at most " +
                       std::to_string(room));
}

}  // namespace

int choose_context(const Config& config, int wanted) {
  const int most = config.max_position_embeddings;
  if (wanted > most)
    throw RequestError("a context of " + counted(static_cast<std::size_t>(wanted), "position") +
                       " is more than the model was made for: ask for at most " + std::to_string(most));
  return wanted > 0 ? wanted : std::min(most, kDefaultContext);
}

void check_requests(const std::vector<Request>& requests, const Config& config, int context) {
  if (requests.empty()) throw RequestError("there is no text to write: give one prompt or more");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    try {
      check_request(requests[i], config, context);
    } catch (const RequestError& error) {
      if (requests.size() == 1) throw;
      throw RequestError("text " + std::to_string(i + 1) + " of " + std::to_string(requests.size()) + ": " + error.what());
    }
  }
}

void check_ids(const std::vector<std::uint32_t>& ids, const Config& config, int context) {
  if (ids.empty()) throw RequestError("the prompt has no tokens: give at least one character of text");
  for (const std::uint32_t id : ids) {
    if (id >= static_cast<std::uint32_t>(config.vocab_size))
      throw RequestError("token " + std::to_string(id) + " is not in the vocabulary: ids go from 0 to " +
                         std::to_string(config.vocab_size - 1));
  }
  if (ids.size() > static_cast<std::size_t>(context))
    throw RequestError("the prompt has " + counted(ids.size(), "token") + ", and the context holds " + std::to_string(context) +
                       ": shorten the prompt");
}

}  // namespace llama
