// Products of a task's rows with the activations, by tensor cores, where the columns are whole pages for all warps; the sums
// go to the store part. Other shapes: multiply_any.cuh.
//
// What a warp has in registers decides how it goes over its groups of rows (detail::multiply() in tiled_task.cuh chooses):
//
//   columns         way          inputs                        tiles
//   2048, 1-4 texts ahead()      all of them, from the begin   two pages (whole groups) ahead, before the inputs are there
//   to 4096         resident()   all of them, from the begin   the next ones while these are multiplied
//   more            stream()     one chunk of 2048 columns     likewise; sums of all groups (4 at most) are kept meanwhile
//
// 8 texts go with resident() from the begin, 16 another way: see multiply_many.cuh.
#pragma once

#include "apps/llama/tuned/inputs.cuh"
#include "apps/llama/tuned/sums.cuh"
#include "apps/llama/tuned/tile_reader.cuh"

namespace llama {

/// What tiles are multiplied with.
struct TiledInput {
  const Stamped* packed;  // see PackedOutput
  std::int16_t sequences;
  bool old;                       // it was written before the pass, as the first layer's
  bool old_x;                     // of tasks that add to the residual stream: the same of what they add to
  bool patched;                   // weights of the task have patches
  std::uint16_t scratch_of_warp;  // bytes, the same in all tasks of a worker: see AnyMultiplier
};

/// One warp's part of a task's products. `kBlocks`: blocks of 8 columns of B.
template <int kBlocks, class Block, class Operands>
class Multiplier {
  static constexpr int kPages = kChunkSteps / kStepsOfPage;  // of a chunk
  using Tiles = PageOfTiles;
  static constexpr int kCount = kStepsOfPage;           // tiles at once
  static constexpr bool kAhead = kBlocks == 1;          // registers for the next chunk's words
  static constexpr int kAtOnce = kBlocks == 1 ? 2 : 1;  // chunks whose words are on their way at once
  static constexpr int kGroupsAhead = 2;
  static constexpr bool kPipelined = kBlocks == 1;  // registers for tiles while others are multiplied
  static constexpr int kChains = 2;                 // so that a step need not wait for the one before it

  template <int kSteps>
  using Words = LaneWords<kBlocks, kSteps>;
  template <int kSteps>
  using Inputs = LaneInputs<kBlocks, kSteps>;
  using Sums = ProductSums<kBlocks>;

 public:
  FLYWHEEL_TASK Multiplier(Block& block, Operands& operands, const TileShape& tile, const TiledInput& input)
      : block_(block),
        tile_(tile),
        inputs_(block, tile, input.packed, input.old),
        reader_(block, operands, tile),
        out_(block, tile.sequences) {}

  /// A page a group. The tiles of some are in registers before the inputs are there, and while others are multiplied. A page is
  /// given back as soon as it is in registers (0.610 ms a token against 0.615 half a page later, see tuning.md).
  FLYWHEEL_TASK void ahead() {
    static_assert(kBlocks == 1);
    Inputs<kCount> inputs{};  // what ptxas 13.0 thinks may be undefined, it keeps in memory
    Tiles tiles[kGroupsAhead] = {};
    const int groups = tile_.groups;
#pragma unroll
    for (int i = 0; i < kGroupsAhead; ++i) {
      if (i >= groups) break;
      reader_.fetch_page(tiles[i]);
      reader_.drop_page();
    }
    out_.open();
    await_first();
    get<1>(inputs, 0, 0);
    const int last_of_handoff = rows_of_few(tile_.sequences) / kGroupRows - 1;
    const bool has_sum = block_.lane() % 4 < tile_.sequences;
    for (int first = 0; first < groups; first += kGroupsAhead) {
      const int place = first & last_of_handoff;
      if (place == 0 && first) out_.open();
      float* const to = out_.place_of_lane() + place * kGroupRows;
#pragma unroll
      for (int i = 0; i < kGroupsAhead; ++i) {
        if (first + i >= groups) break;
        Sums sums[kChains];
        add(sums, tiles[i], inputs, 0);
        const bool more = first + i + kGroupsAhead < groups;
        if (more) reader_.fetch_page(tiles[i]);
        if (has_sum) to[i * kGroupRows] = joined(sums).of_lane();
        if (more) reader_.drop_page();
      }
      if (place + kGroupsAhead > last_of_handoff || first + kGroupsAhead >= groups) out_.close();
    }
  }

  /// Inputs of at most `kChunks` chunks, which stay in registers.
  template <int kChunks>
  FLYWHEEL_TASK void resident() {
    constexpr int kSteps = kChunks * kChunkSteps, kTogether = kChunks < kAtOnce ? kChunks : kAtOnce;
    Inputs<kSteps> inputs{};
    Tiles tiles{};
    const int steps = steps_of(tile_.columns);
    fetch_first(tiles);
    await_first();
#pragma unroll
    for (int chunk = 0; chunk < kChunks; chunk += kTogether) get<kTogether>(inputs, chunk, chunk * kChunkSteps);
    for (int group = 0; group < tile_.groups; ++group) {
      Sums sums[kChains];
#pragma unroll
      for (int step = 0; step < kSteps; step += kCount) {
        if (step >= steps) break;
        add_next(sums, tiles, inputs, step);
      }
      put(group, joined(sums));
      reader_.release();
    }
    out_.end();
  }

