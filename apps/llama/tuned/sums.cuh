// Sums of products on their way from the warps that compute to the one that stores.
#pragma once

#include <type_traits>

#include "apps/llama/tuned/tile.cuh"

namespace llama {

/// Rows of a handoff: few enough to be stored while the next are computed, and sums enough for the lanes of the warp.
/// rows_of_few(): of kFewSequences at most. Code for these alone calls it, see tuning.md.
FLYWHEEL_TASK constexpr int rows_of_few(int sequences) { return sequences == 1 || sequences == 4 ? 32 : 16; }
FLYWHEEL_TASK constexpr int rows_of_handoff(int sequences) {
  return sequences > kFewSequences ? kGroupRows : rows_of_few(sequences);
}

/// What one warp hands over: its sums, [sequences][rows of a handoff].
struct WarpSums {
  static constexpr int kMost = 128;
  float sums[kMost];

  /// `rows`: of a handoff.
  FLYWHEEL_TASK static int at(int sequence, int row, int rows) { return sequence * rows + row; }
};

/// A lane's sums of products of a group of rows, of `kBlocks` blocks of 8 columns of B.
template <int kBlocks>
struct ProductSums {
  float part[kBlocks][4] = {};

  FLYWHEEL_TASK void add(const ProductSums& more) {
#pragma unroll
    for (int b = 0; b < kBlocks; ++b)
#pragma unroll
      for (int i = 0; i < 4; ++i) part[b][i] += more.part[b][i];
  }
  /// Upper rows with the first half's column, lower rows with the second's; the other two sums mix the halves.
  FLYWHEEL_TASK float of_lane(int b = 0) const { return part[b][0] + part[b][3]; }
};

/// A warp that computes: hands its sums over, group by group. `kMany`: of more than kFewSequences.
template <class Block, bool kMany = false>
class SumsWriter {
 public:
  FLYWHEEL_TASK SumsWriter(Block& block, int sequences) : block_(block), sequences_(sequences) {}

  FLYWHEEL_TASK void open() { to_ = block_.template producer_acquire<WarpSums>() + block_.warp(); }
  FLYWHEEL_TASK void close() {
    block_.producer_commit();
    to_ = nullptr;
  }
  /// After the last group.
  FLYWHEEL_TASK void end() {
    if (to_) close();
  }
  /// Where the lane's row of the first group goes, of the first block.
  FLYWHEEL_TASK float* place_of_lane() const { return to_->sums + WarpSums::at(block_.lane() % 4, block_.lane() / 4, rows()); }
  /// A group's: of_lane(block) is what the lane has.
  template <int kBlocks, class OfLane>
  FLYWHEEL_TASK void put(int group, OfLane&& of_lane) {
    const int row = group * kGroupRows & (rows() - 1);
    if (row == 0) open();
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      const int sequence = b * 4 + block_.lane() % 4;
      if (sequence < sequences_) to_->sums[WarpSums::at(sequence, row + block_.lane() / 4, rows())] = of_lane(b);
    }
    if (row + kGroupRows == rows()) close();
  }

 private:
  FLYWHEEL_TASK int rows() const { return kMany ? kGroupRows : rows_of_few(sequences_); }

  Block& block_;
  int sequences_;
  WarpSums* to_ = nullptr;
};

/// What a lane of the warp that stores has of a handoff: `kEach` (1 or 4) neighbouring rows of one sequence, so that it is
/// done with a handoff at one go (8 texts: 0.799 ms a step with 4 rows against 0.872 with 1; one text: 0.660 with 1 row against
/// 0.665 with 4; see tuning.md).
template <int kEach>
struct alignas(kEach * sizeof(float)) LaneSums {
  float of[kEach];

  FLYWHEEL_TASK void add(const LaneSums& more) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) of[i] += more.of[i];
  }
};
inline constexpr int kMostEach = 4;
FLYWHEEL_TASK constexpr int rows_of_lane(int sequences) { return sequences <= 2 ? 1 : kMostEach; }

/// The first of a lane's rows of `all` (a power of 2), and its sequence; `some` if there is such a sequence. The lanes of a
/// sequence are neighbours.
template <int kEach>
struct LaneRows {
  int row, sequence, lanes;
  bool some;

  FLYWHEEL_TASK LaneRows(int lane, int all, int sequences) : lanes(all / kEach) {
    const int of_lane = lane >> flywheel::detail::lowest_bit(static_cast<std::uint64_t>(lanes));
    row = (lane & (lanes - 1)) * kEach;
    some = of_lane < sequences;
    sequence = some ? of_lane : 0;
  }

  /// The values of all lanes of a sequence, by combine(a, b); put(sequence, value) by one of them.
  template <class Block, class T, class Combine, class Put>
  FLYWHEEL_TASK void join(const Block& block, T value, Combine&& combine, Put&& put) const {
    for (int apart = lanes / 2; apart; apart /= 2) value = combine(value, block.shuffle_xor(value, apart));
    if (some && row == 0) put(sequence, value);
  }
};
/// Of a handoff.
template <int kEach, class Block>
FLYWHEEL_TASK LaneRows<kEach> lane_rows(const Block& block, int sequences) {
  return {block.lane(), kEach == 1 ? rows_of_few(sequences) : rows_of_handoff(sequences), sequences};
}

/// Over the warps, in a fixed order, in units of 1.
template <int kEach>
FLYWHEEL_TASK LaneSums<kEach> sums_of(const WarpSums* in, int at) {
  LaneSums<kEach> sums[kTileWarps];
#pragma unroll
  for (int warp = 0; warp < kTileWarps; ++warp) sums[warp] = *reinterpret_cast<const LaneSums<kEach>*>(in[warp].sums + at);
#pragma unroll
  for (int apart = kTileWarps / 2; apart; apart /= 2)
#pragma unroll
    for (int warp = 0; warp < apart; ++warp)
#pragma unroll
      for (int i = 0; i < kEach; ++i) sums[warp].of[i] += sums[warp + apart].of[i];
#pragma unroll
  for (int i = 0; i < kEach; ++i) sums[0].of[i] *= 1 / kSumUnits;
  return sums[0];
}

/// store(rows of a lane), a constant.
template <class Store>
FLYWHEEL_TASK void with_rows_of_lane(int sequences, Store&& store) {
  if (rows_of_lane(sequences) == 1) store(std::integral_constant<int, 1>{});
  else store(std::integral_constant<int, kMostEach>{});
}

}  // namespace llama
