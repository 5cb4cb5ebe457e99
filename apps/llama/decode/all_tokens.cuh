// Drawing from all tokens, or from more than a shortlist holds: a few looks at all logits, where cutting by bisection alone
// would take one for each bit of the keys. (Llama-3.2-1B on an H200: 0.085 ms more than the likeliest token with a temperature
// alone, 0.230 with top-p 0.95, 0.280 with top-k 600 as well.)
#pragma once

#include "apps/llama/decode/look.cuh"

namespace llama {

inline constexpr int kBins = 1024;

/// The bin that a token falls into. 0 is that of the likeliest; those in the last have no mass. It orders as the logits do, for
/// all that is done to them does.
FLYWHEEL_TASK inline int bin_of(float exponent) {
  const float bin = exponent * ((kBins - 1) / kNoMass);
  return bin < kBins - 1 ? static_cast<int>(bin) : kBins - 1;  // NaN is in the last
}

/// In scratch.
template <int kThreads>
struct AllTokensRoom {
  static constexpr int kRow = 16;
  static constexpr int kWords = 2 * kBins;

  std::uint64_t sums[kThreads];
  std::uint64_t rows[(kThreads + kRow - 1) / kRow];  // sums of a row of threads
  std::uint64_t rest;
  std::uint64_t above;
  TokenRange range;
  std::uint32_t bin;
  std::uint32_t count;
  std::uint32_t chosen;
  std::uint32_t words[kWords];  // what the bins weigh: lower halves, then upper ones; after that, the keys of one of them
};

/// All functions are collective over the block.
template <class Block>
class AllTokens {
 public:
  using Room = AllTokensRoom<Block::size()>;
  FLYWHEEL_TASK AllTokens(Block& block, Room* room, const float* logits, int count, float largest, float temperature)
      : block_(block),
        room_(room),
        logits_(logits),
        all_{0, count},
        exponent_(largest, temperature),
        largest_(largest),
        temperature_(temperature) {}

  /// The token that Sampling's filters and `random` choose.
  FLYWHEEL_TASK std::uint32_t draw(const Sampling& how, std::uint64_t random) {
    for (const Weight weight : {Weight::one, Weight::mass})  // a loop, so that its code is there once
      if (weight == Weight::one ? how.top_k > 0 : how.top_p < 1) cut(weight, how);
    return find(random);
  }

 private:
  enum class Weight { one, mass };  // of each token
  struct Tally {
    std::uint64_t weight;
    std::uint64_t count;
  };
  /// Of the tokens in a bin: from the least to the largest key.
  struct Keys {
    std::uint32_t least, largest;
  };

  FLYWHEEL_TASK static std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a + b; }

  /// Raises the floor to the highest above which tokens are top_k or more, or have top_p of the mass. Tokens equal to the last
  /// one needed stay in, too; so do all if they are too few. Those without mass are not asked: whether they stay makes no
  /// difference.
  FLYWHEEL_TASK void cut(Weight weight, const Sampling& how) {
    const std::uint64_t mine = spread(weight), all = block_.reduce(mine, sum);
    std::uint64_t goal = how.top_k;
    if (weight == Weight::mass) goal = static_cast<std::uint64_t>(static_cast<double>(how.top_p) * static_cast<double>(all));
    if (goal == 0) goal = 1;
    if (all < goal) return;
    find_bin(mine, goal);
    const Keys keys = collect(static_cast<int>(room_->bin));
    floor_ = bisect(keys, goal, weight);
  }

