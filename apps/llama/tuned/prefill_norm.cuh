// The norms of a prompt's rows, and of those of a step of many texts. A row is a warp's, which has it in registers; where there
// are few rows, each is a block's.
#pragma once

#include <functional>

#include "apps/llama/tuned/prefill_tasks.cuh"

namespace llama {

/// RMSNorm of the residual stream, as an operand of a product. What the product before has left of its sums is added first.
struct PrefillNorm {
  static constexpr bool kCompiled = false;
  StretchRows rows;
  PartSums added;  // without values: nothing is
  float* x;        // [rows][columns]
  const float* weights;
  flywheel::Bf16* normed;
  std::int32_t columns;
  float eps;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (rows.count == 1) return by_all(block);
    if constexpr (Block::kOnGpu) {
      by_warps(block);
    } else {
      rows.for_each(block, [&](std::size_t row) {
        const std::size_t at = row * static_cast<std::size_t>(columns);
        float squares = 0;
        for (int i = 0; i < columns; i += kChunk) add_squares(at + static_cast<std::size_t>(i), squares);
        const float scale = scale_of(squares);
        for (int i = 0; i < columns; i += kChunk) put(at + static_cast<std::size_t>(i), i, scale);
      });
    }
  }

 private:
  static constexpr int kHeld = 8;  // chunks of a row that a lane has in registers at once
  static constexpr int kApart = kLanes * kChunk, kStretch = kHeld * kApart;  // columns: from one to the next, and of all lanes'

  /// A row a warp, up to kStretch columns at a time, whose loads are under way at once. Out of line: it has registers of its
  /// own.
  template <class Block>
  FLYWHEEL_COLD void by_warps(Block block) const {
    const int live = rows.live(), mine = block.lane() * kChunk;
    FLYWHEEL_ROLLED
    for (int row = block.warp(); row < live; row += kTileWarps) {
      const std::size_t at = static_cast<std::size_t>(rows.first + row) * static_cast<std::size_t>(columns);
      float held[kHeld][kChunk], squares = 0;
      int begin = 0;
      FLYWHEEL_ROLLED
      for (;; begin += kStretch) {
        take(held, at, begin + mine, true);
#pragma unroll
        for (const auto& chunk : held)
#pragma unroll
          for (const float value : chunk) squares = std::fma(value, value, squares);
        if (begin + kStretch >= columns) break;
      }
      const float scale = scale_of(add_up(block, squares));
      FLYWHEEL_ROLLED
      for (;; take(held, at, begin + mine, false)) {  // the stretch before the one that is held
        leave(held, at, begin + mine, scale);
        if (begin == 0) break;
        begin -= kStretch;
      }
    }
  }
  /// The lane's chunks of a stretch, from column `first` on. `adds`: what the product before has left is not in them.
  FLYWHEEL_TASK void take(float (&to)[kHeld][kChunk], std::size_t row, int first, bool adds) const {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
#pragma unroll
      for (float& value : to[k]) value = 0;
      if (first + k * kApart < columns) load_chunk(x + row + static_cast<std::size_t>(first + k * kApart), to[k]);
    }
    if (!adds || !added.values) return;
    const std::size_t apart = static_cast<std::size_t>(added.rows) * static_cast<std::size_t>(columns);
    const float* part = added.values + row;
    FLYWHEEL_ROLLED
    for (int p = 0; p < added.count; p += 2, part += 2 * apart)
#pragma unroll
      for (int some = 0; some < kHeld; some += kHeld / 2) add_two_parts(to, part, p + 1 < added.count ? apart : 0, first, some);
#pragma unroll
    for (int k = 0; k < kHeld; ++k)
      if (first + k * kApart < columns) store_chunk(x + row + static_cast<std::size_t>(first + k * kApart), to[k]);
  }
  /// To half of the chunks: more under way at once would take too many registers. `apart`: to the second part, 0 if there is
  /// none.
  FLYWHEEL_TASK void add_two_parts(float (&to)[kHeld][kChunk], const float* part, std::size_t apart, int first,
                                   int some) const {
    float more[2][kHeld / 2][kChunk] = {};
#pragma unroll
    for (int p = 0; p < 2; ++p)
#pragma unroll
      for (int k = 0; k < kHeld / 2; ++k)
        if (const int column = first + (some + k) * kApart; column < columns && (p == 0 || apart))
          load_chunk(part + static_cast<std::size_t>(p) * apart + column, more[p][k]);
#pragma unroll
    for (int p = 0; p < 2; ++p)
#pragma unroll
      for (int k = 0; k < kHeld / 2; ++k)
#pragma unroll
        for (int i = 0; i < kChunk; ++i) to[some + k][i] += more[p][k][i];
  }
  /// A few chunks at a time, whose weights are loaded at once: as far as the compiler knows what is stored might be weights, so
  /// that the next ones would be a trip to memory each.
  FLYWHEEL_TASK void leave(const float (&from)[kHeld][kChunk], std::size_t row, int first, float scale) const {
    constexpr int kTogether = 4;
#pragma unroll
    for (int begin = 0; begin < kHeld; begin += kTogether) {
      float by[kTogether][kChunk] = {};
#pragma unroll
      for (int k = 0; k < kTogether; ++k)
        if (const int column = first + (begin + k) * kApart; column < columns) load_chunk(weights + column, by[k]);
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int column = first + (begin + k) * kApart;
#pragma unroll
        for (int i = 0; i < kChunk; ++i) by[k][i] = from[begin + k][i] * (scale * by[k][i]);
        if (column < columns) store_chunk(normed + row + static_cast<std::size_t>(column), by[k]);
      }
    }
  }

  /// All threads of the block at one row: few trips to memory, one after the other.
  template <class Block>
  FLYWHEEL_TASK void by_all(Block& block) const {
    if (rows.live() == 0) return;
    const std::size_t at = static_cast<std::size_t>(rows.first) * static_cast<std::size_t>(columns);
    const int step = block.size() * kChunk;
    float squares = 0;
    for (int i = block.rank() * kChunk; i < columns; i += step) add_squares(at + i, squares);
    const float scale = scale_of(block.reduce(squares, std::plus<float>{}));
    for (int i = block.rank() * kChunk; i < columns; i += step) put(at + i, i, scale);
  }
  FLYWHEEL_TASK void add_squares(std::size_t at, float& squares) const {
    float values[kChunk];
    load_chunk(x + at, values);
    if (added.values) {
      float more[kChunk];
      added.load(at, columns, more);
      for (int j = 0; j < kChunk; ++j) values[j] += more[j];
      store_chunk(x + at, values);  // put() reads it again, by the same thread
    }
    for (const float value : values) squares = std::fma(value, value, squares);
  }
  FLYWHEEL_TASK float scale_of(float squares) const {
    return inverse_sqrt(squares * reciprocal(static_cast<float>(columns)) + eps);
  }
  FLYWHEEL_TASK void put(std::size_t at, int column, float scale) const {
    float values[kChunk], by[kChunk];
    load_chunk(x + at, values);
    load_chunk(weights + column, by);
    for (int j = 0; j < kChunk; ++j) values[j] *= scale * by[j];
    store_chunk(normed + at, values);
  }
};

}  // namespace llama
