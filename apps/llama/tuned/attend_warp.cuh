// One warp's share of attention, by tensor cores: softmax as it goes over the positions it takes ("FlashAttention", Dao et
// al. 2022), for all query heads of a key and value head together.
//
// Keys are A of scores = keys * query, values transposed A of output = values^T * weights. Queries and weights are B,
// each number the sum of two halves, so up to 4 heads fill its 8 columns, and a score is the sum of a lane's two.
//
// A decode step has one such task on its longest way, and each warp has little to do: what counts is how many
// instructions wait for one another. So two tiles of positions go through the softmax at once where registers allow. Keys and
// values of heads of more than 128 do not fit beside the outputs: they come in parts, one after the other, when they are used.
// (As a whole they spill, and so does the loop that calls all tasks: 268 bytes against 4, see tuning.md.)
#pragma once

#include "apps/llama/tuned/cache.cuh"
#include "apps/llama/tuned/tile.cuh"

namespace llama {

/// A number as the sum of two halves, the upper in the lower 16 bits; for what clamp_to_half() leaves as it is.
FLYWHEEL_TASK inline std::uint32_t split_to_halves(float value) {
  const std::uint32_t high = round_half_or_infinite(value);
  return high | round_half_or_infinite(value - from_half(high)) << 16;
}

/// A block as the warps of a part of it see it, kTeamWarps that attend together: warp() counts within the team.
template <class Block, int kTeamWarps>
struct TeamBlock : Block {
  FLYWHEEL_TASK explicit TeamBlock(const Block& of) : Block(of) {}
  FLYWHEEL_TASK int team() const { return Block::warp() / kTeamWarps; }
  FLYWHEEL_TASK int warp() const { return Block::warp() % kTeamWarps; }
  /// f(i) for i = 0..n-1, n a multiple of the warp size, by the team's threads.
  template <class F>
  FLYWHEEL_TASK void for_each(int n, F&& f) const {
    for (int i = warp() * kLanes + Block::lane(); i < n; i += kTeamWarps * kLanes) f(i);
  }
};

/// What kWarps warps that attend together leave to each other in shared memory.
template <int kTiles, int kWarps = kTileWarps>
struct LeftParts {
  // Not a multiple of the banks' number: the heads of a warp are written side by side.
  static constexpr int kStride = kTiles * 16 + 8;
  float scales[kWarps * kHeadsTogether * 2];      // [warps][heads together][largest, sum]
  float sums[kWarps * kHeadsTogether * kStride];  // [warps][heads together][kStride]: of weighted values, by dimension
};

/// A lane's scores and weights are those of head lane % 4, its outputs too. `kWarps`: that share the positions out.
template <int kTiles, int kWarps = kTileWarps>
class WarpAttention {
  static constexpr int kDims = kTiles * 16;
  static constexpr int kHeld = kTiles <= 8 ? kTiles : 4;  // tiles of a key or value in registers
  static constexpr bool kInParts = kHeld < kTiles;
  static_assert(kTiles % kHeld == 0);
  static constexpr int kStep = kWarps * 16;  // positions from one group of 16 to the warp's next

 public:
  static constexpr int kGroups = kTiles <= 4 ? 2 : 1;  // that the warp takes at once
  static constexpr int kAll = kGroups * kStep;         // positions from there to its next

  /// The head's keys and values in the cache, see TunedCache.
  FLYWHEEL_TASK WarpAttention(const Half* keys, const Half* values) : keys_at_(keys), values_at_(values) {}

  /// Keys of groups from position `from` on are on their way; of those that begin at or after `last`, some others are. Not of
  /// keys in parts, which add() loads.
  template <class Block>
  FLYWHEEL_TASK void load_keys(const Block& block, int from, int last) {
    if (!kInParts) load(block, &Group::keys, keys_at_, from, last);
  }
  /// The same of values. Of a warp's first groups only when its queries are there, and nothing beyond those groups is brought
  /// to L2 meanwhile: the fastest of ten orders, see tuning.md.
  template <class Block>
  FLYWHEEL_TASK void load_values(const Block& block, int from, int last) {
    if (!kInParts) load(block, &Group::values, values_at_, from, last);
  }

  /// B of the scores: [tile][column][lane quarter][4] halves in shared memory.
  template <class Block>
  FLYWHEEL_TASK void take_queries(const Block& block, const std::uint16_t* queries) {
    queries_ = reinterpret_cast<const FourWeights*>(queries) + block.lane();  // column lane / 4, quarter lane % 4
  }

