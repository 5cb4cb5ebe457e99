// The sums of a tile by mma, for GPUs and compilers without wgmma. gemm.cuh includes it.
//
// Two stages in scratch memory, copied by all threads. Lines have 16 bytes more than the values, so that the eight rows that a
// warp reads at once lie in different banks.
#pragma once

#include "../../runtime/gemm/product_record.hpp"
#include "../collectives.cuh"

namespace flywheel::detail {

inline constexpr std::uint32_t kMmaLine = kTileDepth + 8;  // values

template <int kColumns>
constexpr std::uint32_t kMmaStageBytes = (kTileRows + kColumns) * kMmaLine * sizeof(Bf16);
static_assert(2 * kMmaStageBytes<256> <= least_scratch(256) && 2 * kMmaStageBytes<16> <= least_scratch(16));

/// Copies 8 values of one row of an operand, zeros where there are none.
__device__ __forceinline__ void copy_values(Bf16* to, const Operand& from, std::uint32_t depth, std::uint32_t row,
                                            std::uint32_t k) {
  const Bf16* const at = from.values + std::size_t{row} * from.pitch + k;
  if (row < from.rows && k + 8 <= depth) return ptx::copy16(to, at);
#pragma unroll
  for (std::uint32_t i = 0; i < 8; ++i) to[i] = row < from.rows && k + i < depth ? at[i] : Bf16{0};
}

/// All threads of the block: starts the copies of one step.
template <int kColumns>
__device__ __forceinline__ void copy_step(const ProductRecord& product, const TilePlace& place, Bf16* stage, std::uint32_t step,
                                          int rank) {
  const std::uint32_t k = (place.first_step + step) * kTileDepth;
  for (std::uint32_t i = rank; i < (kTileRows + kColumns) * (kTileDepth / 8); i += kComputeThreads) {
    const std::uint32_t line = i / 8, part = i % 8 * 8;
    Bf16* const to = stage + line * kMmaLine + part;
    if (line < kTileRows) copy_values(to, product.left, product.depth, place.row + line, k + part);
    else
      copy_values(to, product.operand_of(line - kTileRows), product.depth, product.row_of(place, line - kTileRows), k + part);
  }
  ptx::commit_copies();
}

__device__ __forceinline__ std::uint32_t word_at(const Bf16* values) {
  return *reinterpret_cast<const std::uint32_t*>(__builtin_assume_aligned(values, 4));
}

/// A warp: adds the products of one step.
template <int kColumns>
__device__ __forceinline__ void multiply_step(float (&sums)[kColumns / 2], const Bf16* stage, int warp, int lane) {
  const Bf16* const left = stage + (16 * warp + lane / 4) * kMmaLine + 2 * (lane % 4);
  const Bf16* const right = stage + (kTileRows + lane / 4) * kMmaLine + 2 * (lane % 4);
  for (std::uint32_t k = 0; k < kTileDepth; k += 16) {
    const std::uint32_t a[4] = {word_at(left + k), word_at(left + 8 * kMmaLine + k), word_at(left + k + 8),
                                word_at(left + 8 * kMmaLine + k + 8)};
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      const Bf16* const line = right + 8 * j * kMmaLine + k;
      const std::uint32_t b[2] = {word_at(line), word_at(line + 8)};
      float part[4] = {sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]};
      ptx::mma_bf16(part, a, b);
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[4 * j + i] = part[i];
    }
  }
}

/// Collective. Adds the sums of a part of a tile; `memory` holds two stages.
template <int kColumns, class Block>
__device__ __forceinline__ void add_products(Block& block, const ProductRecord& product, const TilePlace& place,
                                             unsigned char* memory, float (&sums)[kColumns / 2]) {
  auto* const stages = reinterpret_cast<Bf16*>(memory);
  constexpr std::uint32_t kStage = kMmaStageBytes<kColumns> / sizeof(Bf16);
  copy_step<kColumns>(product, place, stages, 0, block.rank());
  for (std::uint32_t step = 0; step < place.steps; ++step) {
    if (step + 1 < place.steps) {
      copy_step<kColumns>(product, place, stages + (step + 1) % 2 * kStage, step + 1, block.rank());
      ptx::wait_copies<1>();
    } else {
      ptx::wait_copies<0>();
    }
    block.sync();  // the copies of all threads have landed
    multiply_step<kColumns>(sums, stages + step % 2 * kStage, block.warp(), block.lane());
    block.sync();  // the stage has been read
  }
}

}  // namespace flywheel::detail
