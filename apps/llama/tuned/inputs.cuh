// Activations as the B operand of the tensor cores. The task that makes one multiplies it by the weights of the next norm and
// rounds it, so that the tasks that multiply with it only load it into registers.
#pragma once

#include "apps/llama/tuned/tile.cuh"

namespace llama {

/// Within 2 units in the last place, and without the calls that exact division and square root make on a GPU: what is in
/// registers would have to go to memory for them.
FLYWHEEL_TASK inline float inverse_sqrt(float x) {
#ifdef __CUDA_ARCH__
  return rsqrtf(x);
#else
  return 1.f / std::sqrt(x);
#endif
}
FLYWHEEL_TASK inline float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  return __fdividef(1.f, x);
#else
  return 1.f / x;
#endif
}

/// One instruction: powers below the smallest number that has all its digits are 0.
FLYWHEEL_TASK inline float power_of_2(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x) : "memory");
  return power;
#else
  return std::exp2(x);
#endif
}
/// 1 / (1 + exp(-x)).
FLYWHEEL_TASK inline float sigmoid(float x) {
  const float whole = 1.f + power_of_2(-1.44269504f * x);  // 1 at least: its reciprocal needs no care either
#ifdef __CUDA_ARCH__
  float part;
  asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(part) : "f"(whole) : "memory");
  return part;
#else
  return 1.f / whole;
#endif
}

/// Columns of B: for each sequence one for each half of a step. 8 of them are a block.
FLYWHEEL_TASK constexpr int columns_of_b(int sequences) { return sequences * 2; }

/// Rounded vectors: stamped words of two neighbours, [sequences][columns / 2].
FLYWHEEL_TASK constexpr std::size_t packed_size(int sequences, int columns) {
  return static_cast<std::size_t>(sequences) * static_cast<std::size_t>(columns / 2);
}

/// `kEach` (1, or even) neighbouring words, which a lane loads and stores two at a time.
template <int kEach>
struct StampedRow {
  Stamped of[kEach];

  template <class Block>
  FLYWHEEL_TASK void look(const Block&, const Stamped* at) {
    if constexpr (kEach == 1) {
      of[0] = look_at(*at);
    } else {
#pragma unroll
      for (int i = 0; i < kEach; i += 2) {
        const StampedPair two = Block::load_stamped_pair(at + i);
        of[i] = two.first, of[i + 1] = two.second;
      }
    }
  }
  template <class Block>
  FLYWHEEL_TASK void put(const Block&, Stamped* at) const {
    if constexpr (kEach == 1 || !Block::kOnGpu) {
      for (int i = 0; i < kEach; ++i) put_stamped(at[i], of[i].bits(), of[i].stamp());
    } else {
#pragma unroll
      for (int i = 0; i < kEach; i += 2) Block::store_stamped_pair(at + i, {of[i], of[i + 1]});
    }
  }
};

/// Where packed vectors go.
struct PackedOutput {
  Stamped* words;
  int sequences, columns;
  std::uint32_t stamp;

  /// The lane's `kEach` values, of columns from `column` on, a multiple of `kEach`; with one, its neighbour has the next
  /// column, and all lanes call. `some`: it has any.
  template <int kEach, class Block>
  FLYWHEEL_TASK void put(const Block& block, int sequence, int column, const float (&values)[kEach], bool some) const {
    Stamped* const to = words + static_cast<unsigned>(sequence * columns + column) / 2;
    if constexpr (kEach == 1) {
      const std::uint32_t mine = round_activation(values[0]), next = block.shuffle_xor(mine, 1);
      if (some && column % 2 == 0) put_stamped(*to, mine | next << 16, stamp);
    } else {
      StampedRow<kEach / 2> row;
#pragma unroll
      for (int i = 0; i < kEach; i += 2)
        row.of[i / 2] = stamped(round_activation(values[i]) | round_activation(values[i + 1]) << 16, stamp);
      if (some) row.put(block, to);
    }
  }
};