  /// The step's key and value, [2][kDims] halves, into the tiles that were loaded before they were in the cache, or into those
  /// that add() loads; see TunedCache::key_at().
  template <class Block>
  FLYWHEEL_TASK void put_step(const Block& block, const std::uint16_t* step, int position, int from) {
    if constexpr (kInParts) {
      step_ = position / 16 * 16 == from ? step : nullptr;
      position_ = position;
    } else {
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
        if (position / 16 * 16 == from + g * kStep) put_step<true, true>(block, step, position, groups_[g], 0);
    }
  }

  /// The groups that were loaded. The warp's next ones are on their way as soon as there is room for them.
  template <bool kWindowed, class Block>
  FLYWHEEL_TASK void add(Block& block, int from, const Span& part) {
    const int last = part.last;
    float scores[kGroups][2];
    score(block, from, last, scores);
    if (kWindowed) leave_out(block, from, part.begin, scores);
    const int next = from + kAll;
    if (next < last) load_keys(block, next, last);
    soften(block, scores);
    weigh(block, scores, from, last);
    if (next < last) load_values(block, next, last);
  }

  template <class Block>
  FLYWHEEL_TASK void leave(const Block& block, LeftParts<kTiles, kWarps>& to) {
    const int at = block.warp() * kHeadsTogether + block.lane() % 4, dim = block.lane() / 4;
    float* sums = to.sums + at * LeftParts<kTiles, kWarps>::kStride + dim;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      sums[t * 16] = out_[t][0] + out_[t][1];
      sums[t * 16 + 8] = out_[t][2] + out_[t][3];
    }
#pragma unroll
    for (int apart = 4; apart < kLanes; apart *= 2) sum_ += block.shuffle_xor(sum_, apart);
    if (dim == 0) to.scales[at * 2] = largest_, to.scales[at * 2 + 1] = sum_;
  }

 private:
  /// Keys and values of 16 positions.
  struct Group {
    TilePart keys[kHeld], values[kHeld];
  };

  /// From tile `tile` on.
  template <class Block>
  FLYWHEEL_TASK void load(const Block& block, TilePart (Group::*what)[kHeld], const Half* of, int from, int last,
                          int tile = 0) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int position = from + g * kStep;
      const auto* at =
          reinterpret_cast<const TilePart*>(of + TunedCache::tile(position < last ? position : 0, tile * 16, kDims)) +
          block.lane();
#pragma unroll
      for (int t = 0; t < kHeld; ++t) Block::load_once((groups_[g].*what)[t].registers, at + t * kLanes);
    }
  }

  template <bool kKeys, bool kValues, class Block>
  FLYWHEEL_TASK static void put_step(const Block& block, const std::uint16_t* step, int position, Group& group, int tile) {
    const bool lower = position % 16 >= 8;
    const auto* keys = reinterpret_cast<const FourWeights*>(step) + tile * 4 + block.lane() % 4;
    const std::uint16_t* values = step + kDims + tile * 16 + block.lane() / 4;
    const bool has_key = block.lane() / 4 == position % 8, has_value = block.lane() % 4 == position % 8 / 2;
    const std::uint32_t half = position % 2 ? 0xffff0000u : 0xffffu;
    const std::uint32_t key_bits[] = {has_key && !lower ? ~0u : 0, has_key && lower ? ~0u : 0};
    const std::uint32_t value_bits[] = {has_value && !lower ? half : 0, has_value && lower ? half : 0};
    // Every lane does the same, branches in which one loads would wait for each other.
    const auto blend = [](std::uint32_t& old, std::uint32_t by, std::uint32_t bits) { old = (old & ~bits) | (by & bits); };
#pragma unroll
    for (int t = 0; t < kHeld; ++t) {
      const FourWeights key = keys[t * 4];
      const std::uint32_t value[] = {values[t * 16] * 0x10001u, values[t * 16 + 8] * 0x10001u};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (kKeys) blend(group.keys[t].registers[i], key.pairs[i / 2], key_bits[i % 2]);
        if (kValues) blend(group.values[t].registers[i], value[i % 2], value_bits[i / 2]);
      }
    }
  }

  /// use(part's first tile) for the parts of keys or values, when each is in registers.
  template <bool kKeys, class Block, class Use>
  FLYWHEEL_TASK void for_each_part(const Block& block, int from, int last, Use&& use) {
    if constexpr (!kInParts) {
      use(0);
    } else {
#pragma unroll
      for (int tile = 0; tile < kTiles; tile += kHeld) {
        if (kKeys) load(block, &Group::keys, keys_at_, from, last, tile);
        else load(block, &Group::values, values_at_, from, last, tile);
        if (step_) put_step<kKeys, !kKeys>(block, step_, position_, groups_[0], tile);
        use(tile);
      }
    }
  }

  /// Of positions lane / 4 and lane / 4 + 8 of each group; what is not before `last` gets no weight.
  template <class Block>
  FLYWHEEL_TASK void score(Block& block, int from, int last, float (&scores)[kGroups][2]) {
    float even[kGroups][4] = {}, odd[kGroups][4] = {};  // two chains each
    for_each_part<true>(block, from, last, [&](int tile) {
#pragma unroll
      for (int t = 0; t < kHeld; ++t) {
        const FourWeights query = queries_[(tile + t) * kLanes];
#pragma unroll
        for (int g = 0; g < kGroups; ++g)
          block.multiply_add_half(t % 2 ? odd[g] : even[g], groups_[g].keys[t].registers, query.pairs);
      }
    });
    const float none = -std::numeric_limits<float>::infinity();
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int position = from + g * kStep + block.lane() / 4;
      const float first = (even[g][0] + odd[g][0]) + (even[g][1] + odd[g][1]);
      const float second = (even[g][2] + odd[g][2]) + (even[g][3] + odd[g][3]);
      scores[g][0] = position < last ? first : none;
      scores[g][1] = position + 8 < last ? second : none;
    }
  }

  /// What is before `begin` gets no weight; of the first group with positions from there on, one is left.
  template <class Block>
  FLYWHEEL_TASK static void leave_out(const Block& block, int from, int begin, float (&scores)[kGroups][2]) {
    const float none = -std::numeric_limits<float>::infinity();
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int position = from + g * kStep + block.lane() / 4;
      if (position < begin) scores[g][0] = none;
      if (position + 8 < begin) scores[g][1] = none;
    }
  }

  FLYWHEEL_TASK static float larger(float a, float b) { return a > b ? a : b; }

  /// Scores to weights; what came before is brought down if one is larger.
  template <class Block>
  FLYWHEEL_TASK void soften(const Block& block, float (&scores)[kGroups][2]) {
    float largest = largest_;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) largest = larger(largest, larger(scores[g][0], scores[g][1]));
