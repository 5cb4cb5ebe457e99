// Attention of one query head over all positions so far, or the last ones of them, with rotary embedding and the
// growth of the KV cache.
#pragma once

#include "apps/llama/decode/arithmetic.cuh"
#include "apps/llama/decode/step.cuh"

namespace llama {

/// One layer's keys and values. A key's values lie 32 positions side by side, so that threads that take one
/// position each read whole lines: [kv head][context / 32][head_dim][32]. Values lie as [kv
/// head][context][head_dim].
struct KvCache {
  float* keys;
  float* values;
  std::int32_t context;  // positions there is room for, a multiple of 32
  std::int32_t head_dim;

  static constexpr int kStride = kLanes;  // between the values of one key

  FLYWHEEL_TASK float* key(int kv_head, int position) const {
    const auto whole = static_cast<std::size_t>(position / kLanes * kLanes) * static_cast<std::size_t>(head_dim);
    return keys + start(kv_head) + whole + position % kLanes;
  }
  FLYWHEEL_TASK float* value(int kv_head, int position) const {
    return values + start(kv_head) + static_cast<std::size_t>(position) * static_cast<std::size_t>(head_dim);
  }

 private:
  FLYWHEEL_TASK std::size_t start(int kv_head) const {
    return static_cast<std::size_t>(kv_head) * static_cast<std::size_t>(context) * static_cast<std::size_t>(head_dim);
  }
};

/// Grouped-query attention (Ainslie et al., "GQA") of one query head. `qkv` holds the step's queries, keys
/// and values one head after the other, before rotation.
///
/// All heads of a group rotate the step's key for themselves, and the first of them puts it into the cache,
/// where only later steps read it. So no head waits for another.
struct Attend {
  const float* qkv;  // [heads + 2 kv_heads][head_dim]
  float* out;        // [heads][head_dim]
  KvCache cache;
  const float* rope;    // [context][head_dim / 2][cos, sin]
  const float* q_norm;  // [head_dim], or null: no RMSNorm on queries and keys
  const float* k_norm;
  const StepState* state;
  float eps;
  std::uint16_t head, heads, kv_heads;  // at most kMostHeads, see config.hpp
  std::int32_t window = 0;              // see Config::windows

  static constexpr int kSlices = 8;  // partial sums over positions of each output value

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const int n = cache.head_dim;
    float* query = block.template scratch<float>(n);
    float* key = block.template scratch<float>(n);
    float* weights = block.template scratch<float>(count());
    float* partial = block.template scratch<float>(kSlices * n);
    if (!query || !key || !weights || !partial) return;
    rotate(block, qkv + head * n, q_norm, query);
    rotate(block, own_key(), k_norm, key);
    block.sync();
    if (head % group() == 0) append(block, key);
    const float sum = soften(block, weights, score(block, query, key, weights));
    mix(block, weights, partial);
    block.sync();
    block.for_each(n, [&](int c) { out[head * n + c] = add_slices(partial + c) / sum; });
  }

 private:
  FLYWHEEL_TASK int group() const { return heads / kv_heads; }
  FLYWHEEL_TASK int kv_head() const { return head / group(); }
  FLYWHEEL_TASK int position() const { return static_cast<int>(state->position); }
  /// The first position that is attended to, and how many are: with a window, those after position() - window
  /// (transformers 5, masking_utils.py).
  FLYWHEEL_TASK int first() const { return window > 0 && position() >= window ? position() - window + 1 : 0; }
  FLYWHEEL_TASK int count() const { return position() - first() + 1; }
  FLYWHEEL_TASK const float* own_key() const { return qkv + (heads + kv_head()) * cache.head_dim; }
  FLYWHEEL_TASK const float* own_value() const { return qkv + (heads + kv_heads + kv_head()) * cache.head_dim; }

  /// RMSNorm if there is one, then the rotation by the position (Su et al., "RoFormer"): value i turns with i
  /// + n/2.
  template <class Block>
  FLYWHEEL_TASK void rotate(const Block& block, const float* in, const float* norm, float* to) const {
    const int half = cache.head_dim / 2;
    const float* turn = rope + static_cast<std::size_t>(position()) * static_cast<std::size_t>(cache.head_dim);
    const float scale = norm ? rms_scale(block, in, cache.head_dim, eps) : 1.f;
    block.for_each(half, [&](int i) {
      const float a = norm ? in[i] * scale * norm[i] : in[i];
      const float b = norm ? in[i + half] * scale * norm[i + half] : in[i + half];
      const float cosine = turn[2 * i], sine = turn[2 * i + 1];
      to[i] = a * cosine - b * sine;
      to[i + half] = b * cosine + a * sine;
    });
  }

  template <class Block>
  FLYWHEEL_TASK void append(const Block& block, const float* key) const {
    float* to_key = cache.key(kv_head(), position());
    float* to_value = cache.value(kv_head(), position());
    block.for_each(cache.head_dim, [&](int i) {
      to_key[i * KvCache::kStride] = key[i];
      to_value[i] = own_value()[i];
    });
  }

  /// scores[i] = query * key of first() + i / sqrt(head_dim); returns the largest.
  template <class Block>
  FLYWHEEL_TASK float score(Block& block, const float* query, const float* key, float* scores) const {
    const float scale = 1.f / std::sqrt(static_cast<float>(cache.head_dim));
    const int from = first();
    float largest = -std::numeric_limits<float>::infinity();
    block.for_each(count(), [&](int i) {
      const int p = from + i;
      const bool own = p == position();
      scores[i] = scale * (own ? product<1>(query, key) : product<KvCache::kStride>(query, cache.key(kv_head(), p)));
      largest = scores[i] > largest ? scores[i] : largest;
    });
    return block.reduce(largest, [](float a, float b) { return a > b ? a : b; });
  }

  /// head_dim is a multiple of 8.
  template <int kStride>
  FLYWHEEL_TASK float product(const float* query, const float* key) const {
    float sums[4] = {};
    for (int i = 0; i < cache.head_dim; i += 4)
      for (int j = 0; j < 4; ++j) sums[j] += query[i + j] * key[(i + j) * kStride];
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
  }

  /// Scores to weights e^(score - largest); returns their sum.
  template <class Block>
  FLYWHEEL_TASK float soften(Block& block, float* weights, float largest) const {
    block.for_each(count(), [&](int i) { weights[i] = exp_of(weights[i] - largest); });
    block.sync();
    return lane_sum(block, count(), [&](int i) { return weights[i]; });
  }

  /// partial[slice][c]: the weighted sum of value c over the positions first() + slice, first() + slice + 8, ...
  template <class Block>
  FLYWHEEL_TASK void mix(const Block& block, const float* weights, float* partial) const {
    const int n = cache.head_dim, from = first();
    const float* values = cache.value(kv_head(), 0);
    block.for_each(kSlices * n, [&](int i) {
      const int c = i % n;
      float sum = 0;
      for (int p = from + i / n; p <= position(); p += kSlices)
        sum += weights[p - from] * (p == position() ? own_value()[c] : values[static_cast<std::size_t>(p) * n + c]);
      partial[i] = sum;
    });
  }

  FLYWHEEL_TASK float add_slices(const float* p) const {
    const int n = cache.head_dim;
    return ((p[0] + p[4 * n]) + (p[2 * n] + p[6 * n])) + ((p[n] + p[5 * n]) + (p[3 * n] + p[7 * n]));
  }
};

}  // namespace llama
