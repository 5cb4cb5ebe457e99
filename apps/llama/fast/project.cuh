// The tuned tasks that read weights. Each has its portable body beside its store part: the body reads the matrix where it
// was loaded, the compute part reads it from the operand stream.
//
// Vectors of several sequences lie one after the other.
#pragma once

#include "apps/llama/fast/norm.cuh"

namespace flywheel::llama {

/// Tasks whose tiles are groups of rows of one matrix.
struct RowsTask : TiledTask {
  const Bf16* weights;
  std::int32_t rows;   // of the matrix
  std::int32_t first;  // the task's first group

  FLYWHEEL_TASK int first_row() const { return first * kGroupRows; }
  FLYWHEEL_TASK int row_count() const {
    const int left = rows - first_row(), all = groups * kGroupRows;
    return left < all ? left : all;
  }
  FLYWHEEL_TASK const Bf16* row(int i) const {
    const auto at = static_cast<std::size_t>(first_row() + i) * static_cast<std::size_t>(columns);
    return i < row_count() ? weights + at : nullptr;
  }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    pack_tiles(block, shape(), to, [this](int i) { return row(i); });
  }
};

/// Portable: use(row of the matrix, sequence, dot product).
template <class Block, class Use>
FLYWHEEL_TASK void portable_rows(Block& block, const RowsTask& task, const NormInput& input, Use&& use) {
  float* scratch = input.weights ? block.template scratch<float>(task.columns) : nullptr;
  if (input.weights && !scratch) return;
  for (int sequence = 0; sequence < task.sequences; ++sequence) {
    const float* in = input.portable(block, scratch, sequence, task.columns);
    const Matrix matrix{task.weights, task.columns, 1};
    multiply_rows(block, matrix, in, task.first_row(), task.first_row() + task.row_count(),
                  [&](int row, float dot) { use(row, sequence, dot); });
    block.sync();
  }
}

/// y = weights * norm(x), for queries, keys and values.
struct FastProject : RowsTask {
  NormInput norm;
  float* y;  // [sequences][rows]

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows(block, *this, norm, [&](int row, int s, float dot) { at(row, s) = dot; });
  }

  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    const float scale = norm.scale_of_lane(block, sequences, columns);
    store_rows(block, row_count(), sequences, NothingBefore{}, [&](const WarpSums* in, int first, int i, NothingBefore::None) {
      at(first_row() + first + row_of_sum(i, sequences), sequence_of_sum(i, sequences)) = sum_of(in, i) * scale;
    });
  }

 private:
  FLYWHEEL_TASK float& at(int row, int sequence) const { return y[sequence * rows + row]; }
};

/// x += weights * input: back into the residual stream.
struct FastResidual : RowsTask {
  const float* input;  // portable: [sequences][columns]
  float* x;            // [sequences][rows]
  NormOutput next;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows(block, *this, {input, nullptr, nullptr, 0, 0}, [&](int row, int s, float dot) { x[s * rows + row] += dot; });
  }

  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    const auto row_of = [this](int first, int i) { return first_row() + first + row_of_sum(i, sequences); };
    const auto at = [&](int first, int i) -> float& { return x[sequence_of_sum(i, sequences) * rows + row_of(first, i)]; };
    struct Before {
      float x, norm;
    };
    const auto before = [&](int first, int i) { return Before{at(first, i), next.weights[row_of(first, i)]}; };
    float square = 0;
    store_rows(block, row_count(), sequences, before, [&](const WarpSums* in, int first, int i, const Before& old) {
      const float value = old.x + sum_of(in, i);
      at(first, i) = value;
      llama::pack(next.packed, sequences, rows, sequence_of_sum(i, sequences), row_of(first, i), value * old.norm);
      square += value * value;
    });
    for (int apart = kLanes / 2; apart >= sequences; apart /= 2) square += block.shuffle_xor(square, apart);
    if (block.lane() < sequences) next.squares[block.lane()] = square;
  }
};

}  // namespace flywheel::llama
