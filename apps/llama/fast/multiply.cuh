// Products of a task's rows with the activations, by tensor cores; the sums go to the store part.
#pragma once

#include "apps/llama/fast/inputs.cuh"

namespace flywheel::llama {

/// What one warp hands over: squares of its columns of each sequence's input, then its sums of up to 128 (row, sequence)
/// pairs.
struct WarpSums {
  static constexpr int kMost = 128;
  float squares[kMostSequences];
  float sums[kMost];
};

/// Rows of a handoff: few enough to be stored while the next are computed.
FLYWHEEL_TASK constexpr int rows_of_handoff(int sequences) { return sequences <= 4 ? 32 : 16; }

/// One warp's reader of tiles. It works on a copy of the operands, which stays in registers.
template <class Block, class Operands>
class TileReader {
 public:
  FLYWHEEL_TASK TileReader(Block& block, Operands& operands, const TileShape& shape)
      : block_(block), operands_(operands), home_(operands), left_(shape.total_steps()) {}
  FLYWHEEL_TASK ~TileReader() { home_ = operands_; }
  TileReader(const TileReader&) = delete;
  TileReader& operator=(const TileReader&) = delete;

  /// The lane's part of the next `kCount` tiles, which lie in one page. False if the runtime was aborted.
  template <int kCount>
  FLYWHEEL_TASK bool next(TilePart (&parts)[kCount]) {
    if (at_ == in_page_ && !turn_page()) return false;
    const auto* from = reinterpret_cast<const TilePart*>(page_) + (block_.warp() * in_page_ + at_) * kLanes + block_.lane();
    for (int i = 0; i < kCount; ++i) parts[i] = from[i * kLanes];
    at_ += kCount;
    left_ -= kCount;
    if (at_ == in_page_) operands_.give_back();  // its tiles are in registers
    return true;
  }

 private:
  FLYWHEEL_TASK bool turn_page() {
    page_ = operands_.next();
    in_page_ = left_ < kStepsOfPage ? left_ : kStepsOfPage;
    at_ = 0;
    return page_ != nullptr;
  }

  Block& block_;
  Operands operands_;
  Operands& home_;
  const unsigned char* page_ = nullptr;
  int left_, in_page_ = 0, at_ = 0;
};

/// One warp's part of a task's products. `kBlocks`: column blocks of B, one for up to 8 columns.
template <int kBlocks, class Block, class Operands>
class Multiplier {
 public:
  FLYWHEEL_TASK Multiplier(Block& block, Operands& operands, const TileShape& tile, int sequences, unsigned char* memory)
      : block_(block), tile_(tile), shape_{sequences}, inputs_(block, shape_, memory), reader_(block, operands, tile) {}

  /// `input`: see WarpInputs::fill().
  template <class Input>
  FLYWHEEL_TASK void operator()(const Input& input) {
    if (is_streamed(tile_.columns)) stream(input);
    else resident(input);
  }

 private:
  struct Sums {
    float part[kBlocks][2][4] = {};  // of even and odd steps, so that one need not wait for the other
  };

  template <class Input>
  FLYWHEEL_TASK void resident(const Input& input) {
    const int chunks = chunks_of(tile_.columns);
    for (int chunk = 0; chunk < chunks; ++chunk) inputs_.fill(tile_, chunk, input);
    block_.sync_warp();
    for (int group = 0; group < tile_.groups; ++group) {
      Sums sums;
      for (int chunk = 0; chunk < chunks; ++chunk)
        if (!add_chunk(sums, chunk)) return;
      if (!put(group, sums)) return;
    }
    finish();
  }

  template <class Input>
  FLYWHEEL_TASK void stream(const Input& input) {
    const int chunks = chunks_of(tile_.columns);
    Sums sums[kStreamedGroups];
    inputs_.fill(tile_, 0, input);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (chunk + 1 < chunks) inputs_.fill(tile_, chunk + 1, input);  // on its way while this one is used
      block_.sync_warp();
#pragma unroll
      for (int group = 0; group < kStreamedGroups; ++group)
        if (group < tile_.groups && !add_chunk(sums[group], chunk)) return;
      block_.sync_warp();  // the buffer is filled again
    }
#pragma unroll
    for (int group = 0; group < kStreamedGroups; ++group)
      if (group < tile_.groups && !put(group, sums[group])) return;
    finish();
  }

  FLYWHEEL_TASK bool add_chunk(Sums& sums, int chunk) {
    const int steps = tile_.steps_in(chunk);
    // Where every group ends with a page, four tiles are loaded at once.
    if (steps_of(tile_.columns) % kStepsOfPage == 0) {
      for (int step = 0; step < steps; step += kStepsOfPage)
        if (!add_steps<kStepsOfPage>(sums, chunk, step)) return false;
      return true;
    }
    for (int step = 0; step < steps; ++step)
      if (!add_steps<1>(sums, chunk, step)) return false;
    return true;
  }

