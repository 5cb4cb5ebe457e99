// The tasks between the matrix products that read a prompt, but for attention (prefill_attend.cuh). Their rows are neighbouring
// positions of one text.
#pragma once

#include <flywheel/gemm.cuh>

#include <functional>

#include "apps/llama/decode/half.cuh"
#include "apps/llama/decode/row_products.cuh"
#include "apps/llama/tuned/cache.cuh"
#include "apps/llama/tuned/inputs.cuh"

namespace llama {

/// Rows of a tile of products, and of a task of attention.
inline constexpr int kPrefillTile = 128;
inline constexpr int kMostPrefillRows = 2048;

/// What a run reads: `count` positions of a text, from `first` on.
struct Stretch {
  std::uint32_t text, first, count;
};

/// Rows of a run's matrices, as far as it has positions for them.
struct StretchRows {
  const Stretch* stretch;
  std::int32_t first, count;

  FLYWHEEL_TASK int live() const {
    const int left = static_cast<int>(stretch->count) - first;
    return left < 0 ? 0 : left < count ? left : count;
  }
  /// f(row) for those: a warp of a GPU each, or the thread of a CPU worker.
  template <class Block, class F>
  FLYWHEEL_TASK void for_each(const Block& block, F&& f) const {
    const int n = live();
    for (int row = group_of(block); row < n; row += kGroups<Block>) f(static_cast<std::size_t>(first + row));
  }
};

/// f(i) for i = 0..n-1 in steps of `step`, shared out over the lanes of a warp; a CPU worker's thread makes all calls.
template <int kStep, class Block, class F>
FLYWHEEL_TASK void for_each_of_lane(const Block& block, int n, F&& f) {
  constexpr int kPlayers = kLanes / kLanesPlayed<Block>;
  for (int i = lane_of(block) * kStep; i < n; i += kPlayers * kStep) f(i);
}
/// What all lanes have, added up.
template <class Block>
FLYWHEEL_TASK float add_up(const Block& block, float mine) {
  if constexpr (Block::kOnGpu)
    for (int apart = kLanes / 2; apart; apart /= 2) mine += block.shuffle_xor(mine, apart);
  return mine;
}

/// Eight values by 16-byte stores.
FLYWHEEL_TASK inline void store_chunk(float* to, const float (&from)[kChunk]) {
  struct alignas(16) Quad {
    float values[4];
  };
  reinterpret_cast<Quad*>(to)[0] = {from[0], from[1], from[2], from[3]};
  reinterpret_cast<Quad*>(to)[1] = {from[4], from[5], from[6], from[7]};
}
FLYWHEEL_TASK inline void store_chunk(flywheel::Bf16* to, const float (&from)[kChunk]) {
  struct alignas(16) Quad {
    std::uint32_t pairs[4];
  } quad;
  for (int i = 0; i < 4; ++i) quad.pairs[i] = round_to_bf16(from[2 * i]) | round_to_bf16(from[2 * i + 1]) << 16;
  *reinterpret_cast<Quad*>(to) = quad;
}

/// One thread: a head of `dims` values, normed by `norm` if that is not null, and turned by the angles of its position.
FLYWHEEL_TASK inline void turn_values(const float* from, const float* norm, const float* angles, int dims, float eps,
                                      float* to) {
  const int half = dims / 2;
  float squares = 0;
  for (int i = 0; i < dims; ++i) squares += from[i] * from[i];
  const float scale = norm ? inverse_sqrt(squares / static_cast<float>(dims) + eps) : 1.f;
  const auto normed = [&](int i) { return norm ? from[i] * scale * norm[i] : from[i]; };
  for (int i = 0; i < half; ++i) {
    const float a = normed(i), b = normed(i + half), cosine = angles[2 * i], sine = angles[2 * i + 1];
    to[i] = a * cosine - b * sine;
    to[i + half] = b * cosine + a * sine;
  }
}

/// One thread: what a turned query finds at the positions begin..last-1 of a head's cache. `scale`: of its products, in units
/// of log2. `weights`: memory for `last` of them.
FLYWHEEL_TASK inline void attend_alone(const TunedCache& of, int begin, int last, const float* turned, int dims, float scale,
                                       float* weights, flywheel::Bf16* to) {
  float largest = -std::numeric_limits<float>::infinity(), sum = 0;
  for (int p = begin; p < last; ++p) {
    float score = 0;
    for (int i = 0; i < dims; ++i) score += turned[i] * to_float(of.keys[TunedCache::key_at(p, i, dims)]);
    weights[p] = score * scale;
    largest = weights[p] > largest ? weights[p] : largest;
  }
  for (int p = begin; p < last; ++p) sum += weights[p] = std::exp2(weights[p] - largest);
  for (int i = 0; i < dims; ++i) {
    float out = 0;
    for (int p = begin; p < last; ++p) out += weights[p] * to_float(of.values[TunedCache::value_at(p, i, dims)]);
    to[i] = flywheel::Bf16::nearest(out / sum);
  }
}

/// The residual stream as it begins: the embeddings of the tokens.
struct PrefillEmbed {
  StretchRows rows;
  const Bf16* embedding;
  const std::uint32_t* prompt;  // [texts][context]
  float* x;                     // [rows][columns]
  std::int32_t context, columns;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const auto width = static_cast<std::size_t>(columns);
    const std::uint32_t* const of_text =
        prompt + static_cast<std::size_t>(rows.stretch->text) * static_cast<std::size_t>(context) + rows.stretch->first;
    rows.for_each(block, [&](std::size_t row) {
      const Bf16* const from = embedding + of_text[row] * width;
      for_each_of_lane<kChunk>(block, columns, [&](int i) {
        float values[kChunk];
        load_chunk(from + i, values);
        store_chunk(x + row * width + i, values);
      });
    });
  }
};

