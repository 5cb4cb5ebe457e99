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
/// lane, with its products with all sequences: one trip to memory brings a batch, and a task's patches are mostly one. Each
/// row's are added in the order of columns, however rows are cut into tasks.
template <int kEach, class Block>
class PatchReader {
 public:
  /// Starts to read those of rows first..end-1 of the matrix. They do not depend on other tasks. `sequence`: the lane's.
  FLYWHEEL_TASK PatchReader(const Block& block, const StreamedMatrix& matrix, const TiledInput& input, int columns,
                            int sequence, int first, int end)
      : block_(block),
        wanted_(wanted_stamp(block, input.old)),
        inputs_(input.packed),
        columns_(columns),
        sequences_(input.sequences),
        sequence_(sequence),
        some_(input.patched) {
    if (!some_) return;
    patches_ = matrix.patches;
    at_ = matrix.first[first] + static_cast<std::uint32_t>(block.lane());
    last_ = matrix.first[end];
    load();
  }

  /// All lanes: what the patches of the rows before `end` that are left add to the lane's `kEach` rows from `row` on. Waits for
  /// the inputs of those that it reads.
  FLYWHEEL_TASK LaneSums<kEach> take(int row, int end) {
    LaneSums<kEach> sums{};
    if (!some_) return sums;
    for (;; ++used_) {
      if (used_ == kLanes) take_batch();
      const int of = block_.shuffle(row_, used_);
      if (of >= end) return sums;
      float product = 0;
      // Not unrolled: no register holds `products_` across the store part's loop.
      FLYWHEEL_ROLLED
      for (int s = 0; s < sequences_; ++s) {
        const float of_sequence = block_.shuffle(products_[s], used_);
        product = s == sequence_ ? of_sequence : product;
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        if (of == row + i) sums.of[i] += product;
    }
  }

 private:
  static constexpr std::int32_t kNoRow = std::numeric_limits<std::int32_t>::max();
  static constexpr int kSequences = kEach == 1 ? 2 : kMostSequences;  // at most, see rows_of_lane()

  FLYWHEEL_TASK void load() {
    next_.row = kNoRow;
    if (at_ < last_) next_ = patches_[at_];
  }
  /// What was read ahead comes next; behind the last patch, none.
  FLYWHEEL_TASK void take_batch() {
    const Patch now = next_;
    at_ += kLanes;
    load();
    Stamped words[kSequences] = {};
    block_.spin([&] {
      std::uint32_t wrong = 0;
#pragma unroll
      for (int s = 0; s < kSequences; ++s)
        if (s < sequences_ && now.row != kNoRow) words[s] = look_at(inputs_[(s * columns_ + now.column) >> 1]);
#pragma unroll
      for (int s = 0; s < kSequences; ++s)
        if (s < sequences_ && now.row != kNoRow) wrong |= wanted_.wrong(words[s]);
      return wrong == 0;
    });
#pragma unroll
    for (int s = 0; s < kSequences; ++s)
      products_[s] = now.rest * activation_of(words[s].bits() >> (now.column % 2 * 16) & 0xffffu);
    row_ = now.row;
    used_ = 0;
  }

  const Block& block_;
  const WantedStamp wanted_;
  const Stamped* const inputs_;
  const int columns_, sequences_, sequence_;
  const bool some_;
  const Patch* patches_ = nullptr;
  std::uint32_t at_ = 0, last_ = 0;  // of the lane's next one, and where they end
  int used_ = kLanes;                // of the batch
  Patch next_{};
  std::int32_t row_ = kNoRow;        // of the lane's patch in the batch
  float products_[kSequences] = {};  // of that and its inputs
};

}  // namespace llama
