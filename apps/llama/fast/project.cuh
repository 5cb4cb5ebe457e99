// The tuned tasks that read weights. Each has its portable body beside its store part: the body reads the matrix where it
// was loaded, the compute part reads it from the operand stream.
//
// Vectors of several sequences lie one after the other.
#pragma once

#include "apps/llama/fast/multiply.cuh"

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
    const auto at = static_cast<std::size_t>(first_row() + i) * static_cast<std::size_t>(input.columns);
    return i < row_count() ? weights + at : nullptr;
  }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    pack_tiles(block, shape(), to, [this](int i) { return row(i); });
  }
};

/// RMSNorm's factor for a row's sum, from the sum of squares of its input.
FLYWHEEL_TASK inline float norm_scale(float squares, int columns, float eps) {
  return inverse_sqrt(squares / static_cast<float>(columns) + eps);
}

/// Portable: the input of one sequence, normalised if it is to be. Null (and the task fails) if scratch is too small.
template <class Block>
FLYWHEEL_TASK const float* portable_input(Block& block, float* scratch, const VectorInput& input, int sequence, float eps) {
  const float* from = input.x + static_cast<std::size_t>(sequence) * static_cast<std::size_t>(input.columns);
  if (!input.weights) return from;
  const float by = rms_scale(block, from, input.columns, eps);
  block.for_each(input.columns, [&](int i) { scratch[i] = from[i] * by * input.weights[i]; });
  block.sync();
  return scratch;
}

/// Portable: use(row of the task, sequence, dot product).
template <class Block, class Use>
FLYWHEEL_TASK void portable_rows(Block& block, const RowsTask& task, float eps, Use&& use) {
  float* scratch = task.input.weights ? block.template scratch<float>(task.input.columns) : nullptr;
  if (task.input.weights && !scratch) return;
  for (int sequence = 0; sequence < task.sequences; ++sequence) {
    const float* in = portable_input(block, scratch, task.input, sequence, eps);
    const Matrix matrix{task.weights, task.input.columns, 1};
    multiply_rows(block, matrix, in, task.first_row(), task.first_row() + task.row_count(),
                  [&](int row, float dot) { use(row, sequence, dot); });
    block.sync();
  }
}

/// y = weights * norm(x), for queries, keys and values.
struct FastProject : RowsTask {
  float* y;  // [sequences][rows]
  float eps;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows(block, *this, eps, [&](int row, int s, float dot) { at(row, s) = dot; });
  }

  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    store_rows(block, row_count(), sequences, NothingBefore{}, [this](const WarpSums* in, int first, int i, float) {
      const int s = i % sequences;
      at(first_row() + first + i / sequences, s) = sum_of(in, i) * norm_scale(squares_of(in, s), input.columns, eps);
    });
  }

 private:
  FLYWHEEL_TASK float& at(int row, int sequence) const { return y[sequence * rows + row]; }
};

/// x += weights * input: back into the residual stream.
struct FastResidual : RowsTask {
  float* x;  // [sequences][rows]

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows(block, *this, 0, [&](int row, int s, float dot) { x[s * rows + row] += dot; });
  }

  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    const auto at = [this](int first, int i) -> float& {
      return x[i % sequences * rows + first_row() + first + i / sequences];
    };
    store_rows(block, row_count(), sequences, at,
               [&](const WarpSums* in, int first, int i, float before) { at(first, i) = before + sum_of(in, i); });
  }
};

}  // namespace flywheel::llama
