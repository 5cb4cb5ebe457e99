// From logits to the next token.
#pragma once

#include "apps/llama/tasks/shortlist.cuh"

namespace flywheel::llama {

/// Scratch that a Chooser takes at most, in bytes: a shortlist, and a sum a thread.
constexpr int chooser_scratch(int threads) { return shortlist_scratch(threads) + threads * 8 + 32; }

/// Chooses one token. All functions are collective over the block.
template <class Block>
class Chooser {
 public:
  /// `mass` is room for one number a token.
  FLYWHEEL_TASK Chooser(Block& block, const float* logits, std::uint32_t* mass, int count)
      : block_(block), logits_(logits), mass_(mass), count_(count) {}

  FLYWHEEL_TASK std::uint32_t operator()(const Sampling& how, std::uint32_t position) {
    const std::uint32_t best = likeliest();
    const bool finite = logits_[best] - logits_[best] == 0;
    if (!finite) block_.fail(kLogitsNotFinite);
    // Nothing can be drawn without numbers, and the caller may look up the token's embedding before the run ends.
    if (!finite || how.temperature == 0) return best;
    Shortlist<Block> few(block_, logits_, count_);
    if (few.gather(largest_of_mine_, how.top_k)) return few.draw(how, logits_[best], random_bits(how.seed, position));
    weigh(logits_[best], how.temperature);
    std::uint32_t floor = 0;  // tokens whose key is below are out
    if (how.top_k) floor = cut(floor, how.top_k, [](int) -> std::uint64_t { return 1; });
    const auto mass = [this](int i) -> std::uint64_t { return mass_[i]; };
    if (how.top_p < 1) {
      const double goal = static_cast<double>(how.top_p) * static_cast<double>(above(floor, mass).weight);
      floor = cut(floor, static_cast<std::uint64_t>(goal), mass);
    }
    return draw(floor, scale_down(random_bits(how.seed, position), above(floor, mass).weight));
  }

 private:
  struct Tally {
    std::uint64_t weight;
    std::uint64_t count;
  };

  FLYWHEEL_TASK std::uint32_t key(int i) const { return order_key(logits_[i]); }

  /// The first of the largest logits.
  FLYWHEEL_TASK std::uint32_t likeliest() {
    std::uint64_t best = 0;
    const auto larger = [](std::uint64_t a, std::uint64_t b) { return a > b ? a : b; };
    block_.for_each(count_, [&](int i) {
      best = larger(best, static_cast<std::uint64_t>(key(i)) << 32 | ~static_cast<std::uint32_t>(i));
    });
    largest_of_mine_ = static_cast<std::uint32_t>(best >> 32);
    return ~static_cast<std::uint32_t>(block_.reduce(best, larger));
  }

  FLYWHEEL_TASK void weigh(float largest, float temperature) {
    block_.for_each(count_, [&](int i) {
      mass_[i] = mass_of(logits_[i], largest, temperature);
    });
    block_.sync();
  }

  /// Of the tokens whose key is at least `floor`: how many, and what they weigh.
  template <class Weight>
  FLYWHEEL_TASK Tally above(std::uint64_t floor, Weight&& weight) {
    Tally mine{0, 0};
    block_.for_each(count_, [&](int i) {
      if (key(i) < floor) return;
      mine.weight += weight(i);
      ++mine.count;
    });
    return block_.reduce(mine, [](Tally a, Tally b) {
      return Tally{a.weight + b.weight, a.count + b.count};
    });
  }

  /// The highest floor above which tokens weigh `goal` or more; `low` if those above `low` weigh less. Tokens
  /// equal to the last one needed stay in too. Bisection of the keys, over when one token is left between the
  /// bounds.
  template <class Weight>
  FLYWHEEL_TASK std::uint32_t cut(std::uint64_t low, std::uint64_t goal, Weight&& weight) {
    if (goal == 0) goal = 1;
    std::uint64_t high = std::uint64_t{1} << 32;
    std::uint64_t above_low = above(low, weight).count, above_high = 0;
    while (high - low > 1 && above_low - above_high > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      const Tally tally = above(middle, weight);
      (tally.weight >= goal ? low : high) = middle;
      (tally.weight >= goal ? above_low : above_high) = tally.count;
    }
    return static_cast<std::uint32_t>(low);
  }

  /// The token at which the masses, added up in the order of the vocabulary, first exceed `target`. Each
  /// thread adds up a share of the vocabulary, then learns from the others' sums whether the target lies in
  /// its own.
  FLYWHEEL_TASK std::uint32_t draw(std::uint32_t floor, std::uint64_t target) {
    std::uint64_t* sums = block_.template scratch<std::uint64_t>(block_.size());
    std::uint32_t* chosen = block_.template scratch<std::uint32_t>(1);
    if (!sums || !chosen) return 0;
    const int share = (count_ + block_.size() - 1) / block_.size();
    const int first = block_.rank() * share, last = first + share < count_ ? first + share : count_;
    std::uint64_t sum = 0;
    for (int i = first; i < last; ++i) sum += mass_above(i, floor);
    sums[block_.rank()] = sum;
    block_.sync();
    std::uint64_t before = 0;
    for (int thread = 0; thread < block_.rank(); ++thread) before += sums[thread];
    if (before <= target && target - before < sum) *chosen = find(first, floor, target - before);
    block_.sync();
    return *chosen;
  }

  FLYWHEEL_TASK std::uint64_t mass_above(int i, std::uint32_t floor) const {
    return key(i) < floor ? 0 : mass_[i];
  }

  FLYWHEEL_TASK std::uint32_t find(int i, std::uint32_t floor, std::uint64_t rest) const {
    for (; rest >= mass_above(i, floor); ++i) rest -= mass_above(i, floor);
    return static_cast<std::uint32_t>(i);
  }

  Block& block_;
  const float* logits_;
  std::uint32_t* mass_;
  int count_;
  std::uint32_t largest_of_mine_ = 0;  // key, of the tokens that this thread sees
};

/// Collective. Chooses one token. Out of line: it is long, and the bodies around it shall keep their registers. It works on
/// a copy of the block, whose barrier at the end makes scratch and reduce() good for the caller's again.
template <class Block>
FLYWHEEL_COLD std::uint32_t choose_token(Block block, const float* logits, std::uint32_t* mass, int count, Sampling how,
                                         std::uint32_t position) {
  const std::uint32_t token = Chooser<Block>(block, logits, mass, count)(how, position);
  block.sync();
  return token;
}

/// Ends a step: the next token is the prompt's, or one chosen from the logits and streamed to the host. Ends
/// the run at an end-of-text token.
struct Sample {
  const float* logits;
  std::uint32_t* mass;
  const std::uint32_t* prompt;
  const std::uint32_t* ends;  // end-of-text tokens
  StepState* state;
  std::int32_t vocabulary, end_count;
  Param<RunSettings> settings;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const RunSettings run = block.param(settings);
    const std::uint32_t next = state->position + 1;
    const bool given = next < run.prompt_count;
    const std::uint32_t token =
        given ? prompt[next] : choose_token(block, logits, mass, vocabulary, run.sampling, next);
    block.sync();  // every thread has read the state
    if (!block.leader()) return;
    *state = {next, token};
    if (given) return;
    block.emit(WrittenToken{token, 0});
    if (run.stop_at_end && is_end(token)) block.stop();
  }

 private:
  FLYWHEEL_TASK bool is_end(std::uint32_t token) const {
    for (int i = 0; i < end_count; ++i)
      if (ends[i] == token) return true;
    return false;
  }
};

}  // namespace flywheel::llama
