// Products of a task's rows with the activations, for columns of any number: see multiply.cuh for those of whole pages.
//
// The steps of a task lie one after the other, so a page may begin and end within a group of rows. Which inputs a step needs
// is known when it is there: they lie in shared memory, a chunk at a time, and each warp has those of its own columns.
//
// A sum is put together from those of 8 steps (the last of a group: of 4 to 11) in the order of columns, whatever chunks there
// are: so a text's bits do not depend on how many others are written with it. No quad has the ends of two such sums.
#pragma once

#include "apps/llama/tuned/multiply.cuh"

namespace llama {

/// One warp's inputs of a chunk: [steps][sequences] of kStepColumns halves, in scratch memory.
struct ChunkInputs {
  static constexpr int kRowBytes = kStepColumns * 2;  // of a step, of one sequence
  static constexpr int kLanesOfRow = kStepColumns / 4;

  FLYWHEEL_TASK static constexpr int bytes(int columns, int sequences) {
    const Chunks chunks = chunks_of(columns, sequences);
    const int steps = chunks.count > 1 ? chunks.steps + kQuad - 1 : steps_of(columns);
    return steps * sequences * kRowBytes;
  }
};
/// Scratch memory of a warp for products of so many columns: none if they are whole pages.
FLYWHEEL_TASK constexpr int product_scratch(int columns, int sequences) {
  return is_whole(columns) ? 0 : ChunkInputs::bytes(columns, sequences);
}

/// One warp's part of a task's products. `kBlocks`: blocks of 8 columns of B.
template <int kBlocks, class Block, class Operands>
class AnyMultiplier {
  static constexpr int kChains = 2;                            // so that a step need not wait for the one before it
  static constexpr int kSumSteps = 8;                          // whose products are one sum, before it is added to others
  static constexpr int kLoadsAtOnce = kBlocks == 1 ? 10 : 12;  // of inputs, 16 bytes each
  static constexpr int kLanesOfRow = ChunkInputs::kLanesOfRow, kRowsOfLoad = kLanes / kLanesOfRow;

 public:
  FLYWHEEL_TASK AnyMultiplier(Block& block, Operands& operands, const TileShape& tile, const TiledInput& input)
      : block_(block),
        tile_(tile),
        chunks_(tile.chunks()),
        wanted_(wanted_stamp(block, input.old)),
        packed_(input.packed),
        scratch_of_warp_(input.scratch_of_warp),
        row_shift_(flywheel::detail::lowest_bit(static_cast<std::uint64_t>(tile.sequences))),
        reader_(block, operands, tile),
        out_(block, tile.sequences) {}

  FLYWHEEL_TASK void operator()() {
    if (!find_scratch()) return;
    for (int chunk = 0; chunk < chunks_.count; ++chunk) {
      begin_chunk(chunk);
      multiply_chunk();
    }
    out_.end();
  }

 private:
  using Sums = ProductSums<kBlocks>;

  /// This warp's place for inputs, the same in all tasks: it may begin the next one while others are still in this one. And
  /// the lane's in each step of them: column lane / 4 of a block is (sequence, half of the step), lane % 4 says which four of
  /// the half's 16 values. Lanes of columns that no sequence has read what others do: their sums are not used.
  FLYWHEEL_TASK bool find_scratch() {
    auto* const all = block_.template scratch<unsigned char>(kTileWarps * scratch_of_warp_);
    if (!all) return false;
    inputs_ = Block::in_scratch(all) + block_.warp() * scratch_of_warp_;
    const int sequence = block_.lane() / 8, four = block_.lane() % 8;
    of_lane_ = inputs_ + (sequence < tile_.sequences ? sequence : 0) * ChunkInputs::kRowBytes +
               four * static_cast<int>(sizeof(FourWeights));
    return true;
  }

  FLYWHEEL_TASK void begin_chunk(int chunk) {
    is_last_ = chunk + 1 == chunks_.count;
    group_ = 0;
    steps_ = tile_.steps_in(chunk);
    begin_group();
    read_inputs(tile_.column(chunk, 0, block_.warp()), steps_);
  }
  FLYWHEEL_TASK void begin_group() {
    step_ = 0;
    begin_sum();
  }
  FLYWHEEL_TASK void begin_sum() { sum_at_ = steps_ - step_ < kSumSteps + kQuad ? steps_ : step_ + kSumSteps; }

