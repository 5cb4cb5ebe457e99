// The tuned tasks that read weights. Each has its portable body beside its store part: the body reads the matrix where it
// was loaded, the compute part reads it from the operand stream.
//
// Vectors of several sequences lie one after the other.
#pragma once

#include <functional>

#include "apps/llama/decode/row_products.cuh"
#include "apps/llama/tuned/norm.cuh"
#include "apps/llama/tuned/patches.cuh"

namespace llama {

/// Tasks whose tiles are groups of rows of one matrix.
struct RowsTask : TiledTask {
  const StreamedMatrix* matrix;
  std::int32_t rows;   // of the matrix
  std::int32_t first;  // the task's first group

  FLYWHEEL_TASK int first_row() const { return first * kGroupRows; }
  FLYWHEEL_TASK int row_count() const {
    const int left = rows - first_row(), all = groups * kGroupRows;
    return left < all ? left : all;
  }
  FLYWHEEL_TASK const Bf16* row(int i) const {
    const auto at = static_cast<std::size_t>(first_row() + i) * static_cast<std::size_t>(columns);
    return i < row_count() ? matrix->weights + at : nullptr;
  }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    pack_tiles(block, shape(), to, [this](int i) { return row(i); });
  }
  /// For the warp of the store part, before it waits for anything.
  template <int kEach, class Block>
  FLYWHEEL_TASK PatchReader<kEach, Block> read_patches(const Block& block) const {
    return {block,
            *matrix,
            input,
            columns,
            lane_rows<kEach>(block, input.sequences).sequence,
            first_row(),
            first_row() + row_count()};
  }
};

/// The store part: use(first row, sequence, sums, before, is_last) for the lane's rows of each handoff, by all lanes of the
/// warp together; the row is row_count() if the lane has none. `before` is what before(first row, sequence) gave: that is asked
/// for ahead, while the sums are still being made; ready(before) waits for it. `patches`: those of the task's rows.
///
/// A tenth of all warps' time goes by without instructions: a layer runs 80 KB of them, and an SM's cache holds less. To run
/// the loop once in advance, so that it is in the cache, gains nothing: see tuning.md.
template <int kEach, class Block, class Before, class Ready, class Use>
FLYWHEEL_TASK void store_rows(Block& block, const RowsTask& task, PatchReader<kEach, Block>& patches, Before&& before,
                              Ready&& ready, Use&& use) {
  const int rows = task.row_count(), sequences = task.input.sequences;
  const int step = kEach == 1 ? rows_of_few(sequences) : rows_of_handoff(sequences);
  const LaneRows<kEach> mine = lane_rows<kEach>(block, sequences);
  for (int first = 0; first < rows; first += step) {
    const int row = mine.some && first + mine.row < rows ? first + mine.row : rows;
    auto old = before(row, mine.sequence);
    const int end = first + step < rows ? first + step : rows;
    const LaneSums<kEach> rests = patches.take(task.first_row() + row, task.first_row() + end);
    ready(old);
    const WarpSums* in = block.template consumer_wait<WarpSums>();
    if (!in) return;
    LaneSums<kEach> sums = sums_of<kEach>(in, WarpSums::at(mine.sequence, mine.row, step));
    sums.add(rests);
    use(row, mine.sequence, sums, old, first + step >= rows);
    block.consumer_release();
  }
}

/// For stores with nothing to wait for.
struct ReadyAtOnce {
  template <class T>
  FLYWHEEL_TASK void operator()(T&) const {}
};

/// Portable: use(row of the matrix, sequence, dot product with input(sequence)).
template <class Block, class Input, class Use>
FLYWHEEL_TASK void portable_rows(Block& block, const RowsTask& task, Input&& input, Use&& use) {
  for (int sequence = 0; sequence < task.input.sequences; ++sequence) {
    const float* in = input(sequence);
    const Matrix matrix{task.matrix->weights, task.columns, 1};
    multiply_rows(block, matrix, in, task.first_row(), task.first_row() + task.row_count(),
                  [&](int row, float dot) { use(row, sequence, dot); });
    block.sync();
  }
}

template <class Block, class Use>
FLYWHEEL_TASK void portable_rows_of_norm(Block& block, const RowsTask& task, const NormInput& norm, Use&& use) {
  float* scratch = block.template scratch<float>(task.columns);
  if (!scratch) return;
  const auto input = [&](int sequence) {
    norm.portable(block, scratch, sequence, task.columns);
    return scratch;
  };
  portable_rows(block, task, input, use);
}

/// y = weights * norm(x), for queries, keys and values. The matrix has a multiple of 4 rows.
struct TunedProject : RowsTask {
  NormInput norm;
  Stamped* y;  // [sequences][rows]

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows_of_norm(block, *this, norm,
                          [&](int row, int s, float dot) { put_stamped(y[s * rows + row], dot, block.stamp()); });
  }

  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
    with_rows_of_lane(input.sequences, [&](auto each) { store_each<each()>(block); });
  }

 private:
  template <int kEach, class Block>
  FLYWHEEL_TASK void store_each(Block& block) const {
    PatchReader<kEach, Block> patches = read_patches<kEach>(block);
    const float scale = norm.scale_of<kEach>(block, input, columns, lane_rows<kEach>(block, input.sequences).sequence);
    const std::uint32_t stamp = block.stamp();
    const auto before = [&](int row, int s) { return row < row_count() ? y + (s * rows + first_row() + row) : nullptr; };
    const auto put = [&](int, int, const LaneSums<kEach>& sums, Stamped* to, bool is_last) {
      StampedRow<kEach> words;
#pragma unroll
      for (int i = 0; i < kEach; ++i) words.of[i] = stamped(sums.of[i] * scale, stamp);
      if (to) words.put(block, to);
      if (is_last) block.sent();
    };
    store_rows<kEach>(block, *this, patches, before, ReadyAtOnce{}, put);
  }
};

