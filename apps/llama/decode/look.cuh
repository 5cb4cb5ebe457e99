// How a block looks at many logits: with many loads on their way at once.
#pragma once

#include "apps/llama/decode/sampling_numbers.cuh"

namespace llama {

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

/// Adds to a word of scratch. Gives what was there.
template <class Block>
FLYWHEEL_TASK std::uint32_t add_near(const Block&, std::uint32_t& word, std::uint32_t value) {
#ifdef __CUDA_ARCH__
  return atomicAdd(&word,
                   value);  // relaxed. Where the word lies is known, so it is an ATOMS; cuda::atomic_ref's would be an ATOM
#else
  return AtomicRef<std::uint32_t, Scope::block>(word).fetch_add(value, Order::relaxed);
#endif
}

/// use(token, logits) for the thread's logits of `range`, kAtOnce at a time: of tokens that are kLookers apart. Each group of
/// threads has one share of the range. Some that are not in its share it sees as -infinity, which weighs nothing. Loading
/// the next ones ahead takes 30 more registers, which the caller would spill.
template <int kAtOnce, class Block, class Use>
FLYWHEEL_TASK void look_over(const Block& block, const float* logits, const TokenRange& range, Use&& use) {
  constexpr int kApart = kLookers<Block>, kStep = kAtOnce * kApart;
  const TokenRange mine = range.share(group_of(block), kGroups<Block>);
  for (int first = mine.first; first < mine.end; first += kStep) {
    const int token = first + lane_of(block);
    const bool whole = first + kStep <= mine.end;
    float now[kAtOnce];
    if (whole) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) now[i] = logits[token + i * kApart];
    } else {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) now[i] = logits[token + i * kApart < mine.end ? token + i * kApart : first];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (token + i * kApart >= mine.end) now[i] = -std::numeric_limits<float>::infinity();
    }
    use(token, now);
  }
}

}  // namespace llama