  /// The lane's four values in row `row` of the `rows` of a chunk's inputs, of (step, sequence); zeros beyond them and
  /// beyond the matrix.
  FLYWHEEL_TASK StampedPair look(int column, int row, int rows) const {
    const int sequence = row & (tile_.sequences - 1);
    column += (row >> row_shift_) * kColumnsOfStep + block_.lane() % kLanesOfRow * 4;
    if (row < rows && column < tile_.columns)
      return Block::load_stamped_pair(packed_ + (static_cast<unsigned>(sequence * tile_.columns + column) >> 1));
    const Stamped zero{std::uint64_t{wanted_.stamp} << 32};
    return {zero, zero};
  }
  /// The inputs of `steps` steps from `column` on into shared memory; what is not there yet is looked for again (0.774 ms a
  /// token of Qwen3-0.6B against 0.785 with all of it, see tuning.md). Of two blocks, they are not looked for where they do not
  /// come from yet: see Multiplier::await_first().
  FLYWHEEL_TASK void read_inputs(int column, int steps) {
    const int rows = steps << row_shift_, mine = block_.lane() / kLanesOfRow;
    if (kBlocks > 1) block_.spin([&] { return wanted_.wrong(look(column, 0, rows)) == 0; });
    block_.sync_warp();  // all lanes have read what lies there
    for (int first = 0; first < rows; first += kLoadsAtOnce * kRowsOfLoad) {
      StampedPair pairs[kLoadsAtOnce];
      const auto look_again = [&](int i) { pairs[i] = look(column, first + i * kRowsOfLoad + mine, rows); };
#pragma unroll
      for (int i = 0; i < kLoadsAtOnce; ++i) look_again(i);
      block_.spin([&] {
        std::uint32_t wrong[kLoadsAtOnce], any = 0;
#pragma unroll
        for (int i = 0; i < kLoadsAtOnce; ++i) any |= wrong[i] = wanted_.wrong(pairs[i]);
        if (any == 0) return true;
#pragma unroll
        for (int i = 0; i < kLoadsAtOnce; ++i)
          if (wrong[i]) look_again(i);
        return false;
      });
#pragma unroll
      for (int i = 0; i < kLoadsAtOnce; ++i)
        if (const int row = first + i * kRowsOfLoad + mine; row < rows)
          reinterpret_cast<FourWeights*>(inputs_)[row * kLanesOfRow + block_.lane() % kLanesOfRow] = {
              {pairs[i].first.bits(), pairs[i].second.bits()}};
    }
    block_.sync_warp();  // all inputs are there for all lanes
  }

