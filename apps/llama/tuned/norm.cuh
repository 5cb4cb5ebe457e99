// RMSNorm, split between those who make the residual stream and those who multiply with it: the makers leave it times the
// norm's weights, and the squares of what they made; the sums are scaled when they are stored.
#pragma once

#include "apps/llama/tuned/tiled_task.cuh"

namespace llama {

/// What a norm needs of those who made its input.
struct NormInput {
  const Stamped* x;        // portable: [sequences][columns]
  const float* weights;    // portable: [columns]
  const Stamped* squares;  // [parts][sequences]: sums of squares of parts of x
  std::int32_t parts;
  float eps;

  FLYWHEEL_TASK float scale(float squares_of_all, int columns) const {
    return inverse_sqrt(squares_of_all * reciprocal(static_cast<float>(columns)) + eps);
  }

  /// A warp: the factor for the sequence that each lane names. `kEach`: see rows_of_lane(). Of many sequences two neighbours'
  /// squares are read at once: those of 132 parts and 16 sequences take five trips to L2, and took nine.
  template <int kEach, class Block>
  FLYWHEEL_TASK float scale_of(const Block& block, const TiledInput& input, int columns, int sequence) const {
    if constexpr (kEach != 1)
      if (input.sequences > kFewSequences) return scale_of_many(block, input, columns, sequence);
    constexpr int kAtOnce = 8;
    const WantedStamp wanted = wanted_stamp(block, input.old);
    const int all = parts * input.sequences;
    float sum = 0;
    for (int first = block.lane(); first - block.lane() < all; first += kAtOnce * kLanes) {
      Stamped words[kAtOnce] = {};
      block.spin([&] {
        std::uint32_t wrong = 0;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (first + i * kLanes < all) words[i] = look_at(squares[first + i * kLanes]);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (first + i * kLanes < all) wrong |= wanted.wrong(words[i]);
        return wrong == 0;
      });
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) sum += words[i].value();
    }
    // Of the sequence lane % sequences.
    for (int apart = kLanes / 2; apart >= input.sequences; apart /= 2) sum += block.shuffle_xor(sum, apart);
    return scale(block.shuffle(sum, sequence), columns);
  }

  /// Portable: x of one sequence, normed, in `scratch`.
  template <class Block>
  FLYWHEEL_TASK void portable(Block& block, float* scratch, int sequence, int columns) const {
    const Stamped* from = x + static_cast<std::size_t>(sequence) * static_cast<std::size_t>(columns);
    block.for_each(columns, [&](int i) { scratch[i] = look_at(from[i]).value(); });
    block.sync();
    const float by = rms_scale(block, scratch, columns, eps);
    block.sync();
    block.for_each(columns, [&](int i) { scratch[i] *= by * weights[i]; });
    block.sync();
  }

 private:
  template <class Block>
  FLYWHEEL_TASK float scale_of_many(const Block& block, const TiledInput& input, int columns, int sequence) const {
    constexpr int kAtOnce = 8;
    const WantedStamp wanted = wanted_stamp(block, input.old);
    const int all = parts * input.sequences / 2;  // pairs
    float even = 0, odd = 0;
    for (int first = block.lane(); first - block.lane() < all; first += kAtOnce * kLanes) {
      StampedPair pairs[kAtOnce] = {};
      block.spin([&] {
        std::uint32_t wrong = 0;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (first + i * kLanes < all) pairs[i] = Block::load_stamped_pair(squares + 2 * (first + i * kLanes));
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (first + i * kLanes < all) wrong |= wanted.wrong(pairs[i]);
        return wrong == 0;
      });
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) even += pairs[i].first.value(), odd += pairs[i].second.value();
    }
    // Of the sequences 2 * (lane % (sequences / 2)) and the next.
    for (int apart = kLanes / 2; apart >= input.sequences / 2; apart /= 2) {
      even += block.shuffle_xor(even, apart);
      odd += block.shuffle_xor(odd, apart);
    }
    even = block.shuffle(even, sequence / 2);
    odd = block.shuffle(odd, sequence / 2);
    return scale(sequence % 2 ? odd : even, columns);
  }
};

/// Where the residual stream goes.
struct ResidualOutput {
  Stamped* x;            // [sequences][columns]
  Stamped* packed;       // times the weights, see PackedOutput
  const float* weights;  // of the norm that comes next
  Stamped* squares;      // [sequences], this part's
};

}  // namespace llama