  FLYWHEEL_TASK void stream() {
    const int chunks = tile_.chunks().count;
    Inputs<kChunkSteps> inputs{};
    Words<kChunkSteps> ahead{};
    Sums sums[kStreamedGroups];
    Tiles tiles{};
    fetch_first(tiles);
    await_first();
    if (kAhead) load(0, ahead, 0);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (kAhead) {
        block_.spin([&] {
          const bool there = take(ahead, 0, inputs, 0);
          if (!there) load(chunk, ahead, 0);
          return there;
        });
        if (chunk + 1 < chunks) load(chunk + 1, ahead, 0);  // on its way while this one is used
      } else {
        get<1>(inputs, chunk, 0);
      }
#pragma unroll
      for (int group = 0; group < kStreamedGroups; ++group)
        if (group < tile_.groups) add_steps(sums[group], tiles, inputs);
    }
#pragma unroll
    for (int group = 0; group < kStreamedGroups; ++group)
      if (group < tile_.groups) put(group, sums[group]);
    out_.end();
  }

 private:
  /// Of two blocks, inputs are not looked for where they do not come from yet: one look at all of them by all workers keeps
  /// the L2 cache busy for as long as it takes. Of one they are: what comes in the first look saves a trip (0.605 ms
  /// a token against 0.609, see tuning.md). The block does not wait for the makers' signal, which comes a trip to L2 later.
  FLYWHEEL_TASK void await_first() {
    if (kBlocks > 1) block_.spin([&] { return inputs_.first_is_there(); });
  }
  template <int kAll>
  FLYWHEEL_TASK void load(int chunk, Words<kAll>& to, int at) const {
#pragma unroll
    for (int page = 0; page < kPages; ++page) inputs_.load(chunk, page, to, at + page * kStepsOfPage);
  }
  template <int kAll, int kTo>
  FLYWHEEL_TASK bool take(const Words<kAll>& from, int at, Inputs<kTo>& to, int to_step) const {
    bool there = true;
#pragma unroll
    for (int page = 0; page < kPages; ++page)
      there &= inputs_.take(from, at + page * kStepsOfPage, to, to_step + page * kStepsOfPage);
    return there;
  }

  /// The inputs of `kChunks` chunks: all loads are on their way before the first is looked at.
  template <int kChunks, int kTo>
  FLYWHEEL_TASK void get(Inputs<kTo>& inputs, int first, int to) {
    block_.spin([&] {
      Words<kChunks * kChunkSteps> words{};
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) load(first + chunk, words, chunk * kChunkSteps);
      bool there = true;
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) there &= take(words, chunk * kChunkSteps, inputs, to + chunk * kChunkSteps);
      return there;
    });
  }

  FLYWHEEL_TASK void fetch_first(Tiles& tiles) {
    if (!kPipelined) return;
    reader_.fetch(tiles);
    reader_.release();
  }
  /// Products of the next tiles; those after them are on their way meanwhile.
  template <int kAll>
  FLYWHEEL_TASK void add_next(Sums (&sums)[kChains], Tiles& tiles, const Inputs<kAll>& inputs, int step) {
    if constexpr (kPipelined) {
      add(sums, tiles, inputs, step);
      reader_.fetch(tiles);
    } else {
      Tiles now;
      reader_.fetch_next(now);
      reader_.release();
      add(sums, now, inputs, step);
    }
  }
  /// A chunk's steps of a group.
  template <int kAll>
  FLYWHEEL_TASK void add_steps(Sums& all, Tiles& tiles, const Inputs<kAll>& inputs) {
    Sums sums[kChains];
#pragma unroll
    for (int step = 0; step < kAll; step += kCount) add_next(sums, tiles, inputs, step);
    all.add(joined(sums));
    reader_.release();
  }
  template <int kAll>
  FLYWHEEL_TASK void add(Sums (&sums)[kChains], const Tiles& tiles, const Inputs<kAll>& inputs, int step) {
    tiles.for_each([&](int i, const TilePart& tile) {
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
        block_.multiply_add_half(sums[(step + i) % kChains].part[b], tile.registers, inputs.b[step + i][b].pairs);
    });
  }
  FLYWHEEL_TASK static const Sums& joined(Sums (&sums)[kChains]) {
#pragma unroll
    for (int apart = kChains / 2; apart; apart /= 2)
#pragma unroll
      for (int i = 0; i < apart; ++i) sums[i].add(sums[i + apart]);
    return sums[0];
  }

  FLYWHEEL_TASK void put(int group, const Sums& sums) {
    out_.template put<kBlocks>(group, [&](int b) { return sums.of_lane(b); });
  }

  Block& block_;
  TileShape tile_;
  InputReader<kBlocks, Block> inputs_;
  TileReader<Block, Operands> reader_;
  SumsWriter<Block> out_;
};

}  // namespace llama
