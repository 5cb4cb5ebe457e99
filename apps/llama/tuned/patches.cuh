// What the stream of halves leaves of some weights, and how the store part adds it: so the products are those of the weights
// as they are in the model's files.
//
// A half keeps most bf16 weights as they are (see tile.cuh). Of each other one the rest, a float, is a patch: of a trained
// model some in 10 million have one. The store part has nothing to do until sums come, so it reads the patches of its
// rows and their inputs meanwhile.
#pragma once

#include <limits>

#include "apps/llama/tuned/multiply.cuh"

namespace llama {

/// A weight is from_half(half_of_weight(code)) / kWeightUnits + rest, exactly.
struct alignas(16) Patch {
  std::int32_t row, column;  // of the matrix
  float rest;                // not 0
};
FLYWHEEL_TASK inline float rest_of_weight(std::uint32_t bf16) {
  return to_float(Bf16{static_cast<std::uint16_t>(bf16)}) - from_half(half_of_weight(bf16)) * (1 / kWeightUnits);
}

/// A matrix that the stream brings, in device memory. Portable bodies need the weights alone.
struct StreamedMatrix {
  const Bf16* weights;         // [rows][columns]
  const std::uint32_t* first;  // [rows + 1]: where the patches of each row begin, and where the last one's end
  const Patch* patches;        // row after row, by columns
};

/// The patches of a task's rows, one after the other, for the warp of its store part. The lanes hold a batch of them, a patch a
/// lane: one trip to memory brings a batch, and a task's patches are mostly one. Of a patch every lane reads the input of its
/// own sequence when the patch is used, a few at once: products with all sequences would take a register for each, which tasks
/// without patches pay for, too. Each row's are added in the order of columns, however rows are cut into tasks.
template <int kEach, class Block>
class PatchReader {
 public:
  /// Starts to read those of rows first..end-1 of the matrix. They do not depend on other tasks. `sequence`: the lane's.
  FLYWHEEL_TASK PatchReader(const Block& block, const StreamedMatrix& matrix, const TiledInput& input, int columns,
                            int sequence, int first, int end)
      : block_(block),
        input_(input),
        matrix_(matrix),
        columns_(columns),
        sequence_(sequence),
        some_(input.patched) {
    if (!some_) return;
    at_ = matrix.first[first] + static_cast<std::uint32_t>(block.lane());
    last_ = matrix.first[end];
    load();
  }

  /// All lanes: what the patches of the rows before `end` that are left add to the lane's `kEach` rows from `row` on. Waits for
  /// the inputs of those that it reads.
  FLYWHEEL_TASK LaneSums<kEach> take(int row, int end) {
    LaneSums<kEach> sums{};
    if (!some_) return sums;
    while (add_some(sums, row, end)) {}
    return sums;
  }

 private:
  static constexpr std::int32_t kNoRow = std::numeric_limits<std::int32_t>::max();
  static constexpr int kAtOnce = 4;

  /// The lane's patch of the next batch; behind the last patch, none.
  FLYWHEEL_TASK void load() {
    now_.row = kNoRow;
    if (at_ < last_) now_ = matrix_.patches[at_];
    at_ += kLanes;
    used_ = 0;
  }
  /// The next kAtOnce patches, or as many as the batch has left of rows before `end`. False if there are none.
  FLYWHEEL_TASK bool add_some(LaneSums<kEach>& sums, int row, int end) {
    if (used_ == kLanes) load();
    Patch next[kAtOnce];
    int count = 0;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int from = used_ + i < kLanes ? used_ + i : used_;
      next[i] = {block_.shuffle(now_.row, from), block_.shuffle(now_.column, from), block_.shuffle(now_.rest, from)};
      if (used_ + i < kLanes && next[i].row < end) count = i + 1;
    }
    const WantedStamp wanted = wanted_stamp(block_, input_.old);
    Stamped words[kAtOnce] = {};
    block_.spin([&] {
      std::uint32_t wrong = 0;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (i < count) words[i] = look_at(input_.packed[(sequence_ * columns_ + next[i].column) >> 1]);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (i < count) wrong |= wanted.wrong(words[i]);
      return wrong == 0;
    });
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i >= count) break;
      const float product = next[i].rest * activation_of(words[i].bits() >> (next[i].column % 2 * 16) & 0xffffu);
#pragma unroll
      for (int r = 0; r < kEach; ++r)
        if (next[i].row == row + r) sums.of[r] += product;
    }
    used_ += count;
    return count != 0;
  }

  const Block& block_;
  const TiledInput& input_;
  const StreamedMatrix& matrix_;
  const int columns_, sequence_;
  const bool some_;
  std::uint32_t at_ = 0, last_ = 0;  // of the lane's next one, and where they end
  int used_ = kLanes;                // of the batch
  Patch now_{};                      // the lane's of the batch
};

}  // namespace llama