/// RMSNorm of the residual stream, as an operand of a product.
struct PrefillNorm {
  StretchRows rows;
  const float* x;  // [rows][columns]
  const float* weights;
  flywheel::Bf16* normed;
  std::int32_t columns;
  float eps;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (rows.count == 1) return by_all(block);
    rows.for_each(block, [&](std::size_t row) {
      const std::size_t at = row * static_cast<std::size_t>(columns);
      float squares = 0;
      for_each_of_lane<kChunk>(block, columns, [&](int i) { add_squares(at + i, squares); });
      const float scale = scale_of(add_up(block, squares));
      for_each_of_lane<kChunk>(block, columns, [&](int i) { put(at + i, i, scale); });
    });
  }

 private:
  /// All threads of the block at one row: few trips to memory, one after the other.
  template <class Block>
  FLYWHEEL_TASK void by_all(Block& block) const {
    if (rows.live() == 0) return;
    const std::size_t at = static_cast<std::size_t>(rows.first) * static_cast<std::size_t>(columns);
    const int step = block.size() * kChunk;
    float squares = 0;
    for (int i = block.rank() * kChunk; i < columns; i += step) add_squares(at + i, squares);
    const float scale = scale_of(block.reduce(squares, std::plus<float>{}));
    for (int i = block.rank() * kChunk; i < columns; i += step) put(at + i, i, scale);
  }
  FLYWHEEL_TASK void add_squares(std::size_t at, float& squares) const {
    float values[kChunk];
    load_chunk(x + at, values);
    for (const float value : values) squares = std::fma(value, value, squares);
  }
  FLYWHEEL_TASK float scale_of(float squares) const {
    return inverse_sqrt(squares * reciprocal(static_cast<float>(columns)) + eps);
  }
  FLYWHEEL_TASK void put(std::size_t at, int column, float scale) const {
    float values[kChunk], by[kChunk];
    load_chunk(x + at, values);
    load_chunk(weights + column, by);
    for (int j = 0; j < kChunk; ++j) values[j] *= scale * by[j];
    store_chunk(normed + at, values);
  }
};

/// What becomes of a product's sums: a bias is added, or gates and what they let through become one.
struct PrefillEnd {
  const float* bias;  // null: none

  FLYWHEEL_TASK static float join(float gate, float sum) {
    return gate * reciprocal(1.f + std::exp2(-1.44269504f * gate)) * sum;
  }
  FLYWHEEL_TASK float operator()(float sum, int, int column) const { return bias ? sum + bias[column] : sum; }
  template <int kCount>
  FLYWHEEL_TASK void pairs(float (&values)[kCount], int, int column, int end) const {
    if (!bias) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (column + i / 2 * 8 + i % 2 < end) values[i] += bias[column + i / 2 * 8 + i % 2];
  }
};
using PrefillGemm = flywheel::Gemm<PrefillEnd>;

/// Puts keys and values of one head into the cache, where attention and the steps of the decode read them.
struct PrefillAppend {
  StretchRows rows;
  const float* qkv;  // [rows][heads + 2 kv_heads][head_dim], before norm and rotation
  TunedCache cache;
  const float* rope;    // [context][head_dim / 2][cos, sin]
  const float* k_norm;  // [head_dim], or null
  float eps;
  std::int32_t room;  // positions in the cache, of each text
  std::int16_t heads, kv_heads, kv_head, head_dim;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const int half = head_dim / 2;
    const TunedCache to = cache.head(static_cast<int>(rows.stretch->text) * kv_heads + kv_head, room, head_dim);
    rows.for_each(block, [&](std::size_t row) {
      const float* const key = qkv + row * static_cast<std::size_t>((heads + 2 * kv_heads) * head_dim) +
                               static_cast<std::size_t>((heads + kv_head) * head_dim);
      const float* const value = key + kv_heads * head_dim;
      const int position = static_cast<int>(rows.stretch->first) + static_cast<int>(row);
      const float* const turn = rope + static_cast<std::size_t>(position) * static_cast<std::size_t>(head_dim);
      const float scale = k_norm ? scale_of(block, key) : 1.f;
      for_each_of_lane<1>(block, half, [&](int i) {
        const float a = k_norm ? key[i] * (scale * k_norm[i]) : key[i];
        const float b = k_norm ? key[i + half] * (scale * k_norm[i + half]) : key[i + half];
        const float cosine = turn[2 * i], sine = turn[2 * i + 1];
        put(to.keys[TunedCache::key_at(position, i, head_dim)], a * cosine - b * sine);
        put(to.keys[TunedCache::key_at(position, i + half, head_dim)], b * cosine + a * sine);
        put(to.values[TunedCache::value_at(position, i, head_dim)], value[i]);
        put(to.values[TunedCache::value_at(position, i + half, head_dim)], value[i + half]);
      });
    });
  }

 private:
  FLYWHEEL_TASK static void put(Half& to, float value) { to.bits = static_cast<std::uint16_t>(round_to_half(value)); }
  template <class Block>
  FLYWHEEL_TASK float scale_of(const Block& block, const float* key) const {
    float squares = 0;
    for_each_of_lane<1>(block, head_dim, [&](int i) { squares += key[i] * key[i]; });
    return inverse_sqrt(add_up(block, squares) * reciprocal(static_cast<float>(head_dim)) + eps);
  }
};
static_assert(sizeof(PrefillAppend) <= kTaskArgBytes);

}  // namespace llama
