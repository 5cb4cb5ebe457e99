// The few tokens that top-k can leave, found in one look at all logits. Cutting by bisection takes a look for each bit of
// the keys, and at 128,000 tokens a look costs a block several microseconds.
#pragma once

#include "apps/llama/tasks/sampling_numbers.cuh"

namespace flywheel::llama {

inline constexpr std::uint32_t kMostShortlisted = 512;

struct ShortlistEntry {
  std::uint32_t key;
  std::uint32_t token;
  std::uint32_t mass;  // 0 once it is out
};

constexpr int shortlist_scratch(int threads) {
  return threads * 4 + static_cast<int>(kMostShortlisted * sizeof(ShortlistEntry)) + 64;
}

/// All functions are collective over the block, and give what Chooser's cuts and draw give: sums of integers, so in whatever
/// order the tokens came.
template <class Block>
class Shortlist {
 public:
  FLYWHEEL_TASK Shortlist(Block& block, const float* logits, int count) : block_(block), logits_(logits), all_(count) {}

  /// The tokens whose key is at least that of the k-th of all, and some more. `mine`: the largest key among those that this
  /// thread sees in for_each(): the k-th largest of these is no larger than the k-th of all. False if k is too large for
  /// that or the tokens are too many for the list.
  FLYWHEEL_TASK bool gather(std::uint32_t mine, std::uint32_t k) {
    if (k == 0 || k > static_cast<std::uint32_t>(block_.size()) || !take_room()) return false;
    const std::uint32_t least = find_least(mine, k);
    const AtomicRef<std::uint32_t, Scope::block> count(words_->count);
    block_.for_each(all_, [&](int i) {
      const std::uint32_t key = order_key(logits_[i]);
      if (key < least) return;
      const std::uint32_t at = count.fetch_add(1, Order::relaxed);
      if (at < kMostShortlisted) list_[at] = {key, static_cast<std::uint32_t>(i), 0};
    });
    block_.sync();
    count_ = static_cast<int>(words_->count);
    return count_ <= static_cast<int>(kMostShortlisted) && count_ <= kShare * block_.size();
  }

  FLYWHEEL_TASK std::uint32_t draw(const Sampling& how, float largest, std::uint64_t random) {
    const std::uint64_t all = keep(how.top_k, [](const Entry&) -> std::uint64_t { return 1; }, [&](Entry& entry) {
      entry.mass = mass_of(logits_[entry.token], largest, how.temperature);
    });
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
  struct Words {
    std::uint32_t least;
    std::uint32_t count;
    std::uint32_t chosen;
  };

  FLYWHEEL_TASK bool take_room() {
    maxima_ = block_.template scratch<std::uint32_t>(block_.size());
    list_ = block_.template scratch<Entry>(kMostShortlisted);
    words_ = block_.template scratch<Words>(1);
    return maxima_ && list_ && words_;
  }

  /// The k-th largest of what the threads bring.
  FLYWHEEL_TASK std::uint32_t find_least(std::uint32_t mine, std::uint32_t k) {
    maxima_[block_.rank()] = mine;
    if (block_.leader()) words_->count = 0;
    block_.sync();
    std::uint32_t larger = 0, equal = 0;
    for (int i = 0; i < block_.size(); ++i) larger += maxima_[i] > mine, equal += maxima_[i] == mine;
    if (larger < k && k <= larger + equal) words_->least = mine;  // all who do so write the same
    block_.sync();
    return words_->least;
  }

  /// Keeps the entries above which others weigh less than `goal`, and shows each to `then`. Returns the mass that is left.
  template <class Weight, class Then>
  FLYWHEEL_TASK std::uint64_t keep(std::uint64_t goal, Weight&& weight, Then&& then) {
    std::uint32_t stays = 0;
    for (int i = block_.rank(), n = 0; i < count_; i += block_.size(), ++n) {
      std::uint64_t above = 0;
      for (int other = 0; other < count_; ++other)
        if (list_[other].key > list_[i].key) above += weight(list_[other]);
      if (above < goal) stays |= 1u << n;
    }
    block_.sync();  // all have read
    std::uint64_t left = 0;
    for (int i = block_.rank(), n = 0; i < count_; i += block_.size(), ++n) {
      if (stays >> n & 1) then(list_[i]);
      else list_[i] = {0, list_[i].token, 0};
      left += list_[i].mass;
    }
    return block_.reduce(left, [](std::uint64_t a, std::uint64_t b) { return a + b; });  // and its barrier: all have written
  }

  /// The token at which the masses, added up in the order of the vocabulary, first exceed `target`.
  FLYWHEEL_TASK std::uint32_t find(std::uint64_t target) {
    for (int i = block_.rank(); i < count_; i += block_.size()) {
      std::uint64_t before = 0;
      for (int other = 0; other < count_; ++other)
        if (list_[other].token < list_[i].token) before += list_[other].mass;
      if (before <= target && target - before < list_[i].mass) words_->chosen = list_[i].token;
    }
    block_.sync();
    return words_->chosen;
  }

  Block& block_;
  const float* logits_;
  int all_;
  int count_ = 0;
  std::uint32_t* maxima_ = nullptr;
  Entry* list_ = nullptr;
  Words* words_ = nullptr;
};

}  // namespace flywheel::llama
