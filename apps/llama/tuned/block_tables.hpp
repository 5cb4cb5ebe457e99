// Which blocks of the cache's pool the texts of a decode have: the block table of each, on the host and on the device.
#pragma once

#include <flywheel/flywheel.hpp>

#include <span>
#include <vector>

#include "apps/llama/tuned/cache.cuh"

namespace llama {

using namespace flywheel;

/// Blocks that so many positions lie in.
constexpr int blocks_for(std::int64_t positions) {
  return static_cast<int>((positions + kBlockPositions - 1) / kBlockPositions);
}

/// The sizes of a pool.
struct PoolSize {
  /// `room`: positions of a text at most; `beyond`: that passes over its prompt may write behind them. `pool`: positions that
  /// all texts share; 0: a room for each. `places`: texts at once; idle places of `compiled` steps write, too.
  PoolSize(int room, int beyond, int places, bool compiled, std::int64_t pool);

  int entries;    // of a text's table
  int idle;       // blocks that are nobody's
  int blocks;     // that texts may have
  int positions;  // of a text, at most: those of the room, or of whole blocks where the pool is smaller
  int all() const { return idle + blocks; }
};

/// Each text's table names its blocks in the order of its positions. An entry that it has no block for names an idle block:
/// what a place without a text writes there, or a pass over a prompt behind its end, nobody reads.
///
/// A text alone has its blocks in order: its tables never change, and the steps of its decode do not read them.
class BlockTables {
 public:
  /// All blocks are shared out evenly.
  BlockTables(Runtime& runtime, int places, const PoolSize& size);

  /// [places][entries], and kEntriesBehind more.
  const std::uint32_t* data() const { return tables_.data(); }
  int entries() const { return size_.entries; }
  int blocks() const { return size_.blocks; }
  int free_blocks() const { return static_cast<int>(free_.size()); }
  /// Texts in all places may want more than there is.
  bool scarce() const { return size_.blocks < static_cast<int>(count_.size()) * size_.entries; }
  /// The blocks that a text has.
  std::span<const std::uint32_t> of(std::size_t place) const { return {row(place), count_[place]}; }

  /// Nobody has a block.
  void clear();
  void clear(std::size_t place);
  /// Makes sure that a text has blocks for so many positions. False, and nothing changes, if there are too few.
  bool grow(std::size_t place, std::uint32_t positions);
  /// Blocks that it would take from the pool.
  int wanted(std::size_t place, std::uint32_t positions) const;
  /// Each place has as many blocks, in order. For those who use the cache without a crowd.
  void share_evenly();
  /// To the device, what has changed; not while a run reads it.
  void write();

 private:
  const std::uint32_t* row(std::size_t place) const { return host_.data() + place * static_cast<std::size_t>(size_.entries); }
  std::uint32_t* row(std::size_t place) { return host_.data() + place * static_cast<std::size_t>(size_.entries); }
  std::uint32_t idle(std::size_t place, std::size_t entry) const;
  void give(std::size_t place, std::uint32_t block);

  const PoolSize size_;
  bool even_ = false;                // as share_evenly() leaves them
  std::vector<std::uint32_t> host_;  // as data()
  std::vector<std::size_t> count_;   // blocks of each text
  std::vector<std::uint32_t> free_;  // the next one last
  std::vector<char> changed_;        // of each place
  Buffer<std::uint32_t> tables_;
};

}  // namespace llama
