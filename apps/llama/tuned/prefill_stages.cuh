// Keys and values on their way to the attention of prompts. The cache lies as tensor cores take it (see CacheTiles), and the
// positions of a block of a head side by side: all threads copy a stage of one block or two to shared memory, two stages ahead.
#pragma once

#include "apps/llama/tuned/cache.cuh"

namespace llama {

/// Keys and values of a head on their way through shared memory, a stage of neighbouring positions after the other.
template <int kTiles>
class PrefillStages {
  static constexpr int kDims = kTiles * 16, kStages = 3;
  static constexpr int kHalves = 2 * kDims;  // of a position: key and value

 public:
  static constexpr int kPositions = kTiles <= 4 ? 128 : 64;  // of a stage: whole blocks
  static constexpr int kBytes = kStages * kPositions * kHalves * static_cast<int>(sizeof(Half));

  /// All threads. `head`: of a text with a table. `memory`: kBytes of shared memory. Positions from `begin`, a multiple of
  /// kPositions, up to `last`.
  template <class Block>
  FLYWHEEL_TASK PrefillStages(Block& block, const HeadCache& head, unsigned char* memory, int begin, int last)
      : head_{head.pool, head.table, head.stride, kDims},
        memory_(reinterpret_cast<Half*>(memory)),
        end_(last / 16 * 16 + 16),
        next_(begin) {
    find_blocks();
    for (int stage = 0; stage + 1 < kStages; ++stage) copy_next(block, stage);
  }

  /// All threads: the stage whose turn it is. What was read of the one before is done with. Copies go on.
  template <class Block>
  FLYWHEEL_TASK CacheTiles take(Block& block) {
    block.template wait_copies<kStages - 2>();
    block.sync();  // the copies of all threads have landed, and all warps have read the stage before, which is filled again
    copy_next(block, now_ > 0 ? now_ - 1 : kStages - 1);
    Half* const keys = place(now_);
    now_ = now_ + 1 < kStages ? now_ + 1 : 0;
    return {keys, keys + kPositions * kDims};
  }

 private:
  static constexpr int kBlocks = kPositions / kBlockPositions;
  static_assert(kPositions % kBlockPositions == 0);

  FLYWHEEL_TASK Half* place(int stage) const { return memory_ + stage * kPositions * kHalves; }

  /// Reads the table's entries of the positions that are copied next; behind the last one are some that are not used, see
  /// kEntriesBehind. Each thread has them a stage before it copies, so copies wait for those of the first stage alone.
  FLYWHEEL_TASK void find_blocks() {
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) blocks_[i] = head_.table[next_ / kBlockPositions + i];
  }

  /// Sixteen bytes after the other, of whole tiles of positions. A group of copies without any is one, too.
  template <class Block>
  FLYWHEEL_TASK void copy_next(Block& block, int stage) {
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
      const int left = end_ - next_ - i * kBlockPositions, count = left < kBlockPositions ? left : kBlockPositions;
      copy(block, place(stage) + i * kBlockPositions * kDims, head_.block(blocks_[i]), count);
    }
    block.commit_copies();
    next_ += kPositions;
    find_blocks();
  }
  template <class Block>
  FLYWHEEL_TASK static void copy(Block& block, Half* keys, const CacheTiles& from, int positions) {
    for (int i = block.rank() * 8; i < positions * kDims; i += block.size() * 8) {
      block.copy16(keys + i, from.keys + i);
      block.copy16(keys + kPositions * kDims + i, from.values + i);
    }
  }

  const HeadCache head_;
  Half* const memory_;
  const int end_;
  std::uint32_t blocks_[kBlocks];  // of the positions that are copied next
  int next_, now_ = 0;             // the position that is copied next; the stage that is taken next
};

}  // namespace llama
