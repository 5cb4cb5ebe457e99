// Causal attention of many positions of a text at once, by tensor cores: each warp takes 16 of them ("FlashAttention-2", Dao
// 2023, without shared memory).
//
// The cache lies as tensor cores take it (see TunedCache), and neighbouring positions of a head side by side: all threads copy
// a stage of both to shared memory, two stages ahead, and all warps read it there. Queries are A of scores = queries * keys^T,
// and weights, which tensor cores leave as the next product's A, of output = weights * values. A row's bits depend on its own
// position alone: what a later position weighs is exactly nothing.
#pragma once

#include "apps/llama/tuned/prefill_tasks.cuh"
#include "apps/llama/tuned/tile.cuh"

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

  /// Positions at..at+kStep-1, of which the warp's last row has those up to `last`; `whole`: all rows have all of them. `from`
  /// has their keys and values.
  template <class Block>
  FLYWHEEL_TASK void add(Block& block, const TunedCache& from, int at, int last, bool whole) {
    float scores[2 * kGroups][4] = {};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      TilePart keys[kGroups];
#pragma unroll
      for (int g = 0; g < kGroups; ++g) keys[g] = load(block, from.keys, at, last, g, t);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) multiply(block, scores[2 * g], scores[2 * g + 1], queries_[t], keys[g]);
    }
    if (!whole) leave_out(block, at, scores);
    soften(block, scores);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      std::uint32_t weights[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const two = &scores[2 * g + i / 2][i % 2 * 2];
        weights[i] = pack_halves(two[0], two[1]);
      }
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
        multiply(block, out_[2 * t], out_[2 * t + 1], weights, load(block, from.values, at, last, g, t));
    }
  }

  /// The results of row `r`.
  template <class Block>
  FLYWHEEL_TASK void leave(const Block& block, int r, bool stores, flywheel::Bf16* to) {
    float sum = sums_[r];
    sum += block.shuffle_xor(sum, 1);
    sum += block.shuffle_xor(sum, 2);
    if (!stores) return;
    const float by = reciprocal(sum);
    auto* const pairs = reinterpret_cast<std::uint32_t*>(to) + block.lane() % 4;
#pragma unroll
    for (int n = 0; n < 2 * kTiles; ++n)
      pairs[4 * n] = round_to_bf16(out_[n][2 * r] * by) | round_to_bf16(out_[n][2 * r + 1] * by) << 16;
  }

 private:
  /// Tile `t` of a group's keys or values. Groups that begin beyond `last` have no position: the first one stands in for them.
  template <class Block>
  FLYWHEEL_TASK static TilePart load(const Block& block, const Half* from, int at, int last, int group, int t) {
    const int position = at + 16 * group <= last ? 16 * group : 0;
    return reinterpret_cast<const TilePart*>(from + TunedCache::tile(position, t * 16, kDims))[block.lane()];
  }

  /// Two columns of sums, of 8 positions or dimensions each, from one tile.
  template <class Block>
  FLYWHEEL_TASK static void multiply(Block& block, float (&low)[4], float (&high)[4], const std::uint32_t (&a)[4],
                                     const TilePart& b) {
    const std::uint32_t first[2] = {b.registers[0], b.registers[2]}, second[2] = {b.registers[1], b.registers[3]};
    block.multiply_add_half(low, a, first);
    block.multiply_add_half(high, a, second);
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

  /// Scores to weights; what came before is brought down if one is larger.
  template <class Block>
  FLYWHEEL_TASK void soften(const Block& block, float (&scores)[2 * kGroups][4]) {
    float keep[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = largest_[r];
#pragma unroll
      for (int n = 0; n < 2 * kGroups; ++n) largest = larger(largest, larger(scores[n][2 * r], scores[n][2 * r + 1]));
      largest = larger(largest, block.shuffle_xor(largest, 1));
      largest = larger(largest, block.shuffle_xor(largest, 2));
      // A row whose window begins behind these positions has none yet.
      const float base = largest == -std::numeric_limits<float>::infinity() ? 0.f : largest;
      keep[r] = power_of_2(largest_[r] - base);
      largest_[r] = largest;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < 2 * kGroups; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& score = scores[n][2 * r + i];
          score = power_of_2(score - base);
          sum += score;
        }
      sums_[r] = std::fma(sums_[r], keep[r], sum);
    }
    if (!block.any_warp(keep[0] != 1 || keep[1] != 1)) return;
#pragma unroll
    for (int n = 0; n < 2 * kTiles; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) out_[n][c] *= keep[c / 2];
  }

  FLYWHEEL_TASK static float larger(float a, float b) {
#ifdef __CUDA_ARCH__
    return fmaxf(a, b);  // one instruction, which takes no care of what is not a number
#else
    return a > b ? a : b;
#endif
  }
  /// Of numbers up to 0; less than the smallest that has all its digits is 0.
  FLYWHEEL_TASK static float power_of_2(float x) {
#ifdef __CUDA_ARCH__
    float power;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x) : "memory");
    return power;
