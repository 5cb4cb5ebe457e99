// How a weight matrix lies in an operand stream, so that tensor cores take it as it comes.
//
// A matrix-vector product is cut by rows among workers and by columns among the 8 compute warps of a worker. The unit is
// a group of 8 rows. One mma.m16n8k16 covers 8 rows and 32 columns: the upper 8 rows of its A hold columns 0..15, the
// lower 8 rows columns 16..31, and B has a column for each half, so the two halves of a dot product come out in one
// lane's first and last sum. (16-row tiles would leave 2048 rows on 128 of 132 SMs.)
//
// The order of k within a tile is free as long as A and B agree: lane quarter q takes columns 4q..4q+3 of each half, so
// that activations are read 16 bytes at a time.
//
// Both are halves: activations keep 11 bits of their fraction where bf16 would keep 8. A weight is its bf16 value times 4096.
// From 2^-26 to 15.9 that is exact. Smaller weights are rounded to multiples of 2^-33, larger ones have no finite half: 0 is in
// their place. What is left of such weights, of trained models some in 10 million, comes beside the stream, see patches.cuh. A
// model with infinity or NaN is refused when it is loaded. Activations are divided by 16, which leaves room up to 1,048,000
// (some models have outliers, and a residual stream is rounded before it is normed). What is larger becomes infinite, and the
// run fails: see kLogitsNotFinite. Sums are in units of both.
//
// Of such a half the lowest three bits are zero: bf16 has 8 bits of fraction, not 11. They are not brought from memory. Four
// tiles lie together; the words of the first three and a quarter of the fourth are there as they are, and carry the rest of
// the fourth in their lowest bits: 13 bits a weight, of 16. Nothing is lost by that.
#pragma once

#include "apps/llama/decode/arithmetic.cuh"
#include "apps/llama/decode/half.cuh"

namespace llama {

inline constexpr int kTileWarps = 8;
inline constexpr int kGroupRows = 8;
inline constexpr int kStepColumns = 32;                           // of one warp
inline constexpr int kChunkSteps = 8;                             // steps of a chunk: 2048 columns of all warps
inline constexpr int kColumnsOfStep = kTileWarps * kStepColumns;  // 256
inline constexpr int kStepsOfPage = 8;                            // 26 KB for all warps
inline constexpr int kQuad = 4;                                   // tiles that lie together
inline constexpr int kQuadsOfPage = kStepsOfPage / kQuad;
inline constexpr int kQuadBytes = kQuad * kGroupRows * kStepColumns * 13 / 8;  // 1664
inline constexpr int kMostSequences = 16;                                      // of a step
/// Of so many, inputs of up to kResidentChunks chunks stay in registers for a whole task; of more, those of one.
inline constexpr int kFewSequences = 8, kResidentChunks = 2;

/// The columns are whole pages for all warps.
FLYWHEEL_TASK constexpr bool is_whole(int columns) { return columns % (kColumnsOfStep * kStepsOfPage) == 0; }
/// A group has a quad at least, so that no quad has the ends of two groups.
FLYWHEEL_TASK constexpr int steps_of(int columns) {
  const int steps = (columns + kColumnsOfStep - 1) / kColumnsOfStep;
  return steps < kQuad ? kQuad : steps;
}

/// How the columns are cut into chunks, whose inputs a warp has at the same time: of whole pages in registers, of others in
/// shared memory, see multiply_any.cuh. Each has `steps` of them, the last one up to kQuad - 1 more, so that it has a quad.
struct Chunks {
  int steps, count;
};
FLYWHEEL_TASK constexpr Chunks chunks_of(int columns, int sequences) {
  if (is_whole(columns)) return {kChunkSteps, steps_of(columns) / kChunkSteps};
  constexpr int kOfOne = 5 * kChunkSteps, kOfFew = 2 * kChunkSteps, kOfMany = kChunkSteps;
  const int steps = sequences == 1 ? kOfOne : sequences <= kFewSequences ? kOfFew : kOfMany;
  return {steps, (steps_of(columns) - kQuad) / steps + 1};
}
/// Longer inputs are taken chunk by chunk, and the sums of all groups of a task are kept meanwhile.
FLYWHEEL_TASK constexpr bool is_streamed(int columns, int sequences) {
  return chunks_of(columns, sequences).count > (is_whole(columns) && sequences <= kFewSequences ? kResidentChunks : 1);
}
/// Most groups of a task whose input is streamed. Of 16 sequences a task reads its inputs in the time of five groups' weights,
/// so more groups are better, where there are registers for their sums.
inline constexpr int kStreamedGroups = 4, kStreamedGroupsOfMany = 8;
FLYWHEEL_TASK constexpr int streamed_groups(int columns, int sequences) {
  return is_whole(columns) && sequences > kFewSequences ? kStreamedGroupsOfMany : kStreamedGroups;
}

/// Where one step of a task lies: which group, chunk and step in the chunk come as its n-th.
struct StepPlace {
  int group, chunk, step;
};

/// A task's share of a matrix: whole groups of rows.
struct TileShape {
  int columns;  // a multiple of 8
  int groups;
  int sequences;  // that are multiplied at once

