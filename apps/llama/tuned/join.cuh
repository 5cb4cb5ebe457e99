// What the parts of a split context have left, put together by those parts: each takes a share of the dimensions and waits
// for all parts' words of that. One trip through L2, and a lane has a word of one part to look for.
// Tasks of their own, or the last part alone, are slower: see tuning.md.
//
// That parts wait for each other is no circle: they are a gang, see Graph::together().
#pragma once

#include "apps/llama/tuned/partials.cuh"

namespace llama {

/// The `count` query heads from `head` on, of one part.
template <int kDims>
struct PartJoin {
  const Partials& partials;
  int head, count, sequence, split;

  /// The pairs of dimensions of all heads that one warp joins, and of how many at once the logarithm.
  struct Share {
    int first = 0, last = 0, log_at_once = 0;
  };
  /// Of `used` parts that have positions the first, a power of 2, join. For a warp to know before it waits for its inputs.
  FLYWHEEL_TASK Share share(int warp, int used) const {
    const int log_lanes = log_up(used < kLanes ? used : kLanes);  // lanes that share a pair of dimensions
    const int log_joining = log_up(used + 1) - 1, log_at_once = log_up(kLanes) - log_lanes;
    if (split >> log_joining) return {};
    const int all = count * kDims / 2;
    return {((all * split) >> log_joining) + (warp << log_at_once), (all * (split + 1)) >> log_joining, log_at_once};
  }

  /// All warps, when the part's own words are put.
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block, int used, const Share& mine, const PackedOutput& packed) const {
    const int in = block.lane() & ((1 << mine.log_at_once) - 1);
    for (int first = mine.first; first < mine.last; first += kTileWarps << mine.log_at_once)
      join(block, used, {first + in, mine.last}, mine.log_at_once, packed);
  }

 private:
  /// Which pair of dimensions; none if it is `last` or beyond.
  struct Pair {
    int number, last;
  };
  /// Of some parts: a pair of sums, brought down to the largest score among them.
  struct Joined {
    float largest = -std::numeric_limits<float>::infinity(), weights = 0, first = 0, second = 0;
  };

  FLYWHEEL_TASK static int log_up(int n) {
    int log = 0;
    while (1 << log < n) ++log;
    return log;
  }

  /// A warp. Neighbouring lanes have neighbouring pairs of one part, the next so many lanes those of the next part.
  template <class Block>
  FLYWHEEL_TASK void join(Block& block, int used, const Pair& pair, int log_at_once, const PackedOutput& packed) const {
    const bool some = pair.number < pair.last;
    const int i = some ? 2 * pair.number : 0, part = block.lane() >> log_at_once;
    const int h = head + i / kDims, dim = i % kDims;
    Joined mine;
    for (int from = 0; from < used; from += kLanes >> log_at_once) {
      const bool has = from + part < used;
      add(block, mine, partials.index(sequence, h, has ? from + part : 0), dim, has);
    }
    together(block, mine, 1 << log_at_once);
    const float by = reciprocal(mine.weights);
    packed.put(block, sequence, h * kDims + dim, {mine.first * by, mine.second * by}, some && part == 0);
  }

  template <class Block>
  FLYWHEEL_TASK void add(Block& block, Joined& sum, int index, int dim, bool has) const {
    const WantedStamp wanted = wanted_stamp(block, false);
    StampedPair scale{}, values{};
    block.spin([&] {
      scale = Block::load_stamped_pair(&partials.scale(index).first);
      values = Block::load_stamped_pair(partials.values(index) + dim);
      return (wanted.wrong(scale) | wanted.wrong(values)) == 0;
    });
    if (!has) return;
    const float score = scale.first.value(), largest = score > sum.largest ? score : sum.largest;
    const float keep = std::exp2(sum.largest - largest), weight = std::exp2(score - largest);
    sum = {largest, sum.weights * keep + weight * scale.second.value(), sum.first * keep + weight * values.first.value(),
           sum.second * keep + weight * values.second.value()};
  }

  /// Over the lanes of a pair, in a fixed order: the result does not depend on which part came when.
  template <class Block>
  FLYWHEEL_TASK static void together(Block& block, Joined& sum, int at_once) {
    float largest = sum.largest;
    for (int apart = at_once; apart < kLanes; apart *= 2) {
      const float other = block.shuffle_xor(largest, apart);
      largest = other > largest ? other : largest;
    }
    const float by = std::exp2(sum.largest - largest);
    sum = {largest, sum.weights * by, sum.first * by, sum.second * by};
    for (int apart = at_once; apart < kLanes; apart *= 2) {
      sum.weights += block.shuffle_xor(sum.weights, apart);
      sum.first += block.shuffle_xor(sum.first, apart);
      sum.second += block.shuffle_xor(sum.second, apart);
    }
  }
};

}  // namespace llama
