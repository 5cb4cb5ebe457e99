// The tuned tasks that read weights. Each has its portable body beside its compute and store parts: the body reads the
// matrix where it was loaded, the parts read it from the operand stream.
//
// Vectors of several sequences lie one after the other.
#pragma once

#include "apps/llama/fast/multiply.cuh"
#include "apps/llama/fast/partials.cuh"

namespace flywheel::llama {

/// Groups of rows of one matrix.
struct FastTile {
  const Bf16* weights;
  std::int32_t rows, columns;  // of the matrix
  std::int32_t first, groups;  // the task's groups of 8 rows

  FLYWHEEL_TASK TileShape shape() const { return {columns, groups}; }
  FLYWHEEL_TASK int first_row() const { return first * kGroupRows; }
  FLYWHEEL_TASK int row_count() const {
    const int left = rows - first_row(), all = groups * kGroupRows;
    return left < all ? left : all;
  }
  FLYWHEEL_TASK const Bf16* row(int i) const {
    return i < row_count() ? weights + static_cast<std::size_t>(first_row() + i) * static_cast<std::size_t>(columns) : nullptr;
  }
};

/// A task whose operands are one tile.
struct TiledTask {
  FastTile tile;

  std::uint32_t operand_bytes() const { return tile.shape().bytes(); }
  double cost_ns() const { return operand_bytes() / 30.; }  // an SM's share of the bandwidth, bytes/ns
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    pack_tiles(block, tile.shape(), to, [this](int i) { return tile.row(i); });
  }
};

FLYWHEEL_TASK inline Four load_four(const float* from) { return *reinterpret_cast<const Four*>(from); }

/// A vector for each sequence, times RMSNorm's weights if there are any: what the tiles are multiplied with. The norm's
/// other factor comes when the sums are stored, so that nobody waits for it.
struct VectorInput {
  const float* x;  // [sequences][columns]
  const float* weights;
  std::int32_t columns;

  FLYWHEEL_TASK void load(int sequence, int column, int count, Four (&fours)[kFoursOfLane], float& square) const {
    const float* from = x + static_cast<std::size_t>(sequence) * static_cast<std::size_t>(columns) + column;
    Four norms[kFoursOfLane] = {};
#pragma unroll
    for (int i = 0; i < kFoursOfLane; ++i) {
      if (i < count) fours[i] = load_four(from + i * kLaneStride);
      if (i < count && weights) norms[i] = load_four(weights + column + i * kLaneStride);
    }
    if (!weights) return;
#pragma unroll
    for (int i = 0; i < kFoursOfLane; ++i) {
      for (int j = 0; j < 4; ++j) {
        square += fours[i].values[j] * fours[i].values[j];
        fours[i].values[j] *= norms[i].values[j];
      }
    }
  }
};

/// What RMSNorm needs, and the residual stream it reads: [sequences][columns].
struct FastNorm {
  const float* x;
  const float* weights;
  float eps;

  FLYWHEEL_TASK VectorInput input(int columns) const { return {x, weights, columns}; }
  FLYWHEEL_TASK float scale(float squares, int columns) const {
    return inverse_sqrt(squares / static_cast<float>(columns) + eps);
  }

  /// Portable: the normalised vector of one sequence.
  template <class Block>
  FLYWHEEL_TASK float* apply(Block& block, float* to, int sequence, int columns) const {
    const float* from = x + static_cast<std::size_t>(sequence) * static_cast<std::size_t>(columns);
    const float by = rms_scale(block, from, columns, eps);
    block.for_each(columns, [&](int i) { to[i] = from[i] * by * weights[i]; });
    block.sync();
    return to;
  }
};

/// Portable: use(row of the task, sequence, dot product) with the inputs that `prepare(sequence)` gives.
template <class Block, class Prepare, class Use>
FLYWHEEL_TASK void portable_rows(Block& block, const FastTile& tile, int sequences, Prepare&& prepare, Use&& use) {
  for (int sequence = 0; sequence < sequences; ++sequence) {
    const float* in = prepare(sequence);
    if (!in) return;
    const Matrix matrix{tile.weights, tile.columns, 1};
    multiply_rows(block, matrix, in, tile.first_row(), tile.first_row() + tile.row_count(),
                  [&](int row, float dot) { use(row, sequence, dot); });
    block.sync();
  }
}

