// What a GPU worker does for a Gemm task: the sums of tiles on tensor cores, and the values of C from them.
// <flywheel/gemm.cuh> includes it.
//
// By wgmma each of the two warpgroups of compute warps multiplies 64 rows of a tile. One group of products is under way while
// the next is begun; when it has ended, its stage is free. ptxas lets no product overlap with another in a module in which a
// function with wgmma is called, see tuning.md. So that way is inlined into the kernel, where dynamic and phased runs are; in
// compiled runs products go by mma.
#pragma once

#include "../block.cuh"
#include "mma_tile.cuh"
#include "part_store.cuh"
#include "stages.cuh"
#include "tile_copies.cuh"
#include "tile_store.cuh"

namespace flywheel::detail {

/// One task by mma.
template <int kColumns, class Block, class Epilogue>
__device__ __forceinline__ void multiply_by_mma(Block& block, const ProductRecord& product, std::uint32_t task,
                                                const Epilogue& epilogue) {
  auto* const memory = block.template scratch<unsigned char>(2 * kMmaStageBytes<kColumns>);
  if (!memory) return;
  for (std::uint32_t j = 0; j < product.parts_each; ++j) {
    const std::uint32_t part = product.part_of(task, j);
    if (part >= product.parts()) return;
    const TilePlace place = product.place(part);
    if (!product.is_live(place)) continue;
    float sums[kColumns / 2] = {};
    add_products<kColumns>(block, product, place, memory, sums);
    if (product.adds_parts()) {
      store_partials(partials_of<kColumns / 2>(product, place.tile, place.split, block.rank()), sums);
    } else {
      join_sums(product, epilogue, sums);
      // No warp reads the stages any more.
      store_values(product, place, epilogue, sums, static_cast<int>(product.out_columns()),
                   memory + block.warp() * kTurnedBytes, block.warp(), block.lane());
    }
    block.sync();  // the memory is the next part's
  }
}

#if FLYWHEEL_HAS_WGMMA

/// All compute warps: the sums of the part whose steps come next.
template <int kColumns>
__device__ __forceinline__ void multiply_part(Stages<kColumns>& stages, std::uint32_t steps, int warp, int lane,
                                              float (&sums)[kColumns / 2]) {
  const std::uint32_t half = warp / 4 * (kLeftBoxBytes / 2);  // the rows of this warpgroup
  for (std::uint32_t step = 0; step < steps; ++step, stages.next()) {
    stages.wait();
    const std::uint64_t a = ptx::box_descriptor(stages.left() + half), b = ptx::box_descriptor(stages.right());
    ptx::begin_products();
#pragma unroll
    for (std::uint32_t k = 0; k < kTileDepth / 16; ++k)
      ptx::multiply_boxes(sums, a + k * ptx::kDescriptorStep, b + k * ptx::kDescriptorStep);
    ptx::commit_products();
    ptx::wait_products<1>();
    if (step) stages.release(lane);
  }
  ptx::finish_products(sums);
  stages.release(lane);
}

/// One task by wgmma. True if it has stored a part of a tile that one of the tile's tasks adds up.
template <int kColumns, class Block, class Epilogue>
__device__ __forceinline__ bool multiply_by_wgmma(Block& block, const ProductRecord& product, std::uint32_t task,
                                                  const Epilogue& epilogue) {
  block.borrow_handoffs();  // beside the pages, four stages of the largest tiles then fit
  const std::uint32_t fit = stages_in(block.scratch_bytes(), kColumns);
  const std::uint32_t count = fit < kFewestStages ? kFewestStages : fit;  // for which scratch() then has no room
  auto* const memory = block.template scratch<unsigned char>(static_cast<int>(count * stage_bytes(kColumns) + kBesideStages));
  if (!memory) return false;
  Stages<kColumns> stages(product, memory, count);
  if (!block.prefetched()) {
    if (block.warp() == 0) stages.begin(task, block.lane());
    block.sync();  // the barriers and the places are there for all threads
  } else {
    if (block.warp() == 0) stages.begin_prefetched(block.lane());
    if (!product.is_live(stages.place(0))) {
      block.sync();  // all threads have read the place
      if (block.leader()) stages.land();
      return false;
    }
  }
  if (block.leader()) stages.call_store_warp();
  // No memory order, which sync() has given: the lanes of a warp rejoin, because products are for whole warps.
  __syncwarp();
  bool is_part = false;
  for (std::uint32_t j = 0; j < product.parts_each && stages.place(j).steps; ++j) {
    float sums[kColumns / 2] = {};
    multiply_part(stages, stages.place(j).steps, block.warp(), block.lane(), sums);
    const TilePlace place = stages.place(j);
    if (product.adds_parts()) {
      store_partials(partials_of<kColumns / 2>(product, place.tile, place.split, block.rank()), sums);
      is_part = true;  // known by where the code has been: behind the body, the record is a trip to L2 away
      break;           // tasks of split tiles have a part each
    }
    // A warp whose rows are not there has nothing to join or to store.
    if (product.has_second() && place.row + kWarpRows * block.warp() >= product.left.rows) continue;
    join_sums(product, epilogue, sums);
    if constexpr (kColumns <= kMostRowColumns) {
      if (product.stores_rows && PartImage<kColumns>::kBytes <= count * stage_bytes(kColumns)) {
        block.sync();  // no warp reads the stages any more
        store_part_by_rows<kColumns>(block, product, place, epilogue, sums, stages.boxes());
        continue;
      }
    }
    unsigned char* const turned = stages.turned_of(block.warp());
    if constexpr (!HasJoin<Epilogue> && kColumns >= 64) {
      if (product.has_out_map) {
        store_by_copies(product, place, epilogue, sums, turned, block.warp(), block.lane());
        continue;
      }
    }
    store_values(product, place, epilogue, sums, static_cast<int>(product.out_columns()), turned, block.warp(), block.lane());
  }
  if constexpr (!HasJoin<Epilogue>) wait_stored();
  block.sync();  // no thread waits at a barrier any more
  if (block.leader()) stages.end();
  return is_part;
}

/// The stages of a task with tiles of so many columns; none where its scratch memory has no room. A warp, or all threads.
template <class Block>
__device__ __forceinline__ StageMemory stages_of(Block& block, std::uint32_t columns) {
  block.borrow_handoffs();
  const std::uint32_t fit = stages_in(block.scratch_bytes(), columns);
  if (fit < kFewestStages) return {};
  return {block.template scratch<unsigned char>(static_cast<int>(fit * stage_bytes(columns) + kBesideStages)), fit, columns};
}

#endif

/// A piece of a tile, kStoredColumns columns of C or all of a smaller tile: adds up its parts. `turned`: the warp's own
/// memory, through which values are turned.
template <int kColumns, class Block, class Epilogue>
__device__ __forceinline__ void add_piece(Block& block, const ProductRecord& product, TilePlace place, std::uint32_t piece,
                                          const Epilogue& epilogue, unsigned char* turned) {
  constexpr int kSums = kColumns / 2 < 16 ? kColumns / 2 : 16, kAll = kColumns / 2;
  float sums[kSums] = {}, seconds[kSums] = {};
  const bool joins = kColumns > 16 && product.has_second();
  const FourSums* const from = partials_of<kAll>(product, place.tile, 0, block.rank()) + piece * (kSums / 4) * kComputeThreads;
  add_parts_of<kAll>(sums, from, product.splits);
  if (joins) add_parts_of<kAll>(seconds, from + kAll / 8 * kComputeThreads, product.splits);
  if constexpr (kColumns == 16) {
    join_sums(product, epilogue, sums);
  } else if constexpr (HasJoin<Epilogue>) {
#pragma unroll
    for (int i = 0; i < kSums && joins; ++i) sums[i] = epilogue.join(sums[i], seconds[i]);
  }
  place.column += piece * kStoredColumns;
  place.split = 0;
  const auto columns = static_cast<int>(product.out_columns() / product.pieces());
  const TileTarget to(product, place);
  if constexpr (kSums == 16)
    if (product.has_vectors) return store_vectors(to, place, epilogue, sums, columns, block.warp(), block.lane());
  if (product.has_turned_vectors) store_turned(to, place, epilogue, sums, columns, turned, block.warp(), block.lane());
  else store_each(to, place, epilogue, sums, columns, turned, block.warp(), block.lane());
}

/// All compute threads, once the task has stored a part of a tile: if that came last, adds the parts up. Tasks behind those
/// that multiply would begin a level of the graph later. In a function of its own: inlined, other bodies of the kernel were
/// slower (64 texts 3%, see tuning.md). It has a block and an epilogue of its own, so that the caller's stay in registers.
template <int kColumns, class List, class Epilogue>
[[gnu::noinline]] __device__ void add_if_last(GpuBlock<List> block, const ProductRecord& shared_product, std::uint32_t task,
                                              Epilogue epilogue) {
  if (block.scratch_bytes() < kAllTurnedBytes) return;  // the task has failed for want of scratch memory
  // A copy, of which what is used lies in registers: as far as the compiler knows, what is stored below might be the record,
  // which it would then read again for each value.
  const ProductRecord product = shared_product;
  const TilePlace place = product.place(task);  // tasks of split tiles have a part each
  if (!product.is_live(place) || !is_last_part(block, product, place)) return;
  unsigned char* const turned = block.used_scratch() + block.warp() * kTurnedBytes;
  FLYWHEEL_ROLLED
  for (std::uint32_t piece = 0; piece < product.pieces(); ++piece)
    add_piece<kColumns>(block, product, place, piece, epilogue, turned);
}

template <bool kInKernel, int kColumns, class Block, class Epilogue>
__device__ __forceinline__ void multiply_columns(Block& block, const ProductRecord& product, std::uint32_t task,
                                                 const Epilogue& epilogue) {
  bool is_part = false;
#if FLYWHEEL_HAS_WGMMA
  if constexpr (kInKernel) is_part = multiply_by_wgmma<kColumns>(block, product, task, epilogue);
#endif
  if constexpr (!kInKernel || !FLYWHEEL_HAS_WGMMA) {
    multiply_by_mma<kColumns>(block, product, task, epilogue);
    is_part = product.adds_parts();
  }
  if (is_part) add_if_last<kColumns>(block, product, task, epilogue);
}

template <bool kInKernel, class Block, class Epilogue>
__device__ __forceinline__ void multiply(Block& block, const ProductRecord& product, std::uint32_t task,
                                         const Epilogue& epilogue) {
  switch (product.tile_columns) {
    case 256:
      return multiply_columns<kInKernel, 256>(block, product, task, epilogue);
    case 128:
      return multiply_columns<kInKernel, 128>(block, product, task, epilogue);
    case 64:
      return multiply_columns<kInKernel, 64>(block, product, task, epilogue);
    default:
      return multiply_columns<kInKernel, 16>(block, product, task, epilogue);
  }
}

/// All lanes of a warp. See Gemm::prefetch().
template <class List>
__device__ __forceinline__ bool prefetch_product([[maybe_unused]] GpuBlock<List>& block,
                                                 [[maybe_unused]] const ProductRecord& product,
                                                 [[maybe_unused]] std::uint32_t task) {
#if FLYWHEEL_HAS_WGMMA
  // All workers wait for this warp. So both lines of the record are read at once, then the count of live rows, while the rest
  // of this works with them: each is a trip to L2, since what thread 0 acquires empties L1.
  const std::uint32_t columns = product.tile_columns;
  const bool is_constant = product.constant_b != 0, has_one_part = product.parts_each == 1;
  const std::uint32_t* const live_rows = product.live_rows;
  if (live_rows) ptx::prefetch_to_l1(live_rows);
  const StageMemory stages = stages_of(block, columns);
  return is_constant && has_one_part && stages.count &&
         prefetch_stages(product, stages, task, static_cast<std::uint32_t>(block.lane()));
#else
  return false;
#endif
}
template <class List>
__device__ __forceinline__ void drop_prefetched_product([[maybe_unused]] GpuBlock<List>& block,
                                                        [[maybe_unused]] const ProductRecord& product) {
#if FLYWHEEL_HAS_WGMMA
  const StageMemory stages = stages_of(block, product.tile_columns);
  if (stages.count && block.lane() == 0) land_stages(*stages.marks, stages.count, true);
#endif
}

/// Collective. One task of a product.
template <class List, class Epilogue>
__device__ __forceinline__ void multiply_in_kernel(GpuBlock<List>& block, const ProductRecord& product, std::uint32_t task,
                                                   const Epilogue& epilogue) {
  multiply<true>(block, product, task, epilogue);
}
/// Collective. The same in a function of its own.
template <class List, class Epilogue>
[[gnu::noinline]] __device__ void multiply_portably(GpuBlock<List>& block, const ProductRecord& product, std::uint32_t task,
                                                    const Epilogue& epilogue) {
  multiply<false>(block, product, task, epilogue);
}

/// All lanes of a warp: brings a product's record near, and makes its tensor maps known, so that neither takes prefetch() time,
/// at whose end all workers wait.
template <class Lanes>
__device__ __forceinline__ void look_ahead_of_product(const Lanes& lanes, const ProductRecord& product) {
  const auto* const record = reinterpret_cast<const unsigned char*>(&product);
  for (std::size_t at = lanes.lane() * 128; at < sizeof(product); at += 32 * 128) ptx::prefetch_to_l1(record + at);
#if FLYWHEEL_HAS_WGMMA
  acquire_maps(product, static_cast<std::uint32_t>(lanes.lane()));
#endif
}

}  // namespace flywheel::detail
