// What the warps of a task of attention leave to each other in shared memory.
#pragma once

#include "apps/llama/tuned/attend_warp.cuh"
#include "apps/llama/tuned/head_values.cuh"

namespace llama {

/// What one warp's sums of a head count among all warps', and all warps' together.
struct WarpsScale {
  float largest, factor, weights;
};

/// Of kWarps warps that attend together.
template <int kTiles, int kWarps = kTileWarps>
struct alignas(16) AttendArea {
  static constexpr int kDims = kTiles * 16;
  using Values = HeadValues<FixedSize<kTiles>>;

  std::uint16_t query[kTiles * 8 * 16];  // B of the scores: [tile][column][lane quarter][4]
  std::uint16_t step[2 * kTiles * 16];   // the step's key and value
  LeftParts<kTiles, kWarps> left;

  /// A warp: the columns of B of head `h` < 4; zeros where there is no such head.
  template <class Block>
  FLYWHEEL_TASK void put_query(Block& block, const Values& values, int h) {
    std::uint16_t* const columns = query + 2 * h * 16;  // the next one is 16 further
    values.for_each(block, [&](int dim, float value) {  // zeros where nothing was loaded
      const std::uint32_t halves = split_to_halves(value);
      std::uint16_t* at = columns + dim / 16 * 8 * 16 + dim % 16;
      at[0] = static_cast<std::uint16_t>(halves);
      at[16] = static_cast<std::uint16_t>(halves >> 16);
    });
  }

  /// The step's key (`which` = 0) or value for the warps.
  template <class Block>
  FLYWHEEL_TASK void put_step(Block& block, const Values& values, int which) {
    std::uint16_t* const to = step + which * kTiles * 16;
    values.for_each(block, [&](int i, float value) { to[i] = static_cast<std::uint16_t>(round_half_or_infinite(value)); });
  }
  /// Not before all warps are through with the cache: they load whole tiles of it, this position's place among them.
  template <class Block>
  FLYWHEEL_TASK void append(const Block& block, const TunedCache& head, int position, int which) const {
    for (int i = block.lane(); i < kDims; i += kLanes)
      if (which == 0) head.keys[TunedCache::key_at(position, i, kDims)].bits = step[i];
      else head.values[TunedCache::value_at(position, i, kDims)].bits = step[kDims + i];
  }

  /// A warp: lane 4 * w + h has what warp w's sums of head h count.
  template <class Block>
  FLYWHEEL_TASK WarpsScale scale(Block& block) const {
    constexpr int kUsed = kWarps * kHeadsTogether;  // lanes; the others have the same again
    static_assert(kUsed <= kLanes && kLanes % kUsed == 0);
    const int at = kUsed < kLanes ? block.lane() % kUsed : block.lane();
    const float warps_largest = left.scales[at * 2], warps_sum = left.scales[at * 2 + 1];
    float largest = warps_largest;
    for (int apart = kHeadsTogether; apart < kUsed; apart *= 2) {
      const float other = block.shuffle_xor(largest, apart);
      largest = other > largest ? other : largest;
    }
    float factor = std::exp2(warps_largest - largest), weights = factor * warps_sum;
    for (int apart = kHeadsTogether; apart < kUsed; apart *= 2) weights += block.shuffle_xor(weights, apart);
    return {largest, factor, weights};
  }
  /// All threads: use(head of those together, dimension, all warps' sum of it), of whole warps.
  template <class Block, class Use>
  FLYWHEEL_TASK void for_each_sum(Block& block, float factor, Use&& use) const {
    constexpr int kStride = LeftParts<kTiles, kWarps>::kStride;
    block.for_each(kHeadsTogether * kDims, [&](int i) {  // whole warps: the neighbour is there
      const int h = i / kDims, dim = i % kDims;
      const float* sums = left.sums + h * kStride + dim;
      float parts[kWarps];
#pragma unroll
      for (int w = 0; w < kWarps; ++w)
        parts[w] = block.shuffle(factor, w * kHeadsTogether + h) * sums[w * kHeadsTogether * kStride];
#pragma unroll
      for (int apart = kWarps / 2; apart; apart /= 2)
#pragma unroll
        for (int w = 0; w < apart; ++w) parts[w] += parts[w + apart];
      use(h, dim, parts[0]);
    });
  }
};

}  // namespace llama