  /// What each bin weighs. Returns the sum of this thread's bins.
  FLYWHEEL_TASK std::uint64_t spread(Weight weight) {
    block_.for_each(Room::kWords, [&](int i) { room_->words[i] = 0; });
    block_.sync();
    look_over<8>(block_, logits_, all_, [&](int, const float(&logits)[8]) {
      std::uint32_t masses[8];  // all before the first is added: what comes after an addition would wait for it
      int bins[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float exponent = exponent_(logits[i]);
        masses[i] = mass_of(exponent);
        bins[i] = order_key(logits[i]) >= floor_ ? bin_of(exponent) : kBins - 1;
      }
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (bins[i] < kBins - 1) add(bins[i], weight == Weight::one ? 1 : masses[i]);
    });
    block_.sync();
    std::uint64_t mine = 0;
    const TokenRange bins = my_bins();
    for (int bin = bins.first; bin < bins.end; ++bin) mine += in_bin(bin);
    return mine;
  }
  /// Shared memory adds 4 bytes at once: who makes the lower half run over tells the upper one.
  FLYWHEEL_TASK void add(int bin, std::uint32_t weight) {
    if (add_near(block_, room_->words[bin], weight) + weight < weight) add_near(block_, room_->words[kBins + bin], 1);
  }
  FLYWHEEL_TASK TokenRange my_bins() const { return TokenRange{0, kBins}.share(block_.rank(), block_.size()); }
  FLYWHEEL_TASK std::uint64_t in_bin(int bin) const {
    return std::uint64_t{room_->words[kBins + bin]} << 32 | room_->words[bin];
  }

  /// The bin in which the sum of the weights reaches `goal`, and what is above it.
  FLYWHEEL_TASK void find_bin(std::uint64_t mine, std::uint64_t goal) {
    if (block_.leader()) room_->count = 0;
    std::uint64_t above = before(mine);
    if (above < goal && goal <= above + mine) {
      int bin = my_bins().first;
      for (; above + in_bin(bin) < goal; ++bin) above += in_bin(bin);
      room_->bin = static_cast<std::uint32_t>(bin);
      room_->above = above;
    }
    block_.sync();
  }

  /// Lists the keys of a bin, as many as there is room for.
  FLYWHEEL_TASK Keys collect(int bin) {
    const float width = temperature_ * (kNoMass / (kBins - 1)), middle = static_cast<float>(bin) + 0.5f;
    const float least = largest_ + (middle + 1) * width,
                most = largest_ + (middle - 1) * width;  // half a bin to spare, for rounding
    Keys mine{~0u, 0};
    const auto list = [&](float logit) {
      if (bin_of(exponent_(logit)) != bin) return;
      const std::uint32_t key = order_key(logit);
      mine = {key < mine.least ? key : mine.least, key > mine.largest ? key : mine.largest};
      const std::uint32_t at = add_near(block_, room_->count, 1);
      if (at < Room::kWords) room_->words[at] = key;
    };
    look_over<16>(block_, logits_, all_, [&](int, const float(&logits)[16]) {
      std::uint32_t near_bin = 0;
#pragma unroll
      for (int i = 0; i < 16; ++i) near_bin |= (least <= logits[i] && logits[i] <= most) << i;
      if (near_bin == 0) return;  // so it is mostly
#pragma unroll
      for (int i = 0; i < 16; ++i)
        if (near_bin >> i & 1) list(logits[i]);
    });
    return block_.reduce(mine, [](Keys a, Keys b) {
      return Keys{a.least < b.least ? a.least : b.least, a.largest > b.largest ? a.largest : b.largest};
    });
  }

  /// The highest floor among `keys` above which tokens weigh `goal`. Over when one token is left between the bounds.
  FLYWHEEL_TASK std::uint32_t bisect(const Keys& keys, std::uint64_t goal, Weight weight) {
    std::uint32_t low = keys.least, high = keys.largest + 1;
    std::uint64_t above = room_->above, left = room_->count;
    while (high - low > 1 && left > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      const Tally upper = between(middle, high, weight);
      const bool enough = above + upper.weight >= goal;
      left = enough ? upper.count : left - upper.count;
      above += enough ? 0 : upper.weight;
      (enough ? low : high) = middle;
    }
    return low;
  }

