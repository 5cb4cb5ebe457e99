// Products with more than 8 sequences, 16 at most, for columns of whole pages: see multiply.cuh for fewer.
//
// A page is one group's tiles of a chunk of 2048 columns, and registers have the inputs of a chunk, of all sequences: half of
// what a lane may have. So tiles are taken from shared memory a quad at a time, and of the groups whose sums wait for the next
// chunk only what the lane hands over in the end is kept.
#pragma once

#include "apps/llama/tuned/multiply.cuh"

namespace llama {

/// One warp's part of a task's products.
template <class Block, class Operands>
class ManyMultiplier {
  static constexpr int kHalves = 2;                                // of the sequences
  static constexpr int kBlocks = columns_of_b(kFewSequences) / 8;  // of 8 columns of B, of each half
  static_assert(kHalves * kFewSequences == kMostSequences);
  static_assert(kChunkSteps == kStepsOfPage);

 public:
  FLYWHEEL_TASK ManyMultiplier(Block& block, Operands& operands, const TileShape& tile, const TiledInput& input)
      : block_(block),
        groups_(tile.groups),
        chunks_(tile.chunks().count),
        readers_{{block, tile, input.packed, input.old},
                 {block, tile, input.packed + packed_size(kFewSequences, tile.columns), input.old}},
        tiles_(block, operands, tile),
        out_(block, tile.sequences) {}

  FLYWHEEL_TASK void operator()() {
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      get_inputs(chunk);
      const bool is_last = chunk + 1 == chunks_;
      for (int group = 0; group < groups_; ++group) {
        Values values = multiply_page();
        if (chunks_ > 1) add_kept(group, values);
        if (is_last) out_.template put<kHalves * kBlocks>(group, [&](int b) { return values.of[b]; });
      }
    }
    out_.end();
  }

 private:
  /// What the lane hands over of a group: a row's sums, of a sequence of each block.
  struct Values {
    float of[kHalves * kBlocks];
  };

  /// They are not looked for where they do not come from yet: see Multiplier::await_first(). Half of them are on their way at
  /// once: words take twice the registers of what is in them.
  FLYWHEEL_TASK void get_inputs(int chunk) {
    if (chunk == 0) block_.spin([&] { return readers_[0].first_is_there(); });
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
      block_.spin([&] {
        LaneWords<kBlocks, kChunkSteps> words{};
        readers_[half].load(chunk, 0, words, 0);
        return readers_[half].take(words, 0, inputs_[half], 0);
      });
  }

  FLYWHEEL_TASK Values multiply_page() {
    ProductSums<kBlocks> sums[kHalves];
    tiles_.take_quads(kQuadsOfPage);
#pragma unroll
    for (int q = 0; q < kQuadsOfPage; ++q) {
      LaneQuad quad;
      TilePart tiles[kQuad];
      tiles_.fetch_quad(quad, q);
      if (q + 1 == kQuadsOfPage) tiles_.drop_page();
      quad.unpack(tiles);
#pragma unroll
      for (int t = 0; t < kQuad; ++t)
#pragma unroll
        for (int half = 0; half < kHalves; ++half)
#pragma unroll
          for (int b = 0; b < kBlocks; ++b)
            block_.multiply_add_half(sums[half].part[b], tiles[t].registers, inputs_[half].b[q * kQuad + t][b].pairs);
    }
    Values values;
#pragma unroll
    for (int i = 0; i < kHalves * kBlocks; ++i) values.of[i] = sums[i / kBlocks].of_lane(i % kBlocks);
    return values;
  }

  /// The group's sums of all chunks until now, which are kept: in registers, so each is named by a constant.
  FLYWHEEL_TASK void add_kept(int group, Values& values) {
#pragma unroll
    for (int g = 0; g < kStreamedGroupsOfMany; ++g)
      if (g == group)
#pragma unroll
        for (int i = 0; i < kHalves * kBlocks; ++i) values.of[i] = kept_[g].of[i] += values.of[i];
  }

  Block& block_;
  int groups_, chunks_;
  InputReader<kBlocks, Block> readers_[kHalves];
  LaneInputs<kBlocks, kChunkSteps> inputs_[kHalves] = {};  // what ptxas 13.0 thinks may be undefined, it keeps in memory
  Values kept_[kStreamedGroupsOfMany] = {};
  TileReader<Block, Operands> tiles_;
  SumsWriter<Block, true> out_;
};

}  // namespace llama
