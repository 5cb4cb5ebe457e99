// A thread's values of C in registers, from rung 5 on: 8 rows, and 8 or 16 columns. A stage has a box of A, 16 lines of 128
// values, and boxes of B, 16 rows of 128 values each.
//
// A is turned on its way to shared memory, value by value, so that a thread's eight values of a step are two loads. As it lies
// in memory, brought by tensor maps, a thread took four values of each of its rows with one load: that cost registers and time,
// see README.md.
#pragma once

#include "apps/ladder/copies.cuh"
#include "apps/ladder/rung_04_registers.cuh"

namespace ladder {

inline constexpr int kBoxColumns = 128;             // of B
inline constexpr int kTurnedLine = kBlockRows + 4;  // 4: the copies of a warp go to 16 banks, two to each
inline constexpr std::size_t kLeftBytes = kDepth * kTurnedLine * sizeof(float),
                             kRightBytes = kDepth * kBoxColumns * sizeof(float);

/// The lanes of a warp stand 4 x 8. A thread has two times four rows, 16 apart, and four columns of every 32.
struct Place {
  int row, column;  // in the boxes; the first of each

  __device__ __forceinline__ Place(int first_row, int first_column)
      : row(first_row + 4 * (static_cast<int>(threadIdx.x) % 32 / 8)),
        column(first_column + 4 * (static_cast<int>(threadIdx.x) % 8)) {}
};

/// Copies a box of A, turned: `kThreads` threads, of which this is number `thread`, walk along the steps together.
template <int kThreads>
class TurnedCopies {
 public:
  __device__ __forceinline__ TurnedCopies(const float* first_row, int n, int thread)
      : from_(first_row + static_cast<std::size_t>(thread / kDepth) * n + thread % kDepth),
        apart_(static_cast<std::size_t>(n) * kRowsAtOnce),
        to_(thread % kDepth * kTurnedLine + thread / kDepth) {}

  /// The copies of one step, the next one.
  __device__ __forceinline__ void copy(float* a) {
    const float* from = from_;
#pragma unroll 8
    for (int i = 0; i < kBlockRows / kRowsAtOnce; ++i, from += apart_) copy4(a + to_ + kRowsAtOnce * i, from);
    from_ += kDepth;
  }

 private:
  static constexpr int kRowsAtOnce = kThreads / kDepth;
  const float* from_;
  std::size_t apart_;
  int to_;
};

/// sums += the boxes' product.
template <int kColumns>
__device__ __forceinline__ void multiply_boxes(const float* a, const float* b, float (&sums)[8][kColumns], const Place& place) {
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    float left[8], right[kColumns];
#pragma unroll
    for (int i = 0; i < 8; i += 4) *reinterpret_cast<float4*>(left + i) = load_four(a + k * kTurnedLine + place.row + 4 * i);
#pragma unroll
    for (int j = 0; j < kColumns; j += 4)
      *reinterpret_cast<float4*>(right + j) = load_four(b + k * kBoxColumns + place.column + 8 * j);
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) sums[i][j] += left[i] * right[j];
  }
}

/// Stores them to a tile whose rows are `pitch` values apart.
template <int kColumns>
__device__ __forceinline__ void store_sums(float* tile, std::size_t pitch, const float (&sums)[8][kColumns],
                                           const Place& place) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; j += 4)
      store_four(tile + (place.row + i % 4 + 16 * (i / 4)) * pitch + place.column + 8 * j, sums[i][j], sums[i][j + 1],
                 sums[i][j + 2], sums[i][j + 3]);
}

}  // namespace ladder
