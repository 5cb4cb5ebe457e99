// The largest logit of each small group of rows, left by the tasks that make the logits. Few groups matter to a draw, and the
// logits of the others are not read. (Llama-3.2-1B on an H200, top-k 50 and top-p 0.95: a drawn token takes 0.018 ms more than
// the likeliest one, and 0.147 ms more where all 128,256 logits are read.)
#pragma once

#include "apps/llama/decode/sampling.cuh"
#include "apps/llama/tuned/sums.cuh"

namespace llama {

/// The groups of a task's rows, the same in all tasks: the rows that one lane of the warp that stores sees, see LaneRows.
struct RowGroups {
  int sequences;

  FLYWHEEL_TASK constexpr int each() const { return rows_of_lane(sequences); }
  FLYWHEEL_TASK constexpr int count() const { return rows_of_handoff(sequences) / each(); }
  /// The i-th row of a group, from 0: from the task's first. They go up.
  FLYWHEEL_TASK int row(int group, int i) const {
    const int each_log = flywheel::detail::lowest_bit(static_cast<std::uint64_t>(each()));
    return (i >> each_log) * rows_of_handoff(sequences) + (group << each_log) + (i & (each() - 1));
  }
  /// As many as a group of a task of `rows` rows has at most.
  FLYWHEEL_TASK int rows_of_group(int rows) const {
    return (rows + rows_of_handoff(sequences) - 1) / rows_of_handoff(sequences) * each();
  }
};

/// What the tasks that make a text's logits leave.
struct LogitsLeft {
  const float* logits;             // [vocabulary]
  const std::uint32_t* maxima;     // [tasks][groups]: keys
  const std::int32_t* first_rows;  // [tasks + 1]: of each task, and where the last one ends
  std::int32_t vocabulary, tasks, sequences;
};

/// Their maxima, for all threads of a block.
template <class Block>
class LogitMaxima {
 public:
  FLYWHEEL_TASK LogitMaxima(const Block& block, const LogitsLeft& left)
      : block_(block),
        left_(left),
        groups_{left.sequences},
        count_(left.tasks * groups_.count()) {}

  /// Of the groups that are this thread's.
  FLYWHEEL_TASK std::uint32_t largest_of_mine() const {
    std::uint32_t largest = 0;
    look([&](int, std::uint32_t key) { largest = key > largest ? key : largest; });
    return largest;
  }

  /// Collective. use(token, logit) for all tokens of groups whose largest key is `least` or more; false if they are too many to
  /// be listed. Threads list the groups, then each warp has some.
  template <class Use>
  FLYWHEEL_TASK bool visit(std::uint32_t least, ListedGroups& listed, Use&& use) const {
    look([&](int group, std::uint32_t key) {
      if (key < least) return;
      const std::uint32_t at = add_near(block_, listed.count, 1);
      if (at < kMostShortlisted) listed.groups[at] = static_cast<std::uint32_t>(group);
    });
    block_.sync();
    const int all = static_cast<int>(listed.count);
    if (all > static_cast<int>(kMostShortlisted)) return false;
    for (int n = group_of(block_); n < all; n += kAtOnce * kGroups<Block>) visit_some(listed.groups + n, all - n, use);
    return true;
  }

 private:
  static constexpr int kAtOnce = 8;

  /// use(group, key) for the thread's groups, four neighbours at a time. Behind the last there is room for whole fours.
  template <class Use>
  FLYWHEEL_TASK void look(Use&& use) const {
    constexpr int kFours = 5;  // of 132 tasks, one text: all at once
    const auto* fours = reinterpret_cast<const FourKeys*>(left_.maxima);
    for (int first = block_.rank(); 4 * first < count_; first += kFours * block_.size()) {
      FourKeys keys[kFours] = {};
#pragma unroll
      for (int i = 0; i < kFours; ++i)
        if (4 * (first + i * block_.size()) < count_) keys[i] = fours[first + i * block_.size()];
#pragma unroll
      for (int i = 0; i < 4 * kFours; ++i)
        if (const int group = 4 * (first + i / 4 * block_.size()) + i % 4; group < count_) use(group, keys[i / 4].of[i % 4]);
    }
  }

  struct Rows {
    int first, count, group;
  };
  FLYWHEEL_TASK Rows rows_of(std::uint32_t listed) const {
    const int task = static_cast<int>(listed) / groups_.count(), first = left_.first_rows[task];
    return {first, left_.first_rows[task + 1] - first, static_cast<int>(listed) % groups_.count()};
  }

  /// One of the groups that are listed, and the kAtOnce - 1 that are the warp's next.
  template <class Use>
  FLYWHEEL_TASK void visit_some(const std::uint32_t* listed, int left, Use&& use) const {
    Rows rows[kAtOnce];
    int most = 0;
#pragma unroll
    for (int g = 0; g < kAtOnce; ++g) {
      rows[g] = g * kGroups<Block> < left ? rows_of(listed[g * kGroups<Block>]) : Rows{0, 0, 0};
      most = rows[g].count > most ? rows[g].count : most;
    }
    for (int i = lane_of(block_); i < groups_.rows_of_group(most); i += kLookers<Block>) {
      float logits[kAtOnce];
#pragma unroll
      for (int g = 0; g < kAtOnce; ++g) {
        const int row = groups_.row(rows[g].group, i);
        logits[g] = row < rows[g].count ? left_.logits[rows[g].first + row] : 0.f;
      }
#pragma unroll
      for (int g = 0; g < kAtOnce; ++g) {
        const int row = groups_.row(rows[g].group, i);
        if (row < rows[g].count) use(rows[g].first + row, logits[g]);
      }
    }
  }

  const Block& block_;
  LogitsLeft left_;
  RowGroups groups_;
  int count_;
};

/// Collective, as choose_token(): draws a token without a look at all logits, if it can.
template <class Block>
FLYWHEEL_COLD std::uint32_t draw_token(Block block, LogitsLeft left, Sampling how, std::uint32_t position) {
  const LogitMaxima<Block> maxima(block, left);
  const std::uint32_t mine = maxima.largest_of_mine();
  const float largest = keyed(block.reduce(mine, [](std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }));
  block.borrow_handoffs();
  std::uint32_t token = 0;  // without numbers there is none, but the caller may look up an embedding before the run ends
  if (!(largest - largest == 0)) block.fail(kLogitsNotFinite);
  else
    token = Chooser<Block>(block, left.logits, left.vocabulary)
                .draw(how, position, largest, mine,
                      [&](std::uint32_t least, ListedGroups& listed, auto&& use) { return maxima.visit(least, listed, use); });
  block.sync();
  return token;
}

}  // namespace llama
