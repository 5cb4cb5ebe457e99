// The tuned first half of the MLP.
#pragma once

#include "apps/llama/fast/project.cuh"

namespace flywheel::llama {

/// y = silu(gate * norm(x)) times up * norm(x). The unit is 8 rows of each matrix, so that one store has both.
struct FastGateUp : TiledTask {
  const Bf16* gate;
  const Bf16* up;
  NormInput norm;
  float* y;                   // portable: [sequences][rows]
  Stamped* packed_y;
  std::int32_t rows;   // of either matrix
  std::int32_t first;  // the task's first unit; it has groups / 2 of them

  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    pack_tiles(block, shape(), to, [this](int i) {
      const int row = (first + i / (2 * kGroupRows)) * kGroupRows + i % kGroupRows;
      const Bf16* matrix = i / kGroupRows % 2 ? up : gate;
      return row < rows ? matrix + static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) : nullptr;
    });
  }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    float* scratch = block.template scratch<float>(columns);
    if (!scratch) return;
    const Matrix of_gate{gate, columns, 1}, of_up{up, columns, 1};
    for (int s = 0; s < input.sequences; ++s) {
      norm.portable(block, scratch, s, columns);
      multiply_row_pairs(block, of_gate, of_up, scratch, first_row(), last_row(),
                         [&](int row, float g, float u) { y[s * rows + row] = silu(g) * u; });
      block.sync();
    }
  }

  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    const int sequences = input.sequences, step = rows_of_handoff(sequences) / 2;  // gate rows of a handoff
    const float scale = norm.scale_of_lane(block, input, columns);
    const PackedOutput packed{packed_y, sequences, rows, block.stamp()};
    for (int done = first_row(); done < last_row(); done += step) {
      const WarpSums* in = block.template take<WarpSums>();
      if (!in) return;
      const int count = (last_row() - done < step ? last_row() - done : step) * sequences;
      for (int j = 0; j < count; j += kLanes) {
        const int i = block.lane() + j, row = row_of_sum(i, sequences), s = sequence_of_sum(i, sequences);
        const int at = (row / kGroupRows * 2 * kGroupRows + row % kGroupRows) * sequences + s;
        const float value = swish(sum_of(in, at) * scale) * (sum_of(in, at + kGroupRows * sequences) * scale);
        packed.put(block, i < count ? packed.place(s, done + row) : nullptr, value, sequences);
      }
      block.give_back();
    }
    block.sent();
  }

 private:
  FLYWHEEL_TASK static float swish(float x) { return x * reciprocal(1.f + std::exp2(-1.44269504f * x)); }
  FLYWHEEL_TASK int first_row() const { return first * kGroupRows; }
  FLYWHEEL_TASK int last_row() const {
    const int last = (first + groups / 2) * kGroupRows;
    return last < rows ? last : rows;
  }
};

}  // namespace flywheel::llama
