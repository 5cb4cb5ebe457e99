// How a block looks at many logits: with many loads on their way at once.
#pragma once

#include "apps/llama/tasks/sampling_numbers.cuh"

namespace flywheel::llama {

/// Neighbouring tokens, `end` not among them.
struct TokenRange {
  int first, end;

  FLYWHEEL_TASK int size() const { return end - first; }
  /// The i-th of `count` shares.
  FLYWHEEL_TASK TokenRange share(int i, int count) const {
    const int each = (size() + count - 1) / count;
    return {up_to_end(first + i * each), up_to_end(first + (i + 1) * each)};
  }

 private:
  FLYWHEEL_TASK int up_to_end(int token) const { return token < end ? token : end; }
};

/// As many threads as look at neighbouring logits together.
template <class Block>
inline constexpr int kLookers = kLanes / kLanesPlayed<Block>;

/// A pointer that scratch() gave: a GPU's threads shall know that it is shared memory.
template <class Block, class T>
FLYWHEEL_TASK T* near(const Block&, T* scratch) {
  if constexpr (Block::kOnGpu) return Block::in_scratch(scratch);
  else return scratch;
}

/// use(token, logit) for the thread's logits of `range`: each group of threads has one share of it. What is next is on its way
/// while a thread uses what is there. (A block of 256 threads has 16 KB on their way.)
template <class Block, class Use>
FLYWHEEL_TASK void look_over(const Block& block, const float* logits, const TokenRange& range, Use&& use) {
  constexpr int kAtOnce = 16, kApart = kLookers<Block>;
  const TokenRange mine = range.share(group_of(block), kGroups<Block>);
  float next[kAtOnce];
  const auto load = [&](int first) {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) next[i] = first + i * kApart < mine.end ? logits[first + i * kApart] : 0.f;
  };
  int first = mine.first + lane_of(block);
  load(first);
  for (; first < mine.end; first += kAtOnce * kApart) {
    float now[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) now[i] = next[i];
    load(first + kAtOnce * kApart);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i * kApart < mine.end) use(first + i * kApart, now[i]);
  }
}

}  // namespace flywheel::llama