/// y = weights * norm(x), for queries, keys and values.
struct FastProject : TiledTask {
  FastNorm norm;
  float* y;  // [sequences][rows]
  std::int32_t sequences;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    float* in = block.template scratch<float>(tile.columns);
    if (!in) return;
    portable_rows(block, tile, sequences, [&](int s) { return norm.apply(block, in, s, tile.columns); },
                  [&](int row, int s, float dot) { at(row, s) = dot; });
  }

  template <class Block, class Operands>
    requires Block::kOnGpu
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    multiply_tiles(block, operands, tile.shape(), sequences, norm.input(tile.columns));
  }
  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    store_rows(block, tile.row_count(), sequences, NothingBefore{}, [this](const WarpSums* in, int first, int i, float) {
      const int s = i % sequences;
      at(tile.first_row() + first + i / sequences, s) = sum_of(in, i) * norm.scale(squares_of(in, s), tile.columns);
    });
  }

 private:
  FLYWHEEL_TASK float& at(int row, int sequence) const { return y[sequence * tile.rows + row]; }
};

/// The store part of what goes back into the residual stream.
template <class Block>
FLYWHEEL_TASK void store_residual(Block& block, const FastTile& tile, int sequences, float* x) {
  const auto at = [&](int first, int i) -> float& {
    return x[i % sequences * tile.rows + tile.first_row() + first + i / sequences];
  };
  store_rows(block, tile.row_count(), sequences, at,
             [&](const WarpSums* in, int first, int i, float before) { at(first, i) = before + sum_of(in, i); });
}

/// x += weights * input: back into the residual stream.
struct FastResidual : TiledTask {
  const float* input;  // [sequences][columns]
  float* x;            // [sequences][rows]
  std::int32_t sequences;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows(block, tile, sequences, [&](int s) { return input + s * tile.columns; },
                  [&](int row, int s, float dot) { x[s * tile.rows + row] += dot; });
  }

  template <class Block, class Operands>
    requires Block::kOnGpu
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    multiply_tiles(block, operands, tile.shape(), sequences, VectorInput{input, nullptr, tile.columns});
  }
  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    store_residual(block, tile, sequences, x);
  }
};

/// Attention's result as what the tiles are multiplied with.
struct AttendedInput {
  Partials partials;
  const StepState* states;
  std::uint32_t first_position;  // of the first sequence: each look at the states is a trip to L2

  FLYWHEEL_TASK void load(int sequence, int column, int count, Four (&fours)[kFoursOfLane], float&) const {
    partials.combine(sequence, column, count, sequence ? states[sequence].position : first_position, fours);
  }
};

/// x += weights * attention: the parts of the context are put together as they are loaded.
struct FastAttended : TiledTask {
  Partials partials;
  const StepState* states;  // of the sequences
  float* x;                 // [sequences][rows]
  std::int32_t sequences;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    float* in = block.template scratch<float>(tile.columns);
    if (!in) return;
    const auto whole = [&](int s) {
      block.for_each(tile.columns / 4, [&](int i) {
        Four fours[kFoursOfLane] = {};
        partials.combine(s, i * 4, 1, states[s].position, fours);
        *reinterpret_cast<Four*>(in + i * 4) = fours[0];
      });
      block.sync();
      return in;
    };
    portable_rows(block, tile, sequences, whole, [&](int row, int s, float dot) { x[s * tile.rows + row] += dot; });
  }

  template <class Block, class Operands>
    requires Block::kOnGpu
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    multiply_tiles(block, operands, tile.shape(), sequences, AttendedInput{partials, states, states[0].position});
  }
  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    store_residual(block, tile, sequences, x);
  }
};

}  // namespace flywheel::llama
