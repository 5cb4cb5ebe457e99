// The boxes of a matrix product in shared memory: a ring of stages that tensor copies fill and warpgroups read. gemm.cuh
// includes it.
//
// The first compute warp fills the stages once; from then on the store warp does, which has nothing else to do in dynamic and
// phased runs. So no warp that multiplies waits for copies to be started. The steps of all parts of a task follow each other:
// the first stages of a part fill while the values of the part before are stored.
#pragma once

#include "stage_copies.cuh"

namespace flywheel::detail {

#if FLYWHEEL_HAS_WGMMA

/// All lanes of a warp: a product's tensor maps, a lane each.
__device__ __forceinline__ void acquire_maps(const ProductRecord& product, std::uint32_t lane) {
  if (lane == 0) ptx::acquire_tensor_map(product.left_map);
  if (lane == 1) ptx::acquire_tensor_map(product.right_map);
  if (lane == 2 && product.has_second()) ptx::acquire_tensor_map(product.second_map);
  if (lane == 3 && product.has_out_map) ptx::acquire_tensor_map(product.out_map);
}

/// Where the stages of a task lie, and of which tiles they are.
struct StageMemory {
  unsigned char* turned = nullptr;  // kTurnedBytes of each compute warp, for store_values()
  unsigned char* boxes = nullptr;
  StageMarks* marks = nullptr;
  std::uint32_t count = 0, columns = 0;  // of the stages, and of a tile

  StageMemory() = default;
  __device__ StageMemory(unsigned char* memory, std::uint32_t stages, std::uint32_t tile_columns)
      : turned(memory + (0u - ptx::shared_address(memory)) % kStageAlign),
        boxes(turned + kAllTurnedBytes),
        marks(reinterpret_cast<StageMarks*>(boxes + stages * stage_bytes(tile_columns))),
        count(stages),
        columns(tile_columns) {}
};

/// A thread, when no thread uses the stages any more: they are plain scratch memory again. No order: a sync() lies before it,
/// and another at the end of the body.
__device__ __forceinline__ void end_stages(StageMarks& marks, std::uint32_t count) {
  FLYWHEEL_ROLLED
  for (std::uint32_t s = 0; s < count; ++s) {
    ptx::mbarrier_invalidate(marks.full[s]);
    ptx::mbarrier_invalidate(marks.empty[s]);
  }
}

// What begins a task's stages is out of line: a kernel has it once, for tiles of any columns. Inlined for each it filled the
// instruction caches, so that the phases of a layer were fetched anew each time, see tuning.md. The functions take what they
// need one by one, which goes in registers.

/// All lanes of a warp: the copies of the first stages, by a lane each, so that they are begun side by side.
[[gnu::noinline]] __device__ inline void start_stages(const ProductRecord& product, StageMarks& marks, unsigned char* boxes,
                                                      std::uint32_t count, std::uint32_t columns, Operands which,
                                                      std::uint32_t lane) {
  std::uint32_t own_part = 0, own_step = 0, steps = marks.places[0].steps;
  bool is_mine = false;
  FLYWHEEL_ROLLED
  for (std::uint32_t stage = 0, part = 0, step = 0; stage < count && steps; ++stage) {
    if (stage == lane) own_part = part, own_step = step, is_mine = true;
    if (++step < steps) continue;
    step = 0;
    steps = ++part < product.parts_each ? marks.places[part].steps : 0;
  }
  if (!is_mine) return;
  // Orders the copies after the stores of tasks before, which have made the operands and which this thread has acquired; and
  // after what used the scratch memory before, see the sync() at the end of each body.
  ptx::fence_global_for_bulk_copies();
  ptx::fence_shared_for_bulk_copies();
  StageCopies(product, marks, boxes, columns).fill(lane, own_part, own_step, which);
}

/// All lanes of a warp: the barriers.
__device__ __forceinline__ void prepare_stages(StageMarks& marks, std::uint32_t count, std::uint32_t lane) {
  // No order of their own: a sync() after this call orders them for the threads, publish_mbarriers() for the copies.
  if (lane < count) {
    ptx::mbarrier_init(marks.full[lane], 1);
    ptx::mbarrier_init(marks.empty[lane], kComputeWarps);
  }
  ptx::publish_mbarriers();
  __syncwarp();
}

/// A part of a task for each lane of a warp; those that count come first.
__device__ __forceinline__ void find_parts(const ProductRecord& product, StageMarks& marks, std::uint32_t task,
                                           std::uint32_t lane) {
  static_assert(kMostStages <= 32 && kMostPartsEach <= 32);
  const std::uint32_t part = product.part_of(task, lane), each = product.parts_each;
  TilePlace found{};  // no steps
  bool live = false;
  if (lane < each && part < product.parts()) {
    found = product.place(part);
    live = product.is_live(found);
  }
  const std::uint32_t all = __ballot_sync(0xffffffffu, live), before = all & ((1u << lane) - 1);
  if (live) marks.places[__popc(before)] = found;
  if (lane < each && lane >= static_cast<std::uint32_t>(__popc(all))) marks.places[lane] = {};
}

/// The first warp of the block: finds the task's parts, and starts the copies of the first steps. Other warps follow after a
/// sync().
[[gnu::noinline]] __device__ inline void begin_stages(const ProductRecord& product, StageMarks& marks, unsigned char* boxes,
                                                      std::uint32_t count, std::uint32_t columns, std::uint32_t task,
                                                      std::uint32_t lane) {
  find_parts(product, marks, task, lane);
  prepare_stages(marks, count, lane);
  // A sync() after this call lies between these fences and the copies of other warps, __syncwarp() and those of this one.
  acquire_maps(product, lane);
  __syncwarp();  // orders the fences of some lanes before the copies of others
  start_stages(product, marks, boxes, count, columns, Operands::both, lane);
}

/// One thread, of a task that is not to run: waits until the copies have landed that prefetch_stages() has begun. `alone`:
/// those of A have not been begun.
[[gnu::noinline]] __device__ inline void land_stages(StageMarks& marks, std::uint32_t count, bool alone) {
  const std::uint32_t steps = marks.places[0].steps, filled = steps < count ? steps : count;
  FLYWHEEL_ROLLED
  for (std::uint32_t stage = 0; stage < filled; ++stage) {
    // The one arrival of the phase, in place of that which expects A. Its release orders nothing: the test below is this
    // thread's own.
    if (alone) ptx::mbarrier_arrive(marks.full[stage]);
    // Acquire, block scope: pairs with the copies' complete_tx. The copies end by themselves, so there is no limit.
    while (!ptx::mbarrier_test(marks.full[stage], 0)) {}
  }
  end_stages(marks, count);
}

/// A warp, in front of the boundary before a task of one part: begins it, but for the copies of A, since no task writes B.
/// False if there is no such task. The load warp has acquired the maps, see look_ahead_of_product(); await_phase() lies
/// between.
__device__ __forceinline__ bool prefetch_stages(const ProductRecord& product, const StageMemory& memory, std::uint32_t task,
                                                std::uint32_t lane) {
  if (task >= product.tasks()) return false;
  if (lane == 0) memory.marks->places[0] = product.place(product.part_of(task, 0));
  prepare_stages(*memory.marks, memory.count, lane);
  start_stages(product, *memory.marks, memory.boxes, memory.count, memory.columns, Operands::constant, lane);
  return true;
}

/// A task's own, on the GPU. Each thread has a copy and follows the same stages.
template <int kColumns>
class Stages {
 public:
  /// Collective. `memory` holds `count` stages, at least two, and kBesideStages.
  __device__ Stages(const ProductRecord& product, unsigned char* memory, std::uint32_t count)
      : product_(product),
        memory_(memory, count, kColumns) {}

