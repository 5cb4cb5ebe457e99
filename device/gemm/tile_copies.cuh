// How a warp stores its values of a tile by tensor copies, through shared memory: they go on while the next tile is multiplied.
// gemm.cuh includes it. For epilogues without join(): their products are large, and the kernel of another program is spared the
// code.
//
// A box of C has kStoredRows rows of kStoredLine bytes: 64 values of Bf16 or 32 of float. It lies in shared memory with the
// 128-byte swizzle, see wgmma.cuh, so that the lanes write to different banks. 16-byte parts of a box outside of C are not
// stored; Product makes no map where a row of C ends within one.
#pragma once

#include "stages.cuh"
#include "tile_store.cuh"

#if FLYWHEEL_HAS_WGMMA

namespace flywheel::detail {

static_assert(2 * kStoredRows * kStoredLine == kTurnedBytes, "two boxes, of turns");

/// Where 16-byte part `part` of line `row` of a box lies.
__device__ __forceinline__ std::uint32_t swizzled(std::uint32_t row, std::uint32_t part) {
  return row * kStoredLine + ((part ^ row % 8) * 16);
}

/// Two values of neighbouring columns, as they lie in C.
__device__ __forceinline__ void put_pair(unsigned char* box, std::uint32_t row, std::uint32_t column, float low, float high,
                                         bool floats) {
  if (floats) *reinterpret_cast<float2*>(box + swizzled(row, column / 4) + column % 4 * 4) = {low, high};
  else *reinterpret_cast<std::uint32_t*>(box + swizzled(row, column / 8) + column % 8 * 2) = ptx::bf16_pair(low, high);
}

/// All lanes of a warp: writes a box, of the rows of half `half` and the columns of its groups of 8 from `first_group` on, and
/// starts the copy. `box`: one of the warp's two, which take turns.
template <bool kFloats, class Epilogue, int kSums>
__device__ __forceinline__ void store_box(const void* map, const TileTarget& to, const SumsPlace& place,
                                          const Epilogue& epilogue, const float (&sums)[kSums], unsigned char* box, int half,
                                          int first_group, int lane) {
  constexpr int kGroups = kFloats ? 4 : 8;
  ptx::wait_stored_boxes<1>();  // the copy before the last has read this box
  __syncwarp();                 // what one lane has waited for holds for all
  const std::uint32_t row = place.row + 8 * half;
  float values[2 * kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int q = first_group + g;
    values[2 * g] = sums[4 * q + 2 * half];
    values[2 * g + 1] = sums[4 * q + 2 * half + 1];
  }
  finish_pairs(to, epilogue, values, row, place.column + 8 * first_group);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) put_pair(box, lane / 4, 8 * g + 2 * (lane % 4), values[2 * g], values[2 * g + 1], kFloats);
  // Each lane orders what it wrote before the copy, which is part of the async proxy; the lanes meet before one starts it.
  ptx::fence_shared_for_bulk_copies();
  __syncwarp();
  if (lane == 0) {
    const std::uint32_t x = place.column + 8 * first_group, y = row;
    const bool is_inside = x < to.right_rows && y < to.left_rows;
    if (is_inside && kFloats && to.adds) ptx::tensor_add(map, x, y, box);
    else if (is_inside) ptx::tensor_store(map, x, y, box);
  }
  ptx::commit_stored_boxes();
}

template <bool kFloats, class Epilogue, int kSums>
__device__ __forceinline__ void store_boxes(const void* map, const TileTarget& to, const SumsPlace& place,
                                            const Epilogue& epilogue, const float (&sums)[kSums], unsigned char* boxes,
                                            int lane) {
  constexpr int kGroups = kFloats ? 4 : 8;
#pragma unroll
  for (int q = 0; q < kSums / 4; q += kGroups) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      store_box<kFloats>(map, to, place, epilogue, sums, boxes + half * (kTurnedBytes / 2), half, q, lane);
  }
}

/// All lanes of a warp, of a tile of at least 64 columns. The copies end by wait_stored().
template <class Epilogue, int kSums>
__device__ __forceinline__ void store_by_copies(const ProductRecord& product, const TilePlace& tile, const Epilogue& epilogue,
                                                const float (&sums)[kSums], unsigned char* boxes, int warp, int lane) {
  const SumsPlace place(tile, warp, lane);
  const TileTarget to(product, tile);
  const Epilogue own = epilogue;  // a copy, as TileTarget is one
  if (to.floats) store_boxes<true>(product.out_map, to, place, own, sums, boxes, lane);
  else store_boxes<false>(product.out_map, to, place, own, sums, boxes, lane);
}

/// Each thread, before the task ends: what its copies have stored is in memory, and comes before what it releases next.
__device__ __forceinline__ void wait_stored() {
  ptx::wait_stored_all();
  // Orders the copies, of the async proxy, before what this thread releases: the sync() at the end of the body, and the
  // worker's release behind it.
  ptx::fence_global_for_bulk_copies();
}

}  // namespace flywheel::detail

#endif
