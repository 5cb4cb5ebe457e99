// How a block stores a part of a tile that is left to the tasks behind a product: through shared memory, a row of C by one bulk
// copy. Straight from registers a row goes out in pieces of 32 bytes: 128 x 64 values took 7 us on an H200, see tuning.md.
// gemm.cuh includes it.
#pragma once

#include "tile_copies.cuh"

#if FLYWHEEL_HAS_WGMMA

namespace flywheel::detail {

/// Tiles of so many columns go so. Of more the parts take as long from registers, 16 bytes at once or 8.
inline constexpr int kMostRowColumns = 64;

/// A tile as it lies in shared memory on its way: rows of C, 16 bytes longer than they are, so that lanes use different banks.
template <int kColumns>
struct PartImage {
  static constexpr std::uint32_t kTurnedRow = kTileRows + 4, kPlainRow = kColumns + 4;  // in floats
  static constexpr std::uint32_t kBytes =
      sizeof(float) * (kTileRows * kPlainRow > kColumns * kTurnedRow ? kTileRows * kPlainRow : kColumns * kTurnedRow);
  float* values;
  bool transposed;

  __device__ std::uint32_t rows() const { return transposed ? kColumns : kTileRows; }
  __device__ std::uint32_t columns() const { return transposed ? kTileRows : kColumns; }
  __device__ float* row(std::uint32_t i) const { return values + i * (transposed ? kTurnedRow : kPlainRow); }
  /// From a row of the left operand, or of the right one, to the next.
  __device__ std::uint32_t left_step() const { return transposed ? 1 : kPlainRow; }
  __device__ std::uint32_t right_step() const { return transposed ? kTurnedRow : 1; }
};

/// All compute threads, none of which uses the stages any more. `memory`: PartImage::kBytes, aligned to 16.
template <int kColumns, class Block, class Epilogue>
__device__ __forceinline__ void store_part_by_rows(Block& block, const ProductRecord& product, const TilePlace& tile,
                                                   const Epilogue& epilogue, const float (&sums)[kColumns / 2],
                                                   unsigned char* memory) {
  const PartImage<kColumns> image{block.in_scratch(reinterpret_cast<float*>(memory)), product.transposed != 0};
  const std::uint32_t left = image.left_step(), right = image.right_step();
  float* const mine = image.values + (16 * block.warp() + block.lane() / 4) * left + block.lane() % 4 * 2 * right;
#pragma unroll
  for (int q = 0; q < kColumns / 8; ++q)
#pragma unroll
    for (int i = 0; i < 4; ++i) mine[i / 2 * 8 * left + (8 * q + i % 2) * right] = sums[4 * q + i];
  const std::uint32_t first_row = product.transposed ? tile.column : tile.row;
  const std::uint32_t first_column = product.transposed ? tile.row : tile.column;
  const std::uint32_t all_rows = product.transposed ? product.right.rows : product.left.rows;
  const std::uint32_t all_columns = product.transposed ? product.left.rows : product.right.rows;
  if (tile.split == 0 && !keeps_sums(epilogue)) {
    block.sync();  // orders what threads wrote before what others read
    block.for_each(static_cast<int>(image.rows() * image.columns()), [&](int i) {
      const std::uint32_t row = i / image.columns(), column = i % image.columns();
      if (first_row + row >= all_rows || first_column + column >= all_columns) return;
      float& value = image.row(row)[column];
      value = epilogue(value, static_cast<int>(first_row + row), static_cast<int>(first_column + column));
    });
  }
  // Each thread orders what it wrote before the copies, which are part of the async proxy; the threads meet before they start.
  ptx::fence_shared_for_bulk_copies();
  block.sync();
  const auto row = static_cast<std::uint32_t>(block.rank());
  if (row < image.rows() && first_row + row < all_rows && first_column < all_columns) {
    const std::uint32_t count = all_columns - first_column < image.columns() ? all_columns - first_column : image.columns();
    float* const to = static_cast<float*>(product.out) + product.place_of(tile.split, first_row + row, first_column);
    ptx::bulk_store(to, image.row(row), count * sizeof(float));
  }
  ptx::commit_stored_boxes();
  wait_stored();
}

}  // namespace flywheel::detail

#endif
