// The KV cache of the tuned decode: halves, in tiles of 16 positions by 16 dimensions that lie as tensor cores take them.
#pragma once

#include "apps/llama/decode/half.cuh"

namespace llama {

/// Keys and values of one layer: [sequences][kv heads], then tiles by position and by dimension.
struct TunedCache {
  Half* keys;
  Half* values;

  /// Of the n-th head of all texts, of so many positions.
  FLYWHEEL_TASK TunedCache head(int n, int positions, int head_dim) const {
    const std::size_t at =
        static_cast<std::size_t>(n) * static_cast<std::size_t>(positions) * static_cast<std::size_t>(head_dim);
    return {keys + at, values + at};
  }
  FLYWHEEL_TASK static std::size_t tile(int position, int dim, int head_dim) {
    return static_cast<std::size_t>(position / 16 * (head_dim / 16) + dim / 16) * 256;
  }
  /// Of a key, in elements from the head's begin: lane (position % 8, dimension / 4 % 4) holds 4 dimensions of two positions.
  FLYWHEEL_TASK static std::size_t key_at(int position, int dim, int head_dim) {
    const int lane = position % 8 * 4 + dim % 16 / 4, word = position % 16 / 8 + dim % 4 / 2 * 2;
    return tile(position, dim, head_dim) + static_cast<std::size_t>(lane * 8 + word * 2 + dim % 2);
  }
  /// Of a value: lane (dimension % 8, position / 2 % 4).
  FLYWHEEL_TASK static std::size_t value_at(int position, int dim, int head_dim) {
    const int lane = dim % 8 * 4 + position % 8 / 2, word = dim % 16 / 8 + position % 16 / 8 * 2;
    return tile(position, dim, head_dim) + static_cast<std::size_t>(lane * 8 + word * 2 + position % 2);
  }
};

inline constexpr int kHeadsTogether = 4;

/// A part of the context of a step.
struct Span {
  int position;     // of the step
  int first, last;  // positions first..last-1
  int used;         // parts that have any
  int begin = 0;    // of what is attended to: positions before it are in a part only to fill its first tile

  FLYWHEEL_TASK bool has_step() const { return first <= position && position < last; }
};

}  // namespace llama
