// Causal attention of many positions of a text at once, by tensor cores: each warp takes 16 of them ("FlashAttention-2", Dao
// 2023, without shared memory).
//
// All threads copy keys and values to shared memory, a stage ahead (prefill_stages.cuh), and all warps read them there, the
// tiles of the next products while those of the last are multiplied. Queries are A of scores = queries * keys^T, and weights,
// which tensor cores leave as the next product's A, of output = weights * values. A column of ones beside the values makes the
// sum of the weights. A row's bits depend on its own position alone: what a later position weighs is exactly nothing.
//
// Weights are powers of 2 of the scores less a base of the row, which is one of its scores. Products of queries and keys begin
// with the base, so that it need not be taken off. It is raised only where a score is kMostAbove above it, which is seldom;
// until then weights are up to 2^kMostAbove, as exact as those below 1 ("FlashAttention-4", 2025).
#pragma once

#include "apps/llama/tuned/prefill_stages.cuh"
#include "apps/llama/tuned/prefill_tasks.cuh"

namespace llama {

/// Two numbers as halves, the first in the lower 16 bits.
FLYWHEEL_TASK inline std::uint32_t pack_halves(float low, float high) {
#ifdef __CUDA_ARCH__
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
#else
  return round_half_or_infinite(low) | round_half_or_infinite(high) << 16;
#endif
}

/// One warp's 16 positions. Value c of a lane belongs to row lane / 4 + 8 (c / 2) of them.
template <int kTiles>
class PrefillWarp {
  static constexpr int kDims = kTiles * 16;
  static constexpr int kGroups = kTiles <= 4 ? 4 : 2;  // of 16 positions of the cache, at once
  static constexpr int kTileHalves = 256;
  static constexpr float kMostAbove = 8;  // powers of 2

 public:
  static constexpr int kStep = kGroups * 16;

  FLYWHEEL_TASK explicit PrefillWarp(int window) : window_(window) {}

  /// Of the lane's row `r`, 0 or 1: its query as PrefillTurn leaves it.
  template <class Block>
  FLYWHEEL_TASK void take_query(const Block& block, int r, const Half* query, int position) {
    struct alignas(8) Four {
      std::uint32_t pairs[2];
    };
    positions_[r] = position;
    const Half* const mine = query + block.lane() % 4 * 4;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const Four four = *reinterpret_cast<const Four*>(mine + t * 16);
      queries_[t][r] = four.pairs[0];
      queries_[t][r + 2] = four.pairs[1];
    }
  }

  /// What the queries and the keys of kStep positions come to, less the base of each row.
  struct Scores {
    float of[2 * kGroups][4];
  };
  /// Of positions at..at+kStep-1, whose tiles of keys are given; `whole`: all rows have all of them.
  template <class Block>
  FLYWHEEL_TASK void score(Block& block, Scores& scores, const Half* keys, int at, bool whole) const {
#pragma unroll
    for (int n = 0; n < 2 * kGroups; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) scores.of[n][c] = -base_[c / 2];
    PairedTile tiles[2][kGroups];
    load_tiles<kTiles>(block, tiles[0], keys);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      if (t + 1 < kTiles) load_tiles<kTiles>(block, tiles[(t + 1) % 2], keys + (t + 1) * kTileHalves);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) multiply(block, scores.of[2 * g], scores.of[2 * g + 1], queries_[t], tiles[t % 2][g]);
    }
    if (!whole) leave_out(block, at, scores.of);
  }
  /// Adds the values of the same positions, weighed by their scores, which are used up.
  template <class Block>
  FLYWHEEL_TASK void add(Block& block, Scores& scores, const Half* values) {
    constexpr int kAhead = kTiles % 4 == 0 ? 4 : kTiles % 3 == 0 ? 3 : 2, kLoads = kGroups * kTiles / kAhead;
    PairedTile tiles[2][kAhead];
    load_tiles<1>(block, tiles[0], values);
    soften(block, scores.of);
    std::uint32_t weights[4];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (i + 1 < kLoads) load_tiles<1>(block, tiles[(i + 1) % 2], values + (i + 1) * kAhead * kTileHalves);
      const int g = i * kAhead / kTiles, first = i * kAhead % kTiles;
      if (first == 0) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const float* const two = &scores.of[2 * g + w / 2][w % 2 * 2];
          weights[w] = pack_halves(two[0], two[1]);
        }
        constexpr std::uint32_t kOnes[2] = {0x3c003c00, 0x3c003c00};  // halves
        block.multiply_add_half(sums_, weights, kOnes);
      }
