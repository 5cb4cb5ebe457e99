// What a text to be written is asked for with, and what comes of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "apps/llama/checkpoint/config.hpp"
#include "apps/llama/decode/step.cuh"

namespace llama {

/// A request that the model cannot serve: what() says what is wrong and what to do.
class RequestError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What `llama generate` does if it is not told otherwise.
inline constexpr Sampling kUsualSampling{.temperature = 0.8f, .top_p = 0.95f, .top_k = 50, .reserved = 0, .seed = 1623};

struct Request {
  std::vector<std::uint32_t> prompt;  // at least one token
  std::uint32_t tokens = 256;         // to write, at most
  Sampling sampling;
  bool stop_at_end = true;  // an end-of-text token is the last one
};

/// Steps that write a text from position `first` of its prompt on, at most.
inline std::uint32_t steps_from(std::size_t first, const Request& request) {
  return static_cast<std::uint32_t>(request.prompt.size() - 1 - first) + request.tokens;
}

struct Outcome {
  std::uint32_t tokens = 0;  // written
  bool ended = false;        // by an end-of-text token
  // From the call that asked for all the texts to this one's first token, and to its last.
  std::chrono::duration<double> first_token{}, time{};
  std::uint32_t steps = 0;  // of the decode, for all texts of the call
};

using OnToken = std::function<void(std::uint32_t token)>;
/// `text`: the number of its request among those of the call, from 0.
using OnTextToken = std::function<void(std::size_t text, std::uint32_t token)>;
/// A text has ended, with all of its outcome but the steps: others may still be written.
using OnTextEnd = std::function<void(std::size_t text, const Outcome& outcome)>;

/// The context asked for, or a sensible one for 0: the model's own length, or 4096 if that is longer. Throws RequestError for
/// one the model was not made for.
int choose_context(const Config& config, int wanted);

/// Throws RequestError for a prompt that is empty, has tokens outside the vocabulary or leaves no room for the text, and for
/// settings that make no sense; for no request at all; of several, it says which.
void check_requests(const std::vector<Request>& requests, const Config& config, int context);
/// The same of a prompt alone.
void check_ids(const std::vector<std::uint32_t>& ids, const Config& config, int context);

}  // namespace llama