  /// Tokens with keys from `low` to before `high`, all in the bin. If the list could not take all, it has a look at all logits.
  FLYWHEEL_TASK Tally between(std::uint32_t low, std::uint32_t high, Weight weight) {
    Tally mine{0, 0};
    const auto tell = [&](std::uint32_t key) {
      if (key < low || key >= high) return;
      mine.weight += weight == Weight::one ? 1 : mass_of(exponent_(keyed(key)));
      ++mine.count;
    };
    if (room_->count <= Room::kWords) block_.for_each(static_cast<int>(room_->count), [&](int i) { tell(room_->words[i]); });
    else
      look_over<4>(block_, logits_, all_, [&](int, const float(&logits)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) tell(order_key(logits[i]));
      });
    return block_.reduce(mine, [](Tally a, Tally b) { return Tally{a.weight + b.weight, a.count + b.count}; });
  }

  FLYWHEEL_TASK std::uint32_t mass_above(float logit) const {
    const std::uint32_t mass = mass_of(exponent_(logit));
    return order_key(logit) >= floor_ ? mass : 0;
  }
  FLYWHEEL_TASK std::uint64_t my_mass(const TokenRange& range) const {
    const float least = keyed(floor_);
    std::uint64_t mine = 0;
    look_over<16>(block_, logits_, range, [&](int, const float(&logits)[16]) {
      float largest = -std::numeric_limits<float>::infinity();
#pragma unroll
      for (int i = 0; i < 16; ++i) largest = logits[i] > largest ? logits[i] : largest;
      if (largest < least) return;  // so it is mostly, if there is a floor
#pragma unroll
      for (int i = 0; i < 16; ++i) mine += mass_above(logits[i]);
    });
    return mine;
  }

  /// The token at which the masses, added up in the order of the vocabulary, first exceed a random share of what all weigh. It
  /// is narrowed down to a group's share of the tokens as long as those are many, then to a thread's.
  FLYWHEEL_TASK std::uint32_t find(std::uint64_t random) {
    constexpr int kFew = 8 * Block::size();
    TokenRange range = all_;
    std::uint64_t mine = 0, rest = 0;
    for (bool whole = true; whole || range.size() > kFew; whole = false) {
      mine = my_mass(range);
      if (whole) rest = scale_down(random, block_.reduce(mine, sum));
      if (kGroups<Block> == 1 || range.size() <= kFew) break;
      narrow(range, mine, rest);
      range = room_->range;
      rest = room_->rest;
    }
    const TokenRange share = range.share(block_.rank(), block_.size());
    mine = 0;
#pragma unroll 8
    for (int i = share.first; i < share.end; ++i) mine += mass_above(logits_[i]);
    const std::uint64_t first = before(mine);
    if (first <= rest && rest - first < mine) room_->chosen = find_in(share.first, rest - first);
    block_.sync();
    return room_->chosen;
  }
  /// The share of the group whose threads come to more than `rest` with those before them, and what is left of `rest` there.
  /// The one thread of it that does so by itself knows the sums of those before it in the group.
  FLYWHEEL_TASK void narrow(const TokenRange& range, std::uint64_t mine, std::uint64_t rest) {
    std::uint64_t first = before(mine);
    if (first <= rest && rest - first < mine) {
      for (int thread = block_.rank() - lane_of(block_); thread < block_.rank(); ++thread) first -= room_->sums[thread];
      room_->range = range.share(group_of(block_), kGroups<Block>);
      room_->rest = rest - first;
    }
    block_.sync();
  }
  FLYWHEEL_TASK std::uint32_t find_in(int token, std::uint64_t rest) const {
    for (;; ++token) {
      const std::uint32_t mass = mass_above(logits_[token]);
      if (rest < mass) return static_cast<std::uint32_t>(token);
      rest -= mass;
    }
  }

  /// The sum of what the threads before this one bring: of those in its row, then of the rows before.
  FLYWHEEL_TASK std::uint64_t before(std::uint64_t mine) {
    constexpr int kRow = Room::kRow;
    const int rank = block_.rank(), row = rank / kRow;
    room_->sums[rank] = mine;
    block_.sync();
    std::uint64_t sum = 0;
    for (int thread = row * kRow; thread < rank; ++thread) sum += room_->sums[thread];
    if (rank % kRow == kRow - 1) room_->rows[row] = sum + mine;
    block_.sync();
    for (int other = 0; other < row; ++other) sum += room_->rows[other];
    return sum;
  }

  Block& block_;
  Room* room_;
  const float* logits_;
  TokenRange all_;
  Exponents exponent_;
  float largest_, temperature_;
  std::uint32_t floor_ = order_key(-std::numeric_limits<float>::infinity());  // tokens whose key is below are out
};

}  // namespace llama