#else
    return std::exp2(x);
#endif
  }

  const int window_;
  int positions_[2] = {};
  std::uint32_t queries_[kTiles][4];
  float out_[2 * kTiles][4] = {};
  float largest_[2] = {-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  float sums_[2] = {};  // of the lane's own positions
};

/// Keys and values of a head on their way through shared memory, a stage of neighbouring positions after the other.
template <int kTiles>
class PrefillStages {
  static constexpr int kDims = kTiles * 16, kStages = 3;
  static constexpr int kHalves = 2 * kDims;  // of a position: key and value

 public:
  static constexpr int kPositions = kTiles <= 4 ? 128 : 64;  // of a stage
  static constexpr int kBytes = kStages * kPositions * kHalves * static_cast<int>(sizeof(Half));

  /// All threads. `memory`: kBytes of shared memory. Positions from `begin`, a multiple of 16, up to `last`.
  template <class Block>
  FLYWHEEL_TASK PrefillStages(Block& block, const TunedCache& head, unsigned char* memory, int begin, int last)
      : head_(head),
        memory_(reinterpret_cast<Half*>(memory)),
        end_(last / 16 * 16 + 16),
        next_(begin) {
    for (int stage = 0; stage + 1 < kStages; ++stage) copy_next(block);
  }

  /// All threads: the stage whose turn it is. What was read of the one before is done with. Copies go on.
  template <class Block>
  FLYWHEEL_TASK TunedCache take(Block& block) {
    block.template wait_copies<kStages - 2>();
    block.sync();  // the copies of all threads have landed, and all warps have read the stage before, which is filled again
    copy_next(block);
    Half* const keys = place(now_);
    now_ = now_ + 1 < kStages ? now_ + 1 : 0;
    return {keys, keys + kPositions * kDims};
  }

 private:
  FLYWHEEL_TASK Half* place(int stage) const { return memory_ + stage * kPositions * kHalves; }

  /// Sixteen bytes after the other, of whole tiles of positions. A group of copies without any is one, too.
  template <class Block>
  FLYWHEEL_TASK void copy_next(Block& block) {
    const int count = end_ - next_ < kPositions ? end_ - next_ : kPositions;
    const std::size_t from = TunedCache::tile(next_, 0, kDims);
    Half* const keys = place(fill_);
    for (int i = block.rank() * 8; i < count * kDims; i += block.size() * 8) {
      block.copy16(keys + i, head_.keys + from + i);
      block.copy16(keys + kPositions * kDims + i, head_.values + from + i);
    }
    block.commit_copies();
    next_ += kPositions;
    fill_ = fill_ + 1 < kStages ? fill_ + 1 : 0;
  }

  const TunedCache head_;
  Half* const memory_;
  const int end_;
  int next_, fill_ = 0, now_ = 0;  // the position that is copied next; stages
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
    Stages stages(block, cache_of_head(), memory, block_begin, block_last);
    Warp warp(window);
    const int from_row = 16 * block.warp(), last_row = from_row + 15 < live ? from_row + 15 : live - 1;
    if (from_row < live) take_queries(block, warp, from_row, live, first);
    const int lowest = first + from_row, last = first + last_row;
    for (int at = block_begin; at <= block_last; at += Stages::kPositions) {
      TunedCache stage = stages.take(block);
      if (from_row >= live) continue;
      for (int i = 0; i < Stages::kPositions && at + i <= last; i += Warp::kStep) {
        const int all = at + i + Warp::kStep - 1;  // the last of these positions
        if (all >= begin_of(lowest)) warp.add(block, stage, at + i, last, at + i >= begin_of(last) && all <= lowest);
        stage.keys += Warp::kStep * kTiles * 16, stage.values += Warp::kStep * kTiles * 16;
      }
    }
    for (int r = 0; r < 2; ++r) {
      const int row = from_row + block.lane() / 4 + 8 * r;
      warp.leave(block, r, row < live, results + place(static_cast<std::size_t>(rows.first + row)));
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
