// The oracle of sampling: it sorts.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "apps/llama/portable/sample.cuh"

namespace llama {

/// Numbers of tokens.
using Tokens = std::vector<std::size_t>;

/// Likeliest first.
inline Tokens sorted(const std::vector<float>& logits) {
  Tokens order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  return order;
}

inline std::vector<std::uint64_t> masses(const std::vector<float>& logits, float temperature) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<std::uint64_t> all;
  for (const float logit : logits)
    all.push_back(static_cast<std::uint64_t>(exp_of((logit - largest) / temperature) * 2147483648.f));
  return all;
}

/// The first `count` of `order`, and those whose logits are equal to the last of them.
inline void keep_front(Tokens& order, std::size_t count, const std::vector<float>& logits) {
  while (count < order.size() && logits[order[count]] == logits[order[count - 1]]) ++count;
  order.resize(std::min(count, order.size()));
}

/// The shortest front of `order` whose masses come to the share `top_p` of its own total.
inline Tokens nucleus(Tokens order, const std::vector<float>& logits, const std::vector<std::uint64_t>& mass, float top_p) {
  double total = 0, sum = 0;
  for (const std::size_t token : order) total += static_cast<double>(mass[token]);
  const double goal = std::max(1.0, std::floor(static_cast<double>(top_p) * total));
  std::size_t kept = 0;
  while (kept < order.size() && sum < goal) sum += static_cast<double>(mass[order[kept++]]);
  keep_front(order, kept, logits);
  return order;
}

/// What Sample and TunedChoose must choose after the step at `position`. (-0 and 0 are not to be among the logits.)
inline std::uint32_t sampled_by_sorting(const std::vector<float>& logits, const Sampling& how, std::uint32_t position) {
  Tokens kept = sorted(logits);
  const auto mass = masses(logits, how.temperature);
  if (how.top_k) keep_front(kept, how.top_k, logits);
  if (how.top_p < 1) kept = nucleus(kept, logits, mass, how.top_p);
  std::sort(kept.begin(), kept.end());
  std::uint64_t total = 0, sum = 0;
  for (const std::size_t token : kept) total += mass[token];
  const std::uint64_t target = scale_down(random_bits(how.seed, position + 1), total);
  for (const std::size_t token : kept)
    if ((sum += mass[token]) > target) return static_cast<std::uint32_t>(token);
  throw std::runtime_error("the masses do not reach their own total");
}

}  // namespace llama