  template <int kCount>
  FLYWHEEL_TASK bool add_steps(Sums& sums, int chunk, int step) {
    TilePart parts[kCount];
    if (!reader_.template next<kCount>(parts)) return false;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        std::uint32_t input[2];
        inputs_.take(chunk, step + i, b, input);
        block_.multiply_add(sums.part[b][i % 2], parts[i].registers, input);
      }
    }
    return true;
  }

  /// A group's sums into the place of the handoff.
  FLYWHEEL_TASK bool put(int group, const Sums& sums) {
    const int rows = rows_of_handoff(shape_.sequences), row = group * kGroupRows % rows;
    if (row == 0 && !open()) return false;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      // Upper rows with the first half's column, lower rows with the second's; the other two sums mix the halves.
      float sum = (sums.part[b][0][0] + sums.part[b][1][0]) + (sums.part[b][0][3] + sums.part[b][1][3]);
      int sequence = b * 4 + block_.lane() % 4;
      if (shape_.parts() == 2) {
        sum += block_.shuffle_xor(sum, 1);
        sequence = block_.lane() % 2 ? kMostSequences : sequence / 2;
      }
      if (sequence < shape_.sequences)
        out_->sums[(row + block_.lane() / 4) * shape_.sequences + sequence] = sum;
    }
    if (row + kGroupRows == rows) close();
    return true;
  }

  FLYWHEEL_TASK bool open() {
    WarpSums* all = block_.template hand<WarpSums>();
    if (!all) return false;
    out_ = all + block_.warp();
    if (block_.lane() < shape_.sequences) out_->squares[block_.lane()] = inputs_.squares(block_.lane());
    return true;
  }
  FLYWHEEL_TASK void close() {
    block_.pass_on();
    out_ = nullptr;
  }
  FLYWHEEL_TASK void finish() {
    if (out_) close();
  }

  Block& block_;
  TileShape tile_;
  InputShape shape_;
  WarpInputs<Block> inputs_;
  TileReader<Block, Operands> reader_;
  WarpSums* out_ = nullptr;
};

namespace detail {
/// Out of line: tasks share it, for the instruction cache's sake.
template <int kBlocks, class Block, class Operands, class Input>
FLYWHEEL_COLD void multiply(Block& block, Operands& operands, TileShape tile, int sequences, unsigned char* memory,
                            Input input) {
  Multiplier<kBlocks, Block, Operands>(block, operands, tile, sequences, block.in_shared(memory))(input);
}
}  // namespace detail

/// The compute part of a matrix-vector task. `input.load()`: see WarpInputs::fill().
template <class Block, class Operands, class Input>
FLYWHEEL_TASK void multiply_tiles(Block& block, Operands& operands, const TileShape& tile, int sequences,
                                  const Input& input) {
  unsigned char* memory = block.template scratch<unsigned char>(input_bytes(sequences));
  if (!memory) return;
  if (InputShape{sequences}.columns() <= 8) detail::multiply<1>(block, operands, tile, sequences, memory, input);
  else detail::multiply<2>(block, operands, tile, sequences, memory, input);
}

/// The store part: use(sums of all warps, first row of the handoff, index in its sums, before) for each row and sequence.
/// `before` is what before(first row, index) gave: that is asked for ahead, while the sums are still being made.
template <class Block, class Before, class Use>
FLYWHEEL_TASK void store_rows(Block& block, int rows, int sequences, Before&& before, Use&& use) {
  constexpr int kEach = WarpSums::kMost / kLanes;
  const int step = rows_of_handoff(sequences);
  for (int first = 0;; first += step) {
    const int count = (rows - first < step ? rows - first : step) * sequences;
    float old[kEach] = {};
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      if (block.lane() + j * kLanes < count) old[j] = before(first, block.lane() + j * kLanes);
    const WarpSums* in = block.template take<WarpSums>();
    if (!in) return;
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      if (block.lane() + j * kLanes < count) use(in, first, block.lane() + j * kLanes, old[j]);
    block.give_back();
  }
}

/// For results that replace what was there.
struct NothingBefore {
  FLYWHEEL_TASK float operator()(int, int) const { return 0; }
};

/// Sums over the warps, in a fixed order.
FLYWHEEL_TASK inline float sum_of(const WarpSums* in, int i) {
  float sum = 0;
  for (int warp = 0; warp < kTileWarps; ++warp) sum += in[warp].sums[i];
  return sum;
}
FLYWHEEL_TASK inline float squares_of(const WarpSums* in, int sequence) {
  float sum = 0;
  for (int warp = 0; warp < kTileWarps; ++warp) sum += in[warp].squares[sequence];
  return sum;
}

}  // namespace flywheel::llama
