// The tasks between the matrix products that read a prompt, but for norms (prefill_norm.cuh), attention (prefill_attend.cuh)
// and what makes queries, keys and values ready for it (prefill_turn.cuh). Their rows are neighbouring positions of one text.
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

/// Sums of a product, whose parts were left: those of a value lie `count` times in matrices of `rows` rows, one behind the
/// other. The loads of kAtOnce parts are under way at once, each a trip to L2.
struct PartSums {
  const float* values;  // [count][rows][columns]
  std::int32_t count, rows;

  /// Of kCount neighbours, from `at` on in the first part, whose rows have `columns` values.
  template <int kCount>
  FLYWHEEL_TASK void load(std::size_t at, int columns, float (&to)[kCount]) const {
    add_parts(columns, to, [&](const float* part, float(&some)[kCount]) { load_floats(part + at, some); });
  }
  /// Of places anywhere in the first part.
  template <int kCount>
  FLYWHEEL_TASK void load_apart(const std::size_t (&at)[kCount], int columns, float (&to)[kCount]) const {
    add_parts(columns, to, [&](const float* part, float(&some)[kCount]) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) some[i] = part[at[i]];
    });
  }

 private:
  static constexpr int kAtOnce = 4;  // parts

  /// load(part, values) for each part; the sums, in the order of the parts.
  template <int kCount, class Load>
  FLYWHEEL_TASK void add_parts(int columns, float (&to)[kCount], const Load& load) const {
    const std::size_t apart = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    for (int i = 0; i < kCount; ++i) to[i] = 0;
    for (int begin = 0; begin < count; begin += kAtOnce) {
      float some[kAtOnce][kCount] = {};
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p)
        if (begin + p < count) load(values + static_cast<std::size_t>(begin + p) * apart, some[p]);
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p)
#pragma unroll
        for (int i = 0; i < kCount; ++i) to[i] += some[p][i];
    }
  }
  /// One, or by 16-byte loads.
  template <int kCount>
  FLYWHEEL_TASK static void load_floats(const float* from, float (&to)[kCount]) {
    constexpr int kEach = kCount % 4 ? 1 : 4;
    struct alignas(4 * kEach) Vector {
      float values[kEach];
    };
#pragma unroll
    for (int i = 0; i < kCount; i += kEach) {
      const Vector some = *reinterpret_cast<const Vector*>(from + i);
#pragma unroll
      for (int j = 0; j < kEach; ++j) to[i + j] = some.values[j];
    }
  }
};

/// One head of a row of such sums.
struct HeadOfSums {
  PartSums sums;
  std::size_t row;
  int head, heads, dims;  // of `heads` heads of a row

  FLYWHEEL_TASK void two(int i, int k, float (&to)[2]) const {
    const std::size_t begin = row * static_cast<std::size_t>(heads * dims) + static_cast<std::size_t>(head * dims);
    const std::size_t at[2] = {begin + static_cast<std::size_t>(i), begin + static_cast<std::size_t>(k)};
    sums.load_apart(at, heads * dims, to);
  }
  FLYWHEEL_TASK float operator()(int i) const {
    float values[2];
    two(i, i, values);
    return values[0];
  }
};

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

/// One thread: a head of `dims` values from(i), normed by `norm` if that is not null, and turned by the angles of its position.
template <class From>
FLYWHEEL_TASK void turn_values(const From& from, const float* norm, const float* angles, int dims, float eps, float* to) {
  const int half = dims / 2;
  float squares = 0;
  for (int i = 0; i < dims; ++i) squares += from(i) * from(i);
  const float scale = norm ? inverse_sqrt(squares / static_cast<float>(dims) + eps) : 1.f;
  const auto normed = [&](int i) { return norm ? from(i) * scale * norm[i] : from(i); };
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
  static constexpr bool kCompiled = false;
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

/// What becomes of a product's sums: a bias is added, or gates and what they let through become one.
struct PrefillEnd {
  static constexpr bool kCompiled = false;
  const float* bias;  // null: none

  FLYWHEEL_TASK static float join(float gate, float sum) { return gate * sigmoid(gate) * sum; }
  FLYWHEEL_TASK float operator()(float sum, int, int column) const { return bias ? sum + bias[column] : sum; }
  FLYWHEEL_TASK bool keeps() const { return !bias; }
  template <int kCount>
  FLYWHEEL_TASK void pairs(float (&values)[kCount], int, int column, int end) const {
    if (!bias) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (column + i / 2 * 8 + i % 2 < end) values[i] += bias[column + i / 2 * 8 + i % 2];
  }
};
using PrefillGemm = flywheel::Gemm<PrefillEnd>;

/// Takes the last row of a run out of its matrices, if the token behind it is to be chosen: into those of `tail`.
struct PrefillTail {
  static constexpr bool kCompiled = false;
  const Stretch* stretch;
  const Stretch* tail;
  const float* x;       // [rows][columns]
  const Half* queries;  // [rows][query_columns]
  float* to_x;
  Half* to_queries;
  std::int32_t columns, query_columns;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (tail->count == 0) return;
    const auto row = static_cast<std::size_t>(stretch->count - 1);
    block.for_each(columns, [&](int i) { to_x[i] = x[row * static_cast<std::size_t>(columns) + static_cast<std::size_t>(i)]; });
    block.for_each(query_columns, [&](int i) {
      to_queries[i] = queries[row * static_cast<std::size_t>(query_columns) + static_cast<std::size_t>(i)];
    });
  }
};

}  // namespace llama
