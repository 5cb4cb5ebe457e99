#include "apps/llama/tuned/block_tables.hpp"

#include <algorithm>

namespace llama {

/// One place's tables are in order, so its idle entries are, too: its blocks hold what passes write behind its end.
PoolSize::PoolSize(int room, int beyond, int places, bool compiled, std::int64_t pool)
    : entries(blocks_for(std::int64_t{room} + beyond)),
      idle(places == 1 ? 0
           : compiled  ? places
                       : 1),
      blocks(places * entries),
      positions(room) {
  if (pool <= 0) return;
  blocks = blocks_for(std::min(pool, std::int64_t{blocks} * kBlockPositions));
  positions = std::min(room, blocks * kBlockPositions);
  if (places == 1) blocks = entries = blocks_for(std::int64_t{positions} + beyond);
}

BlockTables::BlockTables(Runtime& runtime, int places, const PoolSize& size)
    : size_(size),
      host_(static_cast<std::size_t>(places * size.entries) + kEntriesBehind),
      count_(static_cast<std::size_t>(places)),
      changed_(count_.size(), 1),
      tables_(runtime.allocate<std::uint32_t>(host_.size())) {
  share_evenly();
  write();
}

std::uint32_t BlockTables::idle(std::size_t place, std::size_t entry) const {
  if (size_.idle == 0) return static_cast<std::uint32_t>(entry);
  return static_cast<std::uint32_t>(place % static_cast<std::size_t>(size_.idle));
}

void BlockTables::clear() {
  even_ = false;
  free_.clear();
  for (int block = size_.all(); block > size_.idle; --block) free_.push_back(static_cast<std::uint32_t>(block - 1));
  for (std::size_t place = 0; place < count_.size(); ++place) {
    for (std::size_t entry = 0; entry < static_cast<std::size_t>(size_.entries); ++entry)
      row(place)[entry] = idle(place, entry);
    count_[place] = 0;
    changed_[place] = 1;
  }
}

/// The last block first: one text alone gets them in order again.
void BlockTables::clear(std::size_t place) {
  for (std::size_t& count = count_[place]; count > 0; --count) {
    std::uint32_t& entry = row(place)[count - 1];
    free_.push_back(entry);
    entry = idle(place, count - 1);
  }
  changed_[place] = 1;
}

void BlockTables::give(std::size_t place, std::uint32_t block) {
  row(place)[count_[place]++] = block;
  changed_[place] = 1;
}

int BlockTables::wanted(std::size_t place, std::uint32_t positions) const {
  return std::max(0, blocks_for(positions) - static_cast<int>(count_[place]));
}

bool BlockTables::grow(std::size_t place, std::uint32_t positions) {
  const int more = wanted(place, positions);
  if (more > free_blocks()) return false;
  for (int i = 0; i < more; ++i) {
    give(place, free_.back());
    free_.pop_back();
  }
  return true;
}

void BlockTables::share_evenly() {
  if (even_) return;
  clear();
  const auto places = static_cast<int>(count_.size()), each = std::min(size_.entries, size_.blocks / places);
  for (std::size_t place = 0; place < count_.size(); ++place) grow(place, static_cast<std::uint32_t>(each * kBlockPositions));
  even_ = true;
}

/// One copy: rows between those that have changed go, too.
void BlockTables::write() {
  const auto first = std::ranges::find(changed_, 1);
  if (first == changed_.end()) return;
  const auto last = std::find(changed_.rbegin(), changed_.rend(), 1).base();
  const auto entries = static_cast<std::size_t>(size_.entries), at = static_cast<std::size_t>(first - changed_.begin());
  tables_.write(row(at), static_cast<std::size_t>(last - first) * entries, at * entries);
  std::ranges::fill(changed_, 0);
}

}  // namespace llama
