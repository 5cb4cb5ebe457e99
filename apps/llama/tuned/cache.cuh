// The KV cache of the tuned decode: halves, in tiles of 16 positions by 16 dimensions that lie as tensor cores take them, in
// blocks of positions from one pool.
#pragma once

#include "apps/llama/decode/arithmetic.cuh"
#include "apps/llama/decode/half.cuh"

namespace llama {

/// Positions of a block: what a team of warps attends to at once, and a stage of attention of prompts or half of one.
inline constexpr int kBlockPositions = 64;

/// Keys and values of one head at neighbouring positions, those of a block or of a stage: tiles by position and by dimension.
struct CacheTiles {
  Half* keys;
  Half* values;

  FLYWHEEL_TASK static std::size_t tile(int position, int dim, int head_dim) {
    return static_cast<std::size_t>(position / 16 * (head_dim / 16) + dim / 16) * 256;
  }
  /// Of a key, in elements from the begin: lane (position % 8, dimension / 4 % 4) holds 4 dimensions of two positions.
  FLYWHEEL_TASK static std::size_t key_at(int position, int dim, int head_dim) {
    const int lane = position % 8 * 4 + dim % 16 / 4, word = position % 16 / 8 + dim % 4 / 2 * 2;
    return tile(position, dim, head_dim) + static_cast<std::size_t>(lane * 8 + word * 2 + dim % 2);
  }
  /// Of a value: lane (dimension % 8, position / 2 % 4).
  FLYWHEEL_TASK static std::size_t value_at(int position, int dim, int head_dim) {
    const int lane = dim % 8 * 4 + position % 8 / 2, word = dim % 16 / 8 + position % 16 / 8 * 2;
    return tile(position, dim, head_dim) + static_cast<std::size_t>(lane * 8 + word * 2 + position % 2);
  }
};

/// Keys and values of one head of a text.
struct HeadCache {
  Half* pool;                  // of the head in the pool's first block
  const std::uint32_t* table;  // the text's blocks; null: they lie in order
  std::int32_t stride;         // from block to block, in elements
  std::int32_t head_dim;

  /// Block `number` of the pool.
  FLYWHEEL_TASK CacheTiles block(std::uint32_t number) const {
    Half* const keys = pool + static_cast<std::size_t>(number) * static_cast<std::size_t>(stride);
    return {keys, keys + kBlockPositions * head_dim};
  }
  /// The block of a position. Reads the table.
  FLYWHEEL_TASK CacheTiles block_of(int position) const {
    const int i = position / kBlockPositions;
    return block(table ? table[i] : static_cast<std::uint32_t>(i));
  }
  FLYWHEEL_TASK Half& key(int position, int dim) const { return key(block_of(position), position, dim); }
  /// The same of a position whose block is known.
  FLYWHEEL_TASK Half& key(const CacheTiles& of, int position, int dim) const {
    return of.keys[CacheTiles::key_at(position % kBlockPositions, dim, head_dim)];
  }
  FLYWHEEL_TASK Half& value(int position, int dim) const {
    return block_of(position).values[CacheTiles::value_at(position % kBlockPositions, dim, head_dim)];
  }
};

/// Keys and values of one layer: [blocks][kv heads][keys, values].
struct TunedCache {
  Half* pool;
  const std::uint32_t* tables;  // of BlockTables: [texts][blocks of a text]; null: of one text, whose blocks lie in order

  FLYWHEEL_TASK HeadCache head(int text, int blocks_of_text, int head, int heads, int head_dim) const {
    const int size = 2 * kBlockPositions * head_dim;
    return {pool + head * size, tables ? tables + text * blocks_of_text : nullptr, heads * size, head_dim};
  }
};

/// Blocks of a text as tasks of one text alone find them: in order.
struct BlocksInOrder {
  template <class Block>
  FLYWHEEL_TASK BlocksInOrder(const Block&, const HeadCache&) {}
  template <class Block>
  FLYWHEEL_TASK std::uint32_t number(const Block&, int i) {
    return static_cast<std::uint32_t>(i);
  }
};

/// Blocks of a text as a warp finds them: each lane holds an entry of the table, 32 neighbours in all. So a warp reads the
/// table once for 2,048 positions, before it knows which it wants, and no load of a key waits for one of the table.
class WarpBlocks {
 public:
  /// The first entries are on their way.
  template <class Block>
  FLYWHEEL_TASK WarpBlocks(const Block& block, const HeadCache& of) : table_(of.table) {
    if (table_) entry_ = table_[block.lane()];
  }
  /// Of the text's i-th block. All lanes.
  template <class Block>
  FLYWHEEL_TASK std::uint32_t number(const Block& block, int i) {
    if (static_cast<std::uint32_t>(i - first_) >= kLanes) {
      first_ = i;
      entry_ = table_[i + block.lane()];  // beyond a text's entries are those of the next, see kEntriesBehind
    }
    return block.shuffle(entry_, i - first_);
  }

 protected:
  const std::uint32_t* table_;

 private:
  std::uint32_t entry_ = 0;
  int first_ = 0;
};

/// The same where there may be no table.
class AnyBlocks : public WarpBlocks {
 public:
  using WarpBlocks::WarpBlocks;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t number(const Block& block, int i) {
    return table_ ? WarpBlocks::number(block, i) : static_cast<std::uint32_t>(i);
  }
};
/// Entries behind all tables, which warps read and do not use.
inline constexpr int kEntriesBehind = kLanes;

inline constexpr int kHeadsTogether = 4;

/// A part of the context of a step.
struct Span {
  int position;     // of the step
  int first, last;  // positions first..last-1
  int used;         // parts that have any
  int begin = 0;    // of what is attended to: positions before it are in a part only to fill its first tile

  FLYWHEEL_TASK bool has_step() const { return first <= position && position < last; }
};

}  // namespace llama
