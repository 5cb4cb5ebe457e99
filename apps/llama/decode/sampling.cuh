// From logits to the next token.
#pragma once

#include "apps/llama/decode/all_tokens.cuh"
#include "apps/llama/decode/shortlist.cuh"

namespace llama {

/// In scratch.
template <int kThreads>
union ChooserRoom {
  ShortlistRoom<kThreads> few;
  AllTokensRoom<kThreads> all;
};

template <int kThreads>
constexpr int chooser_scratch() {
  return static_cast<int>(sizeof(ChooserRoom<kThreads>));
}

/// Chooses one token. All functions are collective over the block.
template <class Block>
class Chooser {
 public:
  FLYWHEEL_TASK Chooser(Block& block, const float* logits, int count) : block_(block), logits_(logits), count_(count) {}

  /// Has a look at all logits first.
  FLYWHEEL_TASK std::uint32_t choose(const Sampling& how, std::uint32_t position) {
    const auto larger = [](std::uint64_t a, std::uint64_t b) { return a > b ? a : b; };
    std::uint64_t most = 0;
    std::uint32_t least = 0;  // the key of that
    look(least, [&](int token, float logit) {
      most = larger(most, likelier_of(logit, token));
      least = key_of(most);
    });
    const std::uint64_t best = block_.reduce(most, larger);
    const float largest = keyed(key_of(best));
    const bool finite = largest - largest == 0;
    if (!finite) block_.fail(kLogitsNotFinite);
    // Nothing can be drawn without numbers, and the caller may look up the token's embedding before the run ends.
    if (!finite || how.temperature == 0) return ~static_cast<std::uint32_t>(best);
    return draw(how, position, largest, key_of(most), [this](std::uint32_t wanted, ListedGroups&, auto&& use) {
      look(wanted, use);
      return true;
    });
  }

  /// Draws one: the largest logit is known, and a number. `mine` and `find`: see Shortlist::gather().
  template <class Find>
  FLYWHEEL_TASK std::uint32_t draw(const Sampling& how, std::uint32_t position, float largest, std::uint32_t mine,
                                   Find&& find) {
    using Room = ChooserRoom<Block::size()>;
    Room* room = block_.template scratch<Room>(1);
    if (!room) return 0;
    const std::uint64_t random = random_bits(how.seed, position);
    Shortlist<Block> few(block_, near(block_, &room->few));
    if (few.gather(mine, how.top_k, find)) return few.draw(how, largest, random);
    block_.sync();  // all have seen that the list will not do
    return AllTokens<Block>(block_, near(block_, &room->all), logits_, count_, largest, how.temperature).draw(how, random);
  }

 private:
  FLYWHEEL_TASK static std::uint32_t key_of(std::uint64_t likelier) { return static_cast<std::uint32_t>(likelier >> 32); }
  /// use(token, logit) for the thread's tokens whose key is at least `least`, which use() may raise, and for some others. Most
  /// are below it, so the largest key of several is looked at first.
  template <class Use>
  FLYWHEEL_TASK void look(const std::uint32_t& least, Use&& use) const {
    look_over<16>(block_, logits_, {0, count_}, [&](int first, const float(&logits)[16]) {
      std::uint32_t largest = 0;
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const std::uint32_t key = order_key(logits[i]);
        largest = key > largest ? key : largest;
      }
      if (largest < least) return;
#pragma unroll
      for (int i = 0; i < 16; ++i)
        if (const int token = first + i * kLookers<Block>; token < count_) use(token, logits[i]);
    });
  }

  Block& block_;
  const float* logits_;
  int count_;
};

/// Collective. Chooses one token. Out of line: it is long, and the bodies around it shall keep their registers. It works on
/// a copy of the block, whose barrier at the end makes scratch and reduce() good for the caller's again.
template <class Block>
FLYWHEEL_COLD std::uint32_t choose_token(Block block, const float* logits, int count, Sampling how, std::uint32_t position) {
  const std::uint32_t token = Chooser<Block>(block, logits, count).choose(how, position);
  block.sync();
  return token;
}

}  // namespace llama