  FLYWHEEL_TASK Chunks chunks() const { return chunks_of(columns, sequences); }
  FLYWHEEL_TASK bool streamed() const { return is_streamed(columns, sequences); }
  FLYWHEEL_TASK int steps_in(int chunk) const {
    const Chunks all = chunks();
    return chunk + 1 < all.count ? all.steps : steps_of(columns) - chunk * all.steps;
  }
  FLYWHEEL_TASK int total_steps() const { return groups * steps_of(columns); }
  FLYWHEEL_TASK int quads() const { return (total_steps() + kQuad - 1) / kQuad; }  // of one warp
  FLYWHEEL_TASK std::uint32_t bytes() const { return static_cast<std::uint32_t>(quads()) * kQuadBytes * kTileWarps; }

  /// Group after group; chunk after chunk where the input is streamed.
  FLYWHEEL_TASK StepPlace place(int n) const {
    const Chunks all = chunks();
    if (!streamed()) {
      const int step = n % steps_of(columns), chunk = step / all.steps < all.count ? step / all.steps : all.count - 1;
      return {n / steps_of(columns), chunk, step - chunk * all.steps};
    }
    const int of_chunk = groups * all.steps;
    const int chunk = n / of_chunk < all.count ? n / of_chunk : all.count - 1, rest = n - chunk * of_chunk;
    return {rest / steps_in(chunk), chunk, rest % steps_in(chunk)};
  }

  /// The first column of a warp's step: its steps of a chunk are neighbours where the columns are whole pages; elsewhere the
  /// warps' steps are, so that which warp has a column does not depend on the chunks.
  FLYWHEEL_TASK int column(int chunk, int step, int warp) const {
    const int first = chunk * chunks().steps;
    return is_whole(columns) ? (first * kTileWarps + warp * kChunkSteps + step) * kStepColumns
                             : ((first + step) * kTileWarps + warp) * kStepColumns;
  }

  /// Where a quad of `warp` begins, in bytes: a page holds up to kQuadsOfPage of every warp.
  FLYWHEEL_TASK std::size_t quad_at(int quad, int warp) const {
    const int page = quad / kQuadsOfPage, left = quads() - page * kQuadsOfPage;
    const int in_page = left < kQuadsOfPage ? left : kQuadsOfPage;
    return static_cast<std::size_t>(page) * kPageBytes +
           static_cast<std::size_t>(warp * in_page + quad % kQuadsOfPage) * kQuadBytes;
  }
};

inline constexpr float kActivationUnits = 1 / 16.f;  // of 1
FLYWHEEL_TASK inline std::uint32_t round_activation(float value) { return round_half_or_infinite(value * kActivationUnits); }
FLYWHEEL_TASK inline float activation_of(std::uint32_t half) { return from_half(half) * (1 / kActivationUnits); }

inline constexpr float kWeightUnits = 4096;  // of 1
inline constexpr float kSumUnits = kWeightUnits * kActivationUnits;
inline constexpr float kLeastExactWeight = 0x1p-26f;  // most smaller ones are rounded, by 2^-34 at most
/// The next code of bf16 is 16: 65536 as a half, which is infinite.
inline constexpr float kMostExactWeight = 15.9375f;
/// Whether there is a finite half for a bf16 weight: its magnitude is kMostExactWeight at most.
FLYWHEEL_TASK constexpr bool fits_half(std::uint32_t bf16) {
  return (bf16 & 0x7fffu) <= std::bit_cast<std::uint32_t>(kMostExactWeight) >> 16;
}
/// Its lowest three bits are zero. See rest_of_weight() for what is left of the weight.
FLYWHEEL_TASK inline std::uint32_t half_of_weight(std::uint32_t bf16) {
  if (!fits_half(bf16)) return bf16 & 0x8000u;
  const float value = to_float(Bf16{static_cast<std::uint16_t>(bf16)}) * kWeightUnits, size = std::fabs(value);
  if (!(size < 0x1p-14f)) return round_half_or_infinite(value) & ~7u;  // the bits that go are zero
  return (bf16 & 0x8000u) | static_cast<std::uint32_t>(std::nearbyint(size * 0x1p21f)) << 3;
}

/// Four neighbouring weights of a row.
struct alignas(8) FourWeights {
  std::uint32_t pairs[2];
};
FLYWHEEL_TASK inline FourWeights halves_of(const FourWeights& bf16) {
  const auto both = [](std::uint32_t pair) { return half_of_weight(pair & 0xffffu) | half_of_weight(pair >> 16) << 16; };
  return {{both(bf16.pairs[0]), both(bf16.pairs[1])}};
}

/// One lane's part of a tile: the A registers of the instruction, two halves in each.
struct alignas(16) TilePart {
  std::uint32_t registers[4];
};

/// a * b + c. On a GPU by its multipliers: shifts and ors would go to the units that are busy with masks (0.622 ms a
/// token against 0.626, see tuning.md).
FLYWHEEL_TASK inline std::uint32_t multiply_add(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#ifdef __CUDA_ARCH__
  asm("mad.lo.u32 %0, %1, %2, %0;" : "+r"(c) : "r"(a), "r"(b) : "memory");
  return c;
#else
  return a * b + c;
#endif
}

/// A lane's part of four tiles, packed. The fourth tile's last three registers take 12 bits of each half from the spare ones
/// of a whole tile, and one from `last`.
struct LaneQuad {
  static constexpr std::uint32_t kWeight = 0xfff8fff8u, kSpare = 0x00070007u, kLowest = 0x00010001u;  // bits of two halves

