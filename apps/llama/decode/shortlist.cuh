// The few tokens that top-k can leave: the block knows a logit that no fewer than k tokens reach, and lists those.
#pragma once

#include "apps/llama/decode/look.cuh"

namespace llama {

inline constexpr std::uint32_t kMostShortlisted = 512;

struct ShortlistEntry {
  std::uint32_t key;
  std::uint32_t token;
  std::uint32_t mass;  // 0 once it is out
};

struct alignas(16) FourKeys {
  std::uint32_t of[4];
};

/// For those who look for tokens: groups of tokens to look at.
struct ListedGroups {
  std::uint32_t groups[kMostShortlisted];
  std::uint32_t count;
};

/// In scratch.
template <int kThreads>
struct ShortlistRoom {
  FourKeys maxima[(kThreads + 3) / 4];  // of each thread
  ShortlistEntry list[kMostShortlisted];
  ListedGroups listed;
  std::uint32_t count;
  std::uint32_t chosen;
};

/// All functions are collective over the block, and give what AllTokens gives: sums of integers, so in whatever order the
/// tokens came.
template <class Block>
class Shortlist {
 public:
  using Room = ShortlistRoom<Block::size()>;
  FLYWHEEL_TASK Shortlist(Block& block, Room* room) : block_(block), room_(room) {}

  /// The tokens whose key is at least that of the k-th of all, and some more. `mine`: the largest key among a share of the
  /// tokens that is this thread's: the k-th largest of these is no larger than the k-th of all. look(least, groups, use) calls
  /// use(token, logit) for at least the tokens with such a key, each by one thread; it is collective, too, and `groups`, still
  /// empty, is its. False if it says so (there are more such tokens than the list takes), k is too large for that or the tokens
  /// are too many for the list.
  template <class Look>
  FLYWHEEL_TASK bool gather(std::uint32_t mine, std::uint32_t k, Look&& look) {
    if (k == 0 || k > static_cast<std::uint32_t>(block_.size())) return false;
    const std::uint32_t least = find_least(mine, k);
    const bool all = look(least, room_->listed, [&](int token, float logit) {
      const std::uint32_t key = order_key(logit);
      if (key < least) return;
      const std::uint32_t at = add_near(block_, room_->count, 1);
      if (at < kMostShortlisted) room_->list[at] = {key, static_cast<std::uint32_t>(token), 0};
    });
    block_.sync();
    count_ = static_cast<int>(room_->count);
    return all && count_ <= static_cast<int>(kMostShortlisted) && count_ <= kShare * block_.size();
  }

  FLYWHEEL_TASK std::uint32_t draw(const Sampling& how, float largest, std::uint64_t random) {
    const std::uint64_t all = keep(
        how.top_k, [](const Entry&) -> std::uint64_t { return 1; },
        [&](Entry& entry) { entry.mass = mass_of(exponent_of(keyed(entry.key), largest, how.temperature)); });
    const auto mass = [](const Entry& entry) -> std::uint64_t { return entry.mass; };
    std::uint64_t left = all;
    if (how.top_p < 1) {
      const auto goal = static_cast<std::uint64_t>(static_cast<double>(how.top_p) * static_cast<double>(all));
      left = keep(goal ? goal : 1, mass, [](Entry&) {});
    }
    return find(scale_down(random, left));
  }

 private:
  static constexpr int kShare = 32;  // entries of a thread at most: a bit each

  using Entry = ShortlistEntry;

  /// The k-th largest of what the threads bring: the least of those that fewer than k are larger than.
  FLYWHEEL_TASK std::uint32_t find_least(std::uint32_t mine, std::uint32_t k) {
    constexpr int kFours = (Block::size() + 3) / 4;
    if (block_.leader()) room_->count = room_->listed.count = 0;
    for (int i = block_.rank(); i < 4 * kFours; i += block_.size())
      room_->maxima[i / 4].of[i % 4] = i == block_.rank() ? mine : 0;
    block_.sync();
    std::uint32_t larger = 0;
#pragma unroll 8
    for (int i = 0; i < kFours; ++i) {
      const FourKeys keys = room_->maxima[i];
      larger += (keys.of[0] > mine) + (keys.of[1] > mine) + (keys.of[2] > mine) + (keys.of[3] > mine);
    }
    return block_.reduce(larger < k ? mine : ~0u, [](std::uint32_t a, std::uint32_t b) { return a < b ? a : b; });
  }

  /// Keeps the entries above which others weigh less than `goal`, and shows each to `then`. Returns the mass that is left.
  template <class Weight, class Then>
  FLYWHEEL_TASK std::uint64_t keep(std::uint64_t goal, Weight&& weight, Then&& then) {
    std::uint32_t stays = 0;
    for (int i = block_.rank(), n = 0; i < count_; i += block_.size(), ++n) {
      const std::uint32_t mine = room_->list[i].key;
      std::uint64_t above = 0;
#pragma unroll 4
      for (int other = 0; other < count_; ++other) above += room_->list[other].key > mine ? weight(room_->list[other]) : 0;
      if (above < goal) stays |= 1u << n;
    }
    block_.sync();  // all have read
    std::uint64_t left = 0;
    for (int i = block_.rank(), n = 0; i < count_; i += block_.size(), ++n) {
      Entry& entry = room_->list[i];
      if (stays >> n & 1) then(entry);
      else entry = {0, entry.token, 0};
      left += entry.mass;
    }
    return block_.reduce(left, [](std::uint64_t a, std::uint64_t b) { return a + b; });  // and its barrier: all have written
  }

  /// The token at which the masses, added up in the order of the vocabulary, first exceed `target`.
  FLYWHEEL_TASK std::uint32_t find(std::uint64_t target) {
    for (int i = block_.rank(); i < count_; i += block_.size()) {
      const Entry mine = room_->list[i];
      std::uint64_t before = 0;
#pragma unroll 4
      for (int other = 0; other < count_; ++other)
        before += room_->list[other].token < mine.token ? room_->list[other].mass : 0;
      if (before <= target && target - before < mine.mass) room_->chosen = mine.token;
    }
    block_.sync();
    return room_->chosen;
  }

  Block& block_;
  Room* room_;
  int count_ = 0;
};

}  // namespace llama