#pragma unroll
    for (int apart = 4; apart < kLanes; apart *= 2) largest = larger(largest, block.shuffle_xor(largest, apart));
    const float keep = std::exp2(largest_ - largest);  // the largest is finite: the first group has a position
    largest_ = largest;
    float sum = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      scores[g][0] = std::exp2(scores[g][0] - largest);
      scores[g][1] = std::exp2(scores[g][1] - largest);
      sum += scores[g][0] + scores[g][1];
    }
    sum_ = sum_ * keep + sum;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (float& value : out_[t]) value *= keep;
  }

  /// Weights as B: the lane of column c (head c / 2, part c % 2) and quarter q needs positions 2q, 2q + 1, 2q + 8, 2q + 9.
  template <class Block>
  FLYWHEEL_TASK void weigh(Block& block, const float (&weights)[kGroups][2], int from_position, int last) {
    const int column = block.lane() / 4, from = block.lane() % 4 * 2 * 4 + column / 2, by = column % 2 * 16;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      std::uint32_t b[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t halves = split_to_halves(weights[g][i]);
        const std::uint32_t first = block.shuffle(halves, from) >> by, second = block.shuffle(halves, from + 4) >> by;
        b[i] = (first & 0xffffu) | second << 16;
      }
      for_each_part<false>(block, from_position, last, [&](int tile) {
#pragma unroll
        for (int t = 0; t < kHeld; ++t) block.multiply_add_half(out_[tile + t], groups_[g].values[t].registers, b);
      });
    }
  }

  const Half* keys_at_;
  const Half* values_at_;
  Group groups_[kGroups];
  const FourWeights* queries_ = nullptr;
  const std::uint16_t* step_ = nullptr;  // in parts: what belongs into the positions that are added, if anything does
  int position_ = 0;
  float largest_ = -std::numeric_limits<float>::infinity();
  float sum_ = 0;              // of the lane's own positions
  float out_[kTiles][4] = {};  // dimensions lane / 4 and lane / 4 + 8 of each tile, columns high and low
};

}  // namespace llama