  /// The first warp of the block, see begin_stages().
  __device__ void begin(std::uint32_t task, int lane) {
    begin_stages(product_, marks(), memory_.boxes, memory_.count, kColumns, task, static_cast<std::uint32_t>(lane));
  }
  /// A warp, in the task: the copies of A, where prefetch_stages() has begun those of B.
  __device__ void begin_prefetched(int lane) {
    start_stages(product_, marks(), memory_.boxes, memory_.count, kColumns, Operands::other, static_cast<std::uint32_t>(lane));
  }
  /// One thread, of a task that is not to run after all: B has been prefetched for it, and A.
  __device__ void land() const { land_stages(marks(), memory_.count, false); }
  /// One thread, when all know what begin() or prefetch_stages() has begun: calls the store warp, if there are more steps than
  /// stages.
  __device__ void call_store_warp() {
    std::uint32_t steps = 0;
    FLYWHEEL_ROLLED
    for (std::uint32_t part = 0; part < product_.parts_each && steps <= memory_.count; ++part) steps += place(part).steps;
    if (steps <= memory_.count) return;
    marks().call = {&product_, memory_.boxes, memory_.count, kColumns};
    roles_shared().beside = &marks();
    // Release, block scope: pairs with serve_store_warp(); covers the call, and what this thread has acquired.
    ptx::mbarrier_arrive(roles_shared().begin);
  }

  /// Part j of the task; it has no steps if there is none.
  __device__ const TilePlace& place(std::uint32_t j) const { return memory_.marks->places[j]; }

  /// Waits until the current stage is full. Acquire, block scope: pairs with the copies' complete_tx. The copies end by
  /// themselves, so there is no limit.
  __device__ void wait() const {
    while (!ptx::mbarrier_test(memory_.marks->full[now_], parity_)) {}
  }
  __device__ unsigned char* left() const { return memory_.boxes + now_ * stage_bytes(kColumns); }
  __device__ unsigned char* right() const { return left() + kLeftBoxBytes; }
  /// Goes on to the next step.
  __device__ void next() {
    if (++now_ < memory_.count) return;
    now_ = 0;
    parity_ ^= 1;
  }
  /// A warp has read the oldest stage: its products have ended.
  __device__ void release(int lane) {
    // Release, block scope: pairs with fill_rest().
    if (lane == 0) ptx::mbarrier_arrive(marks().empty[oldest_]);
    __syncwarp();  // orders no memory: products are for whole warps
    if (++oldest_ == memory_.count) oldest_ = 0;
  }

  /// The memory of all stages, for who has read the last one.
  __device__ unsigned char* boxes() const { return memory_.boxes; }
  /// A warp's memory for store_values().
  __device__ unsigned char* turned_of(int warp) const { return memory_.turned + warp * kTurnedBytes; }
  /// Thread 0, see end_stages().
  __device__ void end() const { end_stages(marks(), memory_.count); }

 private:
  __device__ StageMarks& marks() const { return *memory_.marks; }

  const ProductRecord& product_;
  const StageMemory memory_;
  std::uint32_t now_ = 0, parity_ = 0;
  std::uint32_t oldest_ = 0;
};

#endif

}  // namespace flywheel::detail
