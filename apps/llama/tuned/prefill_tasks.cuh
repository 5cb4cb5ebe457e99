// The tasks between the matrix products that read a prompt, but for attention (prefill_attend.cuh). Their rows are neighbouring
// positions of one text.
#pragma once

#include <flywheel/gemm.cuh>

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

/// Chunks of a row of n that a lane loads before it uses the first, since each load takes a trip to L2.
template <class Block>
inline constexpr int kChunksAtOnce = Block::kOnGpu ? 4 : 1;
/// From one chunk of a lane to its next.
template <class Block>
inline constexpr int kLaneStep = kLanes / kLanesPlayed<Block>* kChunk;

/// The lane's chunks from `first` on.
template <class Block, class T>
FLYWHEEL_TASK void load_chunks(const T* row, int first, int n, float (&values)[kChunksAtOnce<Block>][kChunk]) {
#pragma unroll
  for (int c = 0; c < kChunksAtOnce<Block>; ++c)
    if (first + c * kLaneStep<Block> < n) load_chunk(row + first + c * kLaneStep<Block>, values[c]);
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
      constexpr int kAtOnce = kChunksAtOnce<Block>, kStep = kLaneStep<Block>;
      for (int first = lane_of(block) * kChunk; first < columns; first += kAtOnce * kStep) {
        float values[kAtOnce][kChunk];
        load_chunks<Block>(embedding + of_text[row] * width, first, columns, values);
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c)
          if (first + c * kStep < columns) store_chunk(x + row * width + first + c * kStep, values[c]);
      }
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
    rows.for_each(block, [&](std::size_t row) {
      const std::size_t at = row * static_cast<std::size_t>(columns);
      constexpr int kAtOnce = kChunksAtOnce<Block>, kStep = kLaneStep<Block>;
      float squares = 0, values[kAtOnce][kChunk];
      for (int first = lane_of(block) * kChunk; first < columns; first += kAtOnce * kStep) {
        load_chunks<Block>(x + at, first, columns, values);
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c)
#pragma unroll
          for (int j = 0; j < kChunk; ++j)
            if (first + c * kStep < columns) squares = std::fma(values[c][j], values[c][j], squares);
      }
      const float scale = inverse_sqrt(add_up(block, squares) * reciprocal(static_cast<float>(columns)) + eps);
      for (int first = lane_of(block) * kChunk; first < columns; first += kAtOnce * kStep) {
        float by[kAtOnce][kChunk];
        load_chunks<Block>(x + at, first, columns, values);
        load_chunks<Block>(weights, first, columns, by);
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c) {
#pragma unroll
          for (int j = 0; j < kChunk; ++j) values[c][j] *= scale * by[c][j];
          if (first + c * kStep < columns) store_chunk(normed + at + first + c * kStep, values[c]);
        }
      }
    });
  }
  /// On a GPU, ahead of the phase: the weights come from memory.
  template <class Lanes>
  FLYWHEEL_TASK void look_ahead(const Lanes& lanes) const {
    for (int i = lanes.lane() * kLineFloats; i < columns; i += kLanes * kLineFloats) lanes.prefetch(weights + i);
  }

 private:
  static constexpr int kLineFloats = 32;  // of 128 bytes
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
    const int n = rows.live();
    for (int row = group_of(block); row < n; row += kAtOnce<Block> * kGroups<Block>) append(block, row, n);
  }

 private:
  /// Rows that a warp reads before it writes the first.
  template <class Block>
  static constexpr int kAtOnce = Block::kOnGpu ? 2 : 1;
  struct Two {
    float first, second;  // of the two halves of a head, which are turned as one
  };

  FLYWHEEL_TASK const float* key_of(int row) const {
    const auto width = static_cast<std::size_t>((heads + 2 * kv_heads) * head_dim);
    return qkv + static_cast<std::size_t>(rows.first + row) * width + static_cast<std::size_t>((heads + kv_head) * head_dim);
  }
  /// Every kGroups-th row from `row` on, of n.
  template <class Block>
  FLYWHEEL_TASK void append(const Block& block, int row, int n) const {
    constexpr int kRows = kAtOnce<Block>, kStep = kGroups<Block>;
    const int half = head_dim / 2, position = static_cast<int>(rows.stretch->first) + rows.first + row;
    const TunedCache to = cache.head(static_cast<int>(rows.stretch->text) * kv_heads + kv_head, room, head_dim);
    float scales[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) scales[r] = k_norm && row + r * kStep < n ? scale_of(block, key_of(row + r * kStep)) : 1.f;
    for (int i = lane_of(block); i < half; i += kLanes / kLanesPlayed<Block>) {
      const float by = k_norm ? k_norm[i] : 1.f, by_second = k_norm ? k_norm[i + half] : 1.f;
      Two keys[kRows], values[kRows], turns[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (row + r * kStep >= n) continue;
        const float* const key = key_of(row + r * kStep);
        const float* const value = key + kv_heads * head_dim;
        const float* const turn = rope + static_cast<std::size_t>(position + r * kStep) * static_cast<std::size_t>(head_dim);
        keys[r] = {key[i], key[i + half]};
        values[r] = {value[i], value[i + half]};
        turns[r] = {turn[2 * i], turn[2 * i + 1]};
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (row + r * kStep >= n) continue;
        keys[r] = {keys[r].first * (scales[r] * by), keys[r].second * (scales[r] * by_second)};
        put(to, position + r * kStep, i, keys[r], values[r], turns[r]);
      }
    }
  }
  FLYWHEEL_TASK void put(const TunedCache& to, int position, int i, const Two& key, const Two& value, const Two& turn) const {
    const int half = head_dim / 2;
    put(to.keys[TunedCache::key_at(position, i, head_dim)], key.first * turn.first - key.second * turn.second);
    put(to.keys[TunedCache::key_at(position, i + half, head_dim)], key.second * turn.first + key.first * turn.second);
    put(to.values[TunedCache::value_at(position, i, head_dim)], value.first);
    put(to.values[TunedCache::value_at(position, i + half, head_dim)], value.second);
  }
  FLYWHEEL_TASK static void put(Half& to, float value) { to.bits = static_cast<std::uint16_t>(round_to_half(value)); }
  template <class Block>
  FLYWHEEL_TASK float scale_of(const Block& block, const float* key) const {
    float squares = 0;
    for (int i = lane_of(block); i < head_dim; i += kLanes / kLanesPlayed<Block>) squares += key[i] * key[i];
    return inverse_sqrt(add_up(block, squares) * reciprocal(static_cast<float>(head_dim)) + eps);
  }
};
static_assert(sizeof(PrefillAppend) <= kTaskArgBytes);

}  // namespace llama