  /// The quads of a page in turn; in the place of each, the next page's is on its way to registers while the other is
  /// multiplied. Only the last chunk of a task may end within a page.
  FLYWHEEL_TASK void multiply_chunk() {
    LaneQuad quads[kQuadsOfPage] = {};  // what ptxas 13.0 thinks may be undefined, it keeps in memory
    int left = (tile_.groups * steps_ + kQuad - 1) / kQuad;
    reader_.take_quads(left);
#pragma unroll
    for (int q = 0; q < kQuadsOfPage; ++q)
      if (q < left) reader_.fetch_quad(quads[q], q);
    reader_.drop_page();
    for (; left > 0; left -= kQuadsOfPage) {
      const int next = left - kQuadsOfPage;
      multiply(quads[0]);
      if (next > 0) {
        reader_.take_quads(next);
        reader_.fetch_quad(quads[0], 0);
      }
      if (left > 1) multiply(quads[1]);
      if (next > 1) reader_.fetch_quad(quads[1], 1);
      if (next > 0) reader_.drop_page();
    }
  }
  /// All inputs of a quad are on their way before the first is used. Where a sum ends within the quad, its tiles are multiplied
  /// twice: with the inputs of either side, and zeros for the other's.
  FLYWHEEL_TASK void multiply(const LaneQuad& quad) {
    TilePart tiles[kQuad];
    Inputs inputs[kQuad];
#pragma unroll
    for (int t = 0; t < kQuad; ++t) read(inputs[t], step_ + t < steps_ ? step_ + t : step_ + t - steps_);
    quad.unpack(tiles);
    const int mine = sum_at_ - step_;
    if (mine > kQuad) {
      step_ += kQuad;
      return add(tiles, inputs, [](int) { return ~0u; });
    }
    add(tiles, inputs, [&](int t) { return t < mine ? ~0u : 0u; });
    step_ = sum_at_;
    const bool ended = end_sum();
    if (mine < kQuad) {
      add(tiles, inputs, [&](int t) { return t < mine ? 0u : ~0u; });
      step_ += kQuad - mine;
    }
    if (ended) end_group();
  }
  struct Inputs {
    FourWeights of[kBlocks];
  };
  FLYWHEEL_TASK void read(Inputs& inputs, int step) const {
    const auto* at = of_lane_ + (step << row_shift_) * ChunkInputs::kRowBytes;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) inputs.of[b] = *reinterpret_cast<const FourWeights*>(at + 4 * b * ChunkInputs::kRowBytes);
  }
  /// mask(tile): of its inputs.
  template <class Mask>
  FLYWHEEL_TASK void add(const TilePart (&tiles)[kQuad], const Inputs (&inputs)[kQuad], Mask&& mask) {
#pragma unroll
    for (int t = 0; t < kQuad; ++t)
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        const FourWeights& input = inputs[t].of[b];
        const std::uint32_t some[2] = {input.pairs[0] & mask(t), input.pairs[1] & mask(t)};
        block_.multiply_add_half(sums_[t % kChains].part[b], tiles[t].registers, some);
      }
  }
  /// True if the group ends with it; then the next one has begun.
  FLYWHEEL_TASK bool end_sum() {
    sums_[0].add(sums_[1]);
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) value_[b] += sums_[0].of_lane(b);
    sums_[0] = sums_[1] = {};
    const bool ends = step_ == steps_;
    if (ends) begin_group();
    else begin_sum();
    return ends;
  }
  /// The sums of a group whose columns are not all done wait in registers. No sum of the next group has ended yet: it has a
  /// quad of steps at least.
  FLYWHEEL_TASK void end_group() {
    if (is_last_) out_.template put<kBlocks>(group_, [&](int b) { return value_[b]; });
    else for_group(group_, [&](float(&kept)[kBlocks]) { copy(kept, value_); });
    ++group_;
    const float zero[kBlocks] = {};
    copy(value_, zero);
    if (chunks_.count > 1) for_group(group_ < tile_.groups ? group_ : 0, [&](float(&kept)[kBlocks]) { copy(value_, kept); });
  }
  template <class Use>
  FLYWHEEL_TASK void for_group(int group, Use&& use) {
#pragma unroll
    for (int i = 0; i < kStreamedGroups; ++i)
      if (i == group) use(kept_[i]);
  }
  FLYWHEEL_TASK static void copy(float (&to)[kBlocks], const float (&from)[kBlocks]) {
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) to[b] = from[b];
  }

  Block& block_;
  TileShape tile_;
  Chunks chunks_;
  WantedStamp wanted_;
  const Stamped* packed_;
  int scratch_of_warp_;  // bytes
  int row_shift_;        // log2 of the sequences
  unsigned char* inputs_ = nullptr;
  const unsigned char* of_lane_ = nullptr;
  Sums sums_[kChains] = {};
  float value_[kBlocks] = {};
  float kept_[kStreamedGroups][kBlocks] = {};
  bool is_last_ = false;                   // the chunk is the task's last one
  int group_ = 0;                          // that is being multiplied
  int step_ = 0, steps_ = 0, sum_at_ = 0;  // of the group, in the chunk: done, all, and where the next sum ends
  TileReader<Block, Operands> reader_;
  SumsWriter<Block, (kBlocks > 2)> out_;
};

}  // namespace llama