/// y = weights * norm(x) + bias. A type of its own, so that models without biases have none to look for.
struct TunedProjectBiased : TunedProject {
  const float* bias;  // [rows]

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows_of_norm(block, *this, norm,
                          [&](int row, int s, float dot) { put_stamped(y[s * rows + row], dot + bias[row], block.stamp()); });
  }

  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
    with_rows_of_lane(input.sequences, [&](auto each) { store_each<each()>(block); });
  }

 private:
  template <int kEach>
  struct Place {
    Stamped* at;  // null if the lane has none
    LaneSums<kEach> bias;
  };

  template <int kEach, class Block>
  FLYWHEEL_TASK void store_each(Block& block) const {
    PatchReader<kEach, Block> patches = read_patches<kEach>(block);
    const float scale = norm.scale_of<kEach>(block, input, columns, lane_rows<kEach>(block, input.sequences).sequence);
    const std::uint32_t stamp = block.stamp();
    const auto before = [&](int row, int s) {
      if (row >= row_count()) return Place<kEach>{};
      const int at = first_row() + row;
      return Place<kEach>{y + (s * rows + at), *reinterpret_cast<const LaneSums<kEach>*>(bias + at)};
    };
    const auto put = [&](int, int, const LaneSums<kEach>& sums, const Place<kEach>& to, bool is_last) {
      StampedRow<kEach> words;
#pragma unroll
      for (int i = 0; i < kEach; ++i) words.of[i] = stamped(sums.of[i] * scale + to.bias.of[i], stamp);
      if (to.at) words.put(block, to.at);
      if (is_last) block.sent();
    };
    store_rows<kEach>(block, *this, patches, before, ReadyAtOnce{}, put);
  }
};
static_assert(sizeof(TunedProjectBiased) <= kTaskArgBytes);

/// x += weights * input: back into the residual stream. The matrix has a multiple of 4 rows.
struct TunedResidual : RowsTask {
  const float* portable_input;  // [sequences][columns]
  const Stamped* x;             // [sequences][rows]
  ResidualOutput out;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows(
        block, *this, [&](int sequence) { return portable_input + sequence * columns; },
        [&](int row, int s, float dot) {
          put_stamped(out.x[s * rows + row], look_at(x[s * rows + row]).value() + dot, block.stamp());
        });
  }

  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
    with_rows_of_lane(input.sequences, [&](auto each) { store_each<each()>(block); });
  }

 private:
  template <int kEach>
  struct Before {
    const Stamped* at;  // null if the lane has none
    StampedRow<kEach> x;
    LaneSums<kEach> norm;
  };

  template <int kEach, class Block>
  FLYWHEEL_TASK void store_each(Block& block) const {
    PatchReader<kEach, Block> patches = read_patches<kEach>(block);
    const int sequences = input.sequences;
    const WantedStamp wanted = wanted_stamp(block, input.old_x);
    const PackedOutput packed{out.packed, sequences, rows, block.stamp()};
    const auto before = [&](int row, int s) {
      Before<kEach> old{};
      if (row >= row_count()) return old;
      old.at = x + (s * rows + first_row() + row);
      old.x.look(block, old.at);
      old.norm = *reinterpret_cast<const LaneSums<kEach>*>(out.weights + first_row() + row);
      return old;
    };
    const auto ready = [&](Before<kEach>& old) {
      block.spin([&] {
        const bool there = !old.at || !wanted.wrong(old.x);
        if (!there) old.x.look(block, old.at);
        return there;
      });
    };
    const LaneRows<kEach> mine = lane_rows<kEach>(block, sequences);
    float squares = 0;
    const auto put = [&](int row, int s, const LaneSums<kEach>& sums, const Before<kEach>& old, bool is_last) {
      StampedRow<kEach> values;
      float normed[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const float value = old.x.of[i].value() + sums.of[i];
        values.of[i] = stamped(value, packed.stamp);
        normed[i] = value * old.norm.of[i];
        squares += old.at ? value * value : 0.f;
      }
      // Before the values, because the next stage waits for all tasks' squares (0.562 ms a token against 0.564 after them, see
      // tuning.md).
      if (is_last)
        mine.join(block, squares, std::plus<float>{},
                  [&](int of, float all) { put_stamped(out.squares[of], all, packed.stamp); });
      packed.put(block, s, first_row() + row, normed, old.at != nullptr);
      if (is_last) block.sent();  // what nobody needs at once may come later
      if (old.at) values.put(block, out.x + (s * rows + first_row() + row));
    };
    store_rows<kEach>(block, *this, patches, before, ready, put);
  }
};

}  // namespace llama
