// Sums of products on their way from the warps that compute to the one that stores.
#pragma once

#include "apps/llama/fast/tile.cuh"

namespace flywheel::llama {

/// What one warp hands over: its sums of up to 128 (row, sequence) pairs.
struct WarpSums {
  static constexpr int kMost = 128;
  float sums[kMost];
};

/// Which row and sequence a sum belongs to. Numbers of sequences are powers of 2 up to 8: nobody need divide.
FLYWHEEL_TASK constexpr int row_of_sum(int i, int sequences) { return i >> ((sequences >> 1) - (sequences >> 3)); }
FLYWHEEL_TASK constexpr int sequence_of_sum(int i, int sequences) { return i & (sequences - 1); }

/// Rows of a handoff: few enough to be stored while the next are computed.
FLYWHEEL_TASK constexpr int rows_of_handoff(int sequences) { return sequences <= 4 ? 32 : 16; }

/// Over the warps, in a fixed order.
FLYWHEEL_TASK inline float sum_of(const WarpSums* in, int i) {
  float sums[kTileWarps];
#pragma unroll
  for (int warp = 0; warp < kTileWarps; ++warp) sums[warp] = in[warp].sums[i];
#pragma unroll
  for (int apart = kTileWarps / 2; apart; apart /= 2)
#pragma unroll
    for (int warp = 0; warp < apart; ++warp) sums[warp] += sums[warp + apart];
  return sums[0];
}

/// The store part: use(row of the task, sequence, sum, before, is_last) for each row and sequence, by all lanes of the
/// warp together, whether each has one or not. `before` is what before(row, sequence, has_one) gave: that is asked for
/// ahead, while the sums are still being made; ready(before) waits for it.
template <class Block, class Before, class Ready, class Use>
FLYWHEEL_TASK void store_rows(Block& block, int rows, int sequences, Before&& before, Ready&& ready, Use&& use) {
  const int step = rows_of_handoff(sequences);
  for (int first = 0; first < rows; first += step) {
    const int count = (rows - first < step ? rows - first : step) * sequences;
    const auto ask = [&](int i) { return before(first + row_of_sum(i, sequences), sequence_of_sum(i, sequences), i < count); };
    auto old = ask(block.lane());
    ready(old);
    const WarpSums* in = block.template take<WarpSums>();
    if (!in) return;
#pragma unroll 1
    for (int i = block.lane();;) {  // not unrolled: code that is run once is slow to come
      const int next = i + kLanes;
      const bool more = next - block.lane() < count;
      use(first + row_of_sum(i, sequences), sequence_of_sum(i, sequences), sum_of(in, i), old, first + step >= rows && !more);
      if (!more) break;
      old = ask(i = next);
      ready(old);
    }
    block.give_back();
  }
}

/// For stores with nothing to wait for.
struct ReadyAtOnce {
  template <class T>
  FLYWHEEL_TASK void operator()(T&) const {}
};

}  // namespace flywheel::llama