/// What tells whether words are there.
struct WantedStamp {
  std::uint32_t stamp;
  std::uint32_t mask;  // 0: they were written before this pass

  FLYWHEEL_TASK std::uint32_t wrong(const Stamped& word) const { return (word.stamp() ^ stamp) & mask; }
  FLYWHEEL_TASK std::uint32_t wrong(const StampedPair& two) const { return wrong(two.first) | wrong(two.second); }
  template <int kEach>
  FLYWHEEL_TASK std::uint32_t wrong(const StampedRow<kEach>& row) const {
    std::uint32_t all = 0;
    for (const Stamped& word : row.of) all |= wrong(word);
    return all;
  }
};
template <class Block>
FLYWHEEL_TASK WantedStamp wanted_stamp(const Block& block, bool old) {
  return {block.stamp(), old ? 0u : 0xffffffffu};
}

/// The B registers of `kSteps` steps.
template <int kBlocks, int kSteps>
struct LaneInputs {
  FourWeights b[kSteps][kBlocks];
};
/// The same as they are on their way.
template <int kBlocks, int kSteps>
struct LaneWords {
  StampedPair b[kSteps][kBlocks];
};

/// One lane's reader of the inputs. Column lane / 4 of a block is (sequence, half of the step); lane % 4 says which four
/// of the half's 16 values. Lanes of columns that no sequence has load what others do: their sums are not used.
/// The matrix has whole pages of columns for all warps, so nothing need be checked.
/// One sequence uses only two columns of B; a path of its own for that gains nothing, see tuning.md.
template <int kBlocks, class Block>
class InputReader {
 public:
  FLYWHEEL_TASK InputReader(const Block& block, const TileShape& tile, const Stamped* packed, bool old)
      : warp_(block.warp()),
        offset_(block.lane() / 4 % 2 * (kStepColumns / 2) + block.lane() % 4 * 4),
        wanted_(wanted_stamp(block, old)) {
    for (int b = 0; b < kBlocks; ++b) {
      const int sequence = (b * 8 + block.lane() / 4) / 2;
      from_[b] = packed + (((sequence < tile.sequences ? sequence : 0) * tile.columns) >> 1);
    }
  }

  /// Of the warp's first step.
  FLYWHEEL_TASK bool first_is_there() const {
    const int column = first_column(0) + offset_;
    const StampedPair pair = Block::load_stamped_pair(from_[0] + (static_cast<unsigned>(column) >> 1));
    return wanted_.wrong(pair) == 0;
  }

  /// A page of steps of a chunk to steps at.. of `to`.
  template <int kAll>
  FLYWHEEL_TASK void load(int chunk, int page, LaneWords<kBlocks, kAll>& to, int at) const {
    const int column = first_column(chunk) + page * kStepsOfPage * kStepColumns + offset_;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      const Stamped* first = from_[b] + (static_cast<unsigned>(column) >> 1);
#pragma unroll
      for (int s = 0; s < kStepsOfPage; ++s) to.b[at + s][b] = Block::load_stamped_pair(first + s * (kStepColumns / 2));
    }
  }

  /// What has come of a page of steps. False if some is still on its way.
  template <int kAll, int kTo>
  FLYWHEEL_TASK bool take(const LaneWords<kBlocks, kAll>& from, int at, LaneInputs<kBlocks, kTo>& to, int to_step) const {
    std::uint32_t wrong = 0;
#pragma unroll
    for (int s = 0; s < kStepsOfPage; ++s)
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        const StampedPair& pair = from.b[at + s][b];
        wrong |= wanted_.wrong(pair);
        to.b[to_step + s][b] = FourWeights{{pair.first.bits(), pair.second.bits()}};
      }
    return wrong == 0;
  }

 private:
  FLYWHEEL_TASK int first_column(int chunk) const { return (chunk * kTileWarps + warp_) * kChunkSteps * kStepColumns; }

  int warp_, offset_;
  WantedStamp wanted_;
  const Stamped* from_[kBlocks];
};

}  // namespace llama
