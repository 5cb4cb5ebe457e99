// What the tests of several texts at once share.
#pragma once

#include <algorithm>
#include <cmath>

#include "apps/llama/tuned/generator.hpp"
#include "llama_run_support.hpp"

namespace llama {

using Texts = std::vector<std::vector<std::uint32_t>>;

/// `count` requests of which no two are alike: prompts of 1 to 9 tokens from all over the golden ids, 5 to 12 tokens to
/// write, and, unless `greedy`, seeds of their own.
inline std::vector<Request> different_requests(const Golden& golden, int count, bool greedy) {
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    const auto from = golden.ids.begin() + 17 * i;
    Request request{.prompt = {from, from + 1 + (5 * i + 3) % 9},
                    .tokens = 5 + static_cast<std::uint32_t>(3 * i % 8),
                    .sampling = {},
                    .stop_at_end = false};
    if (!greedy) request.sampling = {.temperature = 1, .top_p = 0.95f, .top_k = 50, .seed = 9 + static_cast<std::uint64_t>(i)};
    requests.push_back(std::move(request));
  }
  return requests;
}

/// All at once.
inline Texts write_texts(TunedGenerator& generator, const std::vector<Request>& requests) {
  Texts texts(requests.size());
  const auto outcomes =
      generator.generate(requests, [&](std::size_t text, std::uint32_t token) { texts.at(text).push_back(token); });
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (outcomes.at(i).tokens != texts[i].size()) throw std::runtime_error("an outcome is not what was streamed");
  return texts;
}

/// One after the other.
inline Texts write_alone(TunedGenerator& generator, const std::vector<Request>& requests) {
  Texts texts;
  for (const Request& request : requests) texts.push_back(write_texts(generator, {request}).front());
  return texts;
}

/// What is left of texts that go on beyond their ends when they stop at the first of these tokens.
inline Texts cut_at(const std::vector<int>& ends, Texts texts) {
  const auto is_end = [&](std::uint32_t token) { return std::ranges::count(ends, static_cast<int>(token)) > 0; };
  for (auto& text : texts) {
    const auto end = std::ranges::find_if(text, is_end);
    if (end != text.end()) text.erase(end + 1, text.end());
  }
  return texts;
}

/// Passes of a run that writes these texts, whose prompts are read in chunks of 8 positions before it. A single position more
/// is left to the run.
inline std::size_t steps_of(const std::vector<Request>& requests, const Texts& texts) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < texts.size(); ++i)
    most = std::max(most, ((requests[i].prompt.size() - 1) % 8 == 1 ? 1 : 0) + texts[i].size());
  return most;
}

/// Where one text is not the other, and what `generator` thinks of the two tokens there: how far apart their logits
/// are, over the root mean square of all. Nothing if the texts are the same.
struct NearTie {
  std::size_t at;
  double gap;
};
inline NearTie first_difference(TunedGenerator& generator, std::vector<std::uint32_t> ids, const std::vector<std::uint32_t>& a,
                                const std::vector<std::uint32_t>& b) {
  const auto [one, other] = std::ranges::mismatch(a, b);
  if (one == a.end() || other == b.end()) return {a.size(), 0};
  ids.insert(ids.end(), a.begin(), one);
  const std::vector<float> logits = generator.logits(ids).back();
  double square = 0;
  for (const float logit : logits) square += static_cast<double>(logit) * static_cast<double>(logit);
  const double apart = std::abs(static_cast<double>(logits[*one] - logits[*other]));
  return {static_cast<std::size_t>(one - a.begin()), apart / std::sqrt(square / static_cast<double>(logits.size()))};
}

}  // namespace llama
