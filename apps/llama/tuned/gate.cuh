// The tuned first half of the MLP.
#pragma once

#include "apps/llama/tuned/project.cuh"

namespace llama {

/// y = silu(gate * norm(x)) times up * norm(x). The unit is 8 rows of each matrix, in runs of those of one and those of the
/// other, so that a handoff has both.
struct TunedGateUp : TiledTask {
  const StreamedMatrix* gate;
  const StreamedMatrix* up;
  NormInput norm;
  float* y;  // portable: [sequences][rows]
  Stamped* packed_y;
  std::int32_t rows;   // of either matrix
  std::int32_t first;  // the task's first unit; it has groups / 2 of them

  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    pack_tiles(block, shape(), to, [this](int i) {
      const int run = run_rows(), row = first_row() + i / (2 * run) * run + i % run;
      const Bf16* matrix = (i / run % 2 ? up : gate)->weights;
      return row < rows ? matrix + static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) : nullptr;
    });
  }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    float* scratch = block.template scratch<float>(columns);
    if (!scratch) return;
    const Matrix of_gate{gate->weights, columns, 1}, of_up{up->weights, columns, 1};
    for (int s = 0; s < input.sequences; ++s) {
      norm.portable(block, scratch, s, columns);
      multiply_row_pairs(block, of_gate, of_up, scratch, first_row(), last_row(),
                         [&](int row, float g, float u) { y[s * rows + row] = silu(g) * u; });
      block.sync();
    }
  }

  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
    with_rows_of_lane(input.sequences, [&](auto each) { store_each<each()>(block); });
  }

 private:
  template <int kEach, class Block>
  FLYWHEEL_TASK void store_each(Block& block) const {
    const int sequences = input.sequences, both = kEach == 1 ? rows_of_few(sequences) : rows_of_handoff(sequences);
    const int step = both / 2;  // gate rows of a handoff
    const int run = kEach == 1 ? kGroupRows : run_rows();
    const PackedOutput packed{packed_y, sequences, rows, block.stamp()};
    const LaneRows<kEach> mine(block.lane(), step, sequences);
    const int at = WarpSums::at(mine.sequence, mine.row & ~(run - 1), both) + mine.row;
    const auto patches_of = [&](const StreamedMatrix* matrix) {
      return PatchReader<kEach, Block>(block, *matrix, input, columns, mine.sequence, first_row(), last_row());
    };
    PatchReader<kEach, Block> of_gate = patches_of(gate), of_up = patches_of(up);
    const float scale = norm.scale_of<kEach>(block, input, columns, mine.sequence);
    for (int done = first_row(); done < last_row(); done += step) {
      const int row = mine.some ? done + mine.row : last_row();
      const int end = done + step < last_row() ? done + step : last_row();
      const LaneSums<kEach> gate_rests = of_gate.take(row, end), up_rests = of_up.take(row, end);
      const WarpSums* in = block.template consumer_wait<WarpSums>();
      if (!in) return;
      auto gates = sums_of<kEach>(in, at), ups = sums_of<kEach>(in, at + run);
      gates.add(gate_rests);
      ups.add(up_rests);
      float values[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) values[i] = swish(gates.of[i] * scale) * (ups.of[i] * scale);
      packed.put(block, mine.sequence, done + mine.row, values, mine.some && done + mine.row < last_row());
      block.consumer_release();
    }
    block.sent();
  }

  FLYWHEEL_TASK static float swish(float x) { return x * reciprocal(1.f + std::exp2(-1.44269504f * x)); }
  /// Rows of one matrix that lie together: a power of 2.
  FLYWHEEL_TASK int run_rows() const { return input.sequences <= kFewSequences ? kGroupRows : kGroupRows / 2; }
  FLYWHEEL_TASK int first_row() const { return first * kGroupRows; }
  FLYWHEEL_TASK int last_row() const {
    const int last = (first + groups / 2) * kGroupRows;
    return last < rows ? last : rows;
  }
};

}  // namespace llama