#pragma unroll
      for (int t = 0; t < kAhead; ++t)
        multiply(block, out_[2 * (first + t)], out_[2 * (first + t) + 1], weights, tiles[i % 2][t]);
    }
  }

  /// The results of row `r`.
  template <class Block>
  FLYWHEEL_TASK void leave(const Block& block, int r, flywheel::Bf16* to) const {
    const float by = reciprocal(sums_[2 * r]);
    auto* const pairs = reinterpret_cast<std::uint32_t*>(to) + block.lane() % 4;
#pragma unroll
    for (int n = 0; n < 2 * kTiles; ++n)
      pairs[4 * n] = round_to_bf16(out_[n][2 * r] * by) | round_to_bf16(out_[n][2 * r + 1] * by) << 16;
  }

 private:
  /// Tiles that lie kApart tiles from one to the next.
  template <int kApart, class Block, int kCount>
  FLYWHEEL_TASK static void load_tiles(const Block& block, PairedTile (&to)[kCount], const Half* from) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = reinterpret_cast<const PairedTile*>(from + i * kApart * kTileHalves)[block.lane()];
  }

  /// Two columns of sums, of 8 positions or dimensions each, from one tile.
  template <class Block>
  FLYWHEEL_TASK static void multiply(Block& block, float (&low)[4], float (&high)[4], const std::uint32_t (&a)[4],
                                     const PairedTile& b) {
    block.multiply_add_half(low, a, b.first);
    block.multiply_add_half(high, a, b.second);
  }

  /// Positions behind the row's own, or before its window, get no weight.
  template <class Block>
  FLYWHEEL_TASK void leave_out(const Block& block, int at, float (&scores)[2 * kGroups][4]) const {
    const float none = -std::numeric_limits<float>::infinity();
#pragma unroll
    for (int n = 0; n < 2 * kGroups; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int position = at + 8 * n + block.lane() % 4 * 2 + c % 2, row = positions_[c / 2];
        if (position > row || (window_ && position + window_ <= row)) scores[n][c] = none;
      }
  }

  /// Scores to weights. Where one is too far above the base, that is raised, and what came before is brought down.
  template <class Block>
  FLYWHEEL_TASK void soften(const Block& block, float (&scores)[2 * kGroups][4]) {
    float most[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float some[kGroups];
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
        some[g] = larger(larger(scores[2 * g][2 * r], scores[2 * g][2 * r + 1]),
                         larger(scores[2 * g + 1][2 * r], scores[2 * g + 1][2 * r + 1]));
#pragma unroll
      for (int n = kGroups / 2; n; n /= 2)
#pragma unroll
        for (int i = 0; i < n; ++i) some[i] = larger(some[i], some[i + n]);
      most[r] = larger(some[0], block.shuffle_xor(some[0], 1));
      most[r] = larger(most[r], block.shuffle_xor(most[r], 2));
    }
    if (block.any_warp(most[0] > most_above_[0] || most[1] > most_above_[1])) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool rises = most[r] > most_above_[r];
        // The first base may be far below 0. Nothing came before it, and nothing times infinity would be no number.
        const float by = rises ? most[r] : 0.f, keep = power_of_2(by > 0 ? -by : 0.f);
        base_[r] += by;
        if (rises) most_above_[r] = kMostAbove;
#pragma unroll
        for (int n = 0; n < 2 * kGroups; ++n) scores[n][2 * r] -= by, scores[n][2 * r + 1] -= by;
#pragma unroll
        for (int n = 0; n < 2 * kTiles; ++n) out_[n][2 * r] *= keep, out_[n][2 * r + 1] *= keep;
        sums_[2 * r] *= keep, sums_[2 * r + 1] *= keep;
      }
    }
#pragma unroll
    for (int n = 0; n < 2 * kGroups; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) scores[n][c] = power_of_2(scores[n][c]);
  }

  FLYWHEEL_TASK static float larger(float a, float b) {
#ifdef __CUDA_ARCH__
    return fmaxf(a, b);  // one instruction, which takes no care of what is not a number
#else
    return a > b ? a : b;
#endif
  }

  const int window_;
  int positions_[2] = {};
  std::uint32_t queries_[kTiles][4];
  float out_[2 * kTiles][4] = {};
  float base_[2] = {};  // of each row
  // How far a score may be above it: not at all while a row has no base, since all that it had was left out.
  float most_above_[2] = {-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  float sums_[4] = {};  // of weights: of each row twice
};

