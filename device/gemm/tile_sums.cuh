// The sums of a tile in registers, and what becomes of them. gemm.cuh includes it.
//
// A warp has 16 rows of the tile and all its columns: value 4 j + 2 h + i of a thread is row lane / 4 + 8 h, column
// 8 j + 2 (lane % 4) + i. Tensor cores give them so, by wgmma and by mma.
#pragma once

#include "../../runtime/gemm/gemm.hpp"
#include "../collectives.cuh"

namespace flywheel::detail {

/// Where a thread's values stand in the operands.
struct SumsPlace {
  std::uint32_t row, column;  // of its first value

  __device__ SumsPlace(const TilePlace& tile, int warp, int lane)
      : row(tile.row + static_cast<std::uint32_t>(16 * warp + lane / 4)),
        column(tile.column + static_cast<std::uint32_t>(2 * (lane % 4))) {}
};

/// Stores the values of any tile one by one.
template <class Epilogue, int kSums>
__device__ __forceinline__ void store_each(const ProductRecord& product, const TilePlace& tile, const Epilogue& epilogue,
                                           const float (&sums)[kSums], int warp, int lane) {
  const SumsPlace place(tile, warp, lane);
#pragma unroll
  for (int at = 0; at < kSums; ++at) {
    const std::uint32_t left = place.row + (at & 2) * 4, right = place.column + at / 4 * 8 + (at & 1);
    if (left < product.left.rows && right < product.right.rows) put_value(product, epilogue, left, right, sums[at]);
  }
}

/// Four values of a thread, which are loaded and stored at once.
struct alignas(16) FourSums {
  float at[4];
};
/// The partial sums of a part of a tile: four values of a thread lie together, and those of the threads side by side.
template <int kSums>
__device__ __forceinline__ FourSums* partials_of(const ProductRecord& product, std::uint32_t tile, std::uint32_t split,
                                                 int rank) {
  constexpr std::size_t kVectors = kSums / 4 * kComputeThreads;
  return reinterpret_cast<FourSums*>(product.partials) + (std::size_t{tile} * product.splits + split) * kVectors + rank;
}

template <int kSums>
__device__ __forceinline__ void store_partials(FourSums* to, const float (&sums)[kSums]) {
#pragma unroll
  for (int q = 0; q < kSums / 4; ++q)
    to[q * kComputeThreads] = {sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]};
}
template <int kSums>
__device__ __forceinline__ void add_partials(float (&sums)[kSums], const FourSums* from) {
#pragma unroll
  for (int q = 0; q < kSums / 4; ++q) {
    const FourSums more = from[q * kComputeThreads];
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[4 * q + i] += more.at[i];
  }
}

}  // namespace flywheel::detail