  TilePart tiles[kQuad - 1];
  std::uint32_t last;  // the first register of the fourth tile

  FLYWHEEL_TASK static LaneQuad pack(const TilePart (&parts)[kQuad]) {
    LaneQuad quad{{parts[0], parts[1], parts[2]}, parts[kQuad - 1].registers[0]};
    for (int t = 0; t < kQuad - 1; ++t) {
      const std::uint32_t more = parts[kQuad - 1].registers[t + 1];
      for (int i = 0; i < 4; ++i) quad.tiles[t].registers[i] |= more >> (3 + 3 * i) & kSpare;
      quad.last |= (more >> 15 & kLowest) << t;
    }
    return quad;
  }
  FLYWHEEL_TASK void unpack(TilePart (&parts)[kQuad]) const {
    parts[kQuad - 1].registers[0] = last & kWeight;
#pragma unroll
    for (int t = 0; t < kQuad - 1; ++t) {
      std::uint32_t more = last << (15 - t) & kLowest << 15;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        parts[t].registers[i] = tiles[t].registers[i] & kWeight;
        more = multiply_add(tiles[t].registers[i] & kSpare, 8u << (3 * i), more);
      }
      parts[kQuad - 1].registers[t + 1] = more;
    }
  }
};

/// The same of all lanes of a warp, in memory.
struct Quad {
  TilePart tiles[kQuad - 1][kLanes];
  std::uint32_t last[kLanes];

  FLYWHEEL_TASK void put(int lane, const LaneQuad& quad) {
    for (int t = 0; t < kQuad - 1; ++t) tiles[t][lane] = quad.tiles[t];
    last[lane] = quad.last;
  }
  FLYWHEEL_TASK LaneQuad of(int lane) const { return {{tiles[0][lane], tiles[1][lane], tiles[2][lane]}, last[lane]}; }
};
static_assert(sizeof(Quad) == kQuadBytes && kPageBytes == kQuadsOfPage * kTileWarps * kQuadBytes);

/// All threads of a block: lays a task's weights out. `row_of(i)` points to row i of the task's groups * 8 rows, or is
/// null beyond the matrix: then zeros are packed.
template <class Block, class RowOf>
FLYWHEEL_TASK void pack_tiles(Block& block, const TileShape& shape, unsigned char* to, RowOf&& row_of) {
  const auto part_of = [&](int n, int warp, int lane) {
    if (n >= shape.total_steps()) return TilePart{};
    const StepPlace place = shape.place(n);
    const Bf16* row = row_of(place.group * kGroupRows + lane / 4);
    const int column = shape.column(place.chunk, place.step, warp) + lane % 4 * 4;
    const auto four = [&](int first) {
      return row && first < shape.columns ? halves_of(*reinterpret_cast<const FourWeights*>(row + first)) : FourWeights{};
    };
    const FourWeights upper = four(column), lower = four(column + kStepColumns / 2);
    return TilePart{{upper.pairs[0], lower.pairs[0], upper.pairs[1], lower.pairs[1]}};
  };
  block.for_each(shape.quads() * kTileWarps * kLanes, [&](int i) {
    const int lane = i % kLanes, warp = i / kLanes % kTileWarps, quad = i / (kLanes * kTileWarps);
    TilePart parts[kQuad];
    for (int t = 0; t < kQuad; ++t) parts[t] = part_of(quad * kQuad + t, warp, lane);
    reinterpret_cast<Quad*>(to + shape.quad_at(quad, warp))->put(lane, LaneQuad::pack(parts));
  });
}

}  // namespace llama