/// Attention of one query head at the positions of some rows, at most kPrefillTile. Their keys and values are in the cache.
struct PrefillAttend {
  static constexpr bool kCompiled = false;
  StretchRows rows;
  const Half* queries;  // [rows][heads][head_dim], as PrefillTurn leaves them
  TunedCache cache;
  flywheel::Bf16* results;  // [rows][heads][head_dim]
  std::int32_t room;        // positions in the cache, of each text
  std::int16_t heads, kv_heads, head, head_dim;
  std::uint16_t window;  // the last positions alone are attended to; 0: all

  /// Heads of whose rotation both values of a pair are the same lane's.
  static constexpr bool knows(int head_dim) { return head_dim == 32 || head_dim == 64 || head_dim == 96 || head_dim == 128; }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if constexpr (!Block::kOnGpu) return portable(block);
    else if (head_dim == 64) attend<4>(block);
    else if (head_dim == 128) attend<8>(block);
    else if (head_dim == 96) attend<6>(block);
    else attend<2>(block);
  }

 private:
  FLYWHEEL_TASK std::size_t place(std::size_t row) const {
    return (row * static_cast<std::size_t>(heads) + static_cast<std::size_t>(head)) * static_cast<std::size_t>(head_dim);
  }
  FLYWHEEL_TASK TunedCache cache_of_head() const {
    return cache.head(static_cast<int>(rows.stretch->text) * kv_heads + head * kv_heads / heads, room, head_dim);
  }
  template <int kTiles, class Block>
  FLYWHEEL_COLD void attend(Block block) const {
    using Stages = PrefillStages<kTiles>;
    using Warp = PrefillWarp<kTiles>;
    const int live = rows.live(), first = static_cast<int>(rows.stretch->first) + rows.first;
    if (live == 0) return;
    auto* const memory = block.template scratch<unsigned char>(Stages::kBytes);
    if (!memory) return;
    const int block_begin = begin_of(first) / Stages::kPositions * Stages::kPositions, block_last = first + live - 1;
    Stages stages(block, cache_of_head(), Block::in_scratch(memory), block_begin, block_last);
    Warp warp(window);
    const int from_row = 16 * block.warp(), last_row = from_row + 15 < live ? from_row + 15 : live - 1;
    if (from_row < live) take_queries(block, warp, from_row, live, first);
    const int lowest = first + from_row, last = first + last_row, begin = begin_of(lowest), last_begin = begin_of(last);
    for (int at = block_begin; at <= block_last; at += Stages::kPositions) {
      TunedCache stage = stages.take(block);
      if (from_row >= live) continue;
      for (int i = 0; i < Stages::kPositions && at + i <= last; i += Warp::kStep) {
        const int all = at + i + Warp::kStep - 1;  // the last of these positions
        if (all >= begin) {
          typename Warp::Scores scores;
          warp.score(block, scores, stage.keys, at + i, at + i >= last_begin && all <= lowest);
          warp.add(block, scores, stage.values);
        }
        stage.keys += Warp::kStep * kTiles * 16, stage.values += Warp::kStep * kTiles * 16;
      }
    }
    for (int r = 0; r < 2; ++r) {
      const int row = from_row + block.lane() / 4 + 8 * r;
      if (row < live) warp.leave(block, r, results + place(static_cast<std::size_t>(rows.first + row)));
    }
    block.sync();  // the memory is the next task's
  }
  /// The first position that one attends to.
  FLYWHEEL_TASK int begin_of(int position) const { return window && position >= window ? position + 1 - window : 0; }
  template <class Block, class Warp>
  FLYWHEEL_TASK void take_queries(const Block& block, Warp& warp, int from_row, int live, int first) const {
    for (int r = 0; r < 2; ++r) {
      const int wanted = from_row + block.lane() / 4 + 8 * r, row = wanted < live ? wanted : live - 1;
      warp.take_query(block, r, queries + place(static_cast<std::size_t>(rows.first + row)), first + row);
    }
  }

  /// One thread.
  template <class Block>
  FLYWHEEL_TASK void portable(Block& block) const {
    float* const query = block.template scratch<float>(head_dim);
    const int live = rows.live(), first = static_cast<int>(rows.stretch->first) + rows.first;
    float* const weights = block.template scratch<float>(first + live);
    if (!query || !weights) return;
    for (int row = 0; row < live; ++row) {
      const std::size_t at = place(static_cast<std::size_t>(rows.first + row));
      for (int i = 0; i < head_dim; ++i) query[i] = to_float(queries[at + static_cast<std::size_t>(i)]);
      attend_alone(cache_of_head(), begin_of(first + row), first + row + 1, query, head_dim, 1.f, weights, results + at);
    }
  }
};
static_assert(sizeof(PrefillAttend) <= kTaskArgBytes);

}  // namespace llama
