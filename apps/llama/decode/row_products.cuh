// A weight matrix's products with a vector, row by row.
#pragma once

#include "apps/llama/checkpoint/matrix.cuh"
#include "apps/llama/decode/arithmetic.cuh"

namespace llama {

/// Eight values by 16-byte loads.
FLYWHEEL_TASK inline void load_chunk(const float* from, float (&to)[kChunk]) {
  struct alignas(16) Quad {
    float values[4];
  };
  const Quad low = reinterpret_cast<const Quad*>(from)[0];
  const Quad high = reinterpret_cast<const Quad*>(from)[1];
  for (int i = 0; i < 4; ++i) to[i] = low.values[i];
  for (int i = 0; i < 4; ++i) to[i + 4] = high.values[i];
}
FLYWHEEL_TASK inline void load_chunk(const Bf16* from, float (&to)[kChunk]) {
  struct alignas(16) Quad {
    std::uint32_t pairs[4];
  };
  const Quad quad = *reinterpret_cast<const Quad*>(from);
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = std::bit_cast<float>(quad.pairs[i] << 16);
    to[2 * i + 1] = std::bit_cast<float>(quad.pairs[i] & 0xffff0000u);
  }
}

/// One row's partial sums: 8 for each lane. Lane l takes columns 8l..8l+7, then those 256 further on, and so
/// forth.
template <class Block>
struct RowSum {
  static constexpr int kWidth = kLanesPlayed<Block> * kChunk;
  float sums[kWidth] = {};

  FLYWHEEL_TASK float total() const {
    float lanes[kLanesPlayed<Block>];
    for (int lane = 0; lane < kLanesPlayed<Block>; ++lane) {
      const float* s = sums + lane * kChunk;
      lanes[lane] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
    return add_lanes<Block>(lanes);
  }
};

template <class Block, class W>
FLYWHEEL_TASK void accumulate(RowSum<Block>& row, const W* weights, const float* x, int n) {
  if constexpr (kLanesPlayed<Block> == 1) {
    float w[kChunk];
    load_chunk(weights, w);
    for (int i = 0; i < kChunk; ++i) row.sums[i] += w[i] * x[i];
  } else {
    for (int i = 0; i < n; ++i) row.sums[i] += to_float(weights[i]) * x[i];
  }
}

struct Pair {
  float a, b;
};

/// Two rows' products with x[0..n). Two at a time, because a lane then has twice the loads in flight and
/// reads x once. The whole group calls.
template <class Block, class W>
FLYWHEEL_TASK Pair dot_pair(const Block& block, const W* row_a, const W* row_b, const float* x, int n) {
  constexpr int kWidth = RowSum<Block>::kWidth;
  RowSum<Block> a, b;
  for (int at = lane_of(block) * kChunk; at < n; at += kLanes * kChunk) {
    const int width = n - at < kWidth ? n - at : kWidth;
    if constexpr (kLanesPlayed<Block> == 1) {
      float values[kChunk];
      load_chunk(x + at, values);
      accumulate(a, row_a + at, values, width);
      accumulate(b, row_b + at, values, width);
    } else {
      accumulate(a, row_a + at, x + at, width);
      accumulate(b, row_b + at, x + at, width);
    }
  }
  return {a.total(), b.total()};
}

/// use(row, row of `m` times x) for rows [first, last), shared out over the groups; one thread makes the
/// call.
template <class Block, class Use>
FLYWHEEL_TASK void multiply_rows(const Block& block, const Matrix& m, const float* x, int first, int last, Use&& use) {
  m.visit([&](const auto* weights) {
    const std::size_t columns = static_cast<std::size_t>(m.columns);
    for (int row = first + 2 * group_of(block); row < last; row += 2 * kGroups<Block>) {
      const int next = row + 1 < last ? row + 1 : row;
      const Pair dots = dot_pair(block, weights + row * columns, weights + next * columns, x, m.columns);
      if (lane_of(block) != 0) continue;
      use(row, dots.a);
      if (next != row) use(next, dots.b);
    }
  });
}

/// The same for the rows of two matrices of one shape and type side by side: use(row, a's product, b's
/// product).
template <class Block, class Use>
FLYWHEEL_TASK void multiply_row_pairs(const Block& block, const Matrix& a, const Matrix& b, const float* x, int first, int last,
                                      Use&& use) {
  a.visit([&](const auto* weights) {
    const auto* others = static_cast<decltype(weights)>(b.data);
    for (int row = first + group_of(block); row < last; row += kGroups<Block>) {
      const std::size_t at = static_cast<std::size_t>(row) * static_cast<std::size_t>(a.columns);
      const Pair dots = dot_pair(block, weights + at, others + at, x, a.columns);
      if (lane_of(block) == 0) use(row, dots.a, dots.b);
    }
  });
}

}  // namespace llama
