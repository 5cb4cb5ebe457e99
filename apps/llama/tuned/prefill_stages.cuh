// Keys and values of a head on their way through shared memory, for the attention of prompts (prefill_attend.cuh).
//
// The cache lies as tensor cores take a first operand, which is what a step of the decode makes of it: the four words of a lane
// are two rows by two halves of 16 columns. As a second operand they take both halves of a row at once, in two registers that
// lie together. All warps read a tile; so the thread that has copied 16 bytes of it changes the order of their words once, in
// shared memory, where each reader would move three registers for each tile (a third of all instructions, see tuning.md).
#pragma once

#include "apps/llama/tuned/cache.cuh"
#include "apps/llama/tuned/tile.cuh"

namespace llama {

/// One lane's part of a tile, as tensor cores take it as their second operand, once for each 8 positions or dimensions: the
/// words of a TilePart in another order.
struct alignas(16) PairedTile {
  std::uint32_t first[2], second[2];
};

/// A stage of neighbouring positions after the other.
template <int kTiles>
class PrefillStages {
  static constexpr int kDims = kTiles * 16;

 public:
  static constexpr int kPositions = kTiles <= 4 ? 128 : 64;  // of a stage

 private:
  static constexpr int kEach = kPositions * kDims, kOfStage = 2 * kEach;  // halves of a stage's keys, and of its values
  static constexpr int kOfCopy = 8;                                       // halves

 public:
  static constexpr int kBytes = 2 * kOfStage * static_cast<int>(sizeof(Half));

  /// All threads. `memory`: kBytes of shared memory. Positions from `begin`, a multiple of 16, up to `last`.
  template <class Block>
  FLYWHEEL_TASK PrefillStages(Block& block, const TunedCache& head, unsigned char* memory, int begin, int last)
      : keys_(head.keys + TunedCache::tile(begin, 0, kDims) + block.rank() * kOfCopy),
        values_(head.values + TunedCache::tile(begin, 0, kDims) + block.rank() * kOfCopy),
        memory_(reinterpret_cast<Half*>(memory)),
        left_(last / 16 * 16 + 16 - begin) {
    copy_next(block);
  }

  /// All threads: the stage whose turn it is. What was read of the one before is done with. Copies go on.
  template <class Block>
  FLYWHEEL_TASK TunedCache take(Block& block) {
    block.template wait_copies<0>();
    Half* const keys = memory_ + now_;
    pair_words(block, keys + block.rank() * kOfCopy);
    block.sync();  // all threads' words are there, and all warps have read the stage before, which is filled again
    copy_next(block);
    now_ = other(now_);
    return {keys, keys + kEach};
  }

 private:
  FLYWHEEL_TASK static int other(int stage) { return kOfStage - stage; }

  /// Of what this thread has copied.
  template <class Block>
  FLYWHEEL_TASK static void pair_words(const Block&, Half* from) {
#pragma unroll
    for (int i = 0; i < kOfStage; i += Block::size() * kOfCopy) {
      const auto [words] = *reinterpret_cast<const TilePart*>(from + i);
      *reinterpret_cast<PairedTile*>(from + i) = {{words[0], words[2]}, {words[1], words[3]}};
    }
  }
  /// Sixteen bytes after the other, of whole tiles of positions. Behind the last tile there are zeros: what lies there is
  /// weighed with nothing, and must be numbers. A group of copies without any is one, too.
  template <class Block>
  FLYWHEEL_TASK void copy_next(Block& block) {
    Half* const to = memory_ + fill_ + block.rank() * kOfCopy;
    if (left_ >= kPositions) {
#pragma unroll
      for (int i = 0; i < kEach; i += Block::size() * kOfCopy) {
        block.copy16(to + i, keys_ + i);
        block.copy16(to + kEach + i, values_ + i);
      }
    } else if (left_ > 0) {
      FLYWHEEL_ROLLED
      for (int i = 0; i < kEach; i += Block::size() * kOfCopy) {
        if (i + block.rank() * kOfCopy < left_ * kDims) {
          block.copy16(to + i, keys_ + i);
          block.copy16(to + kEach + i, values_ + i);
        } else {
          *reinterpret_cast<TilePart*>(to + i) = *reinterpret_cast<TilePart*>(to + kEach + i) = {};
        }
      }
    }
    block.commit_copies();
    keys_ += kEach, values_ += kEach, left_ -= kPositions;
    fill_ = other(fill_);
  }

  const Half* keys_;  // what this thread copies next
  const Half* values_;
  Half* const memory_;
  int left_;                // positions that have not been copied
  int fill_ = 0, now_ = 0;  // where the stages begin that are filled and taken next
};

}  // namespace llama
