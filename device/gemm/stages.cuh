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

/// A task's own, on the GPU. Each thread has a copy and follows the same stages.
template <int kColumns>
class Stages {
 public:
  /// Collective. `memory` holds `count` stages, at least two, and kBesideStages.
  __device__ Stages(const ProductRecord& product, unsigned char* memory, std::uint32_t count)
      : product_(product),
        turned_(memory + (0u - ptx::shared_address(memory)) % kStageAlign),
        boxes_(turned_ + kAllTurnedBytes),
        marks_(*reinterpret_cast<StageMarks*>(boxes_ + count * kStageBytes<kColumns>)),
        count_(count) {}

  /// The first warp of the block: finds the task's parts, and starts the copies of the first steps. Other warps follow() after
  /// a sync().
  __device__ void begin(std::uint32_t task, int lane) {
    const auto own = static_cast<std::uint32_t>(lane);
    find_parts(task, own);
    prepare(own);
    // A sync() after this call lies between these fences and the copies of other warps, __syncwarp() and those of this one.
    acquire_maps(product_, own);
    __syncwarp();  // orders the fences of some lanes before the copies of others
    start(Operands::both, own);
  }
  /// A warp, in front of the boundary before the task: the same, but for the copies of A, if no task writes B. False if not.
  /// The load warp has acquired the maps, see look_ahead_of_product(); await_phase() lies between.
  __device__ bool prefetch(std::uint32_t task, int lane) {
    if (!product_.constant_b || product_.parts_each != 1 || task >= product_.tasks()) return false;
    const auto own = static_cast<std::uint32_t>(lane);
    if (own == 0) marks_.places[0] = product_.place(product_.part_of(task, 0));
    prepare(own);
    start(Operands::constant, own);
    return true;
  }
  /// A warp, in the task: the copies of A, where prefetch() has begun those of B.
  __device__ void begin_prefetched(int lane) { start(Operands::other, static_cast<std::uint32_t>(lane)); }
  /// One thread, of a task that is not to run: waits until the copies have landed that prefetch() has begun. `alone`: those of
  /// A have not been begun.
  __device__ void land(bool alone) {
    const std::uint32_t steps = place(0).steps, filled = steps < count_ ? steps : count_;
    for (std::uint32_t stage = 0; stage < filled; ++stage) {
      // The one arrival of the phase, in place of that which expects A. Its release orders nothing: the test below is this
      // thread's own.
      if (alone) ptx::mbarrier_arrive(marks_.full[stage]);
      // Acquire, block scope: pairs with the copies' complete_tx. The copies end by themselves, so there is no limit.
      while (!ptx::mbarrier_test(marks_.full[stage], 0)) {}
    }
    end();
  }
  /// One thread, when all know what begin() or prefetch() has begun: calls the store warp, if there are more steps than stages.
  __device__ void call_store_warp() {
    std::uint32_t steps = 0;
    for (std::uint32_t part = 0; part < product_.parts_each && steps <= count_; ++part) steps += place(part).steps;
    if (steps <= count_) return;
    marks_.call = {&product_, boxes_, count_, kColumns};
    roles_shared().beside = &marks_;
    // Release, block scope: pairs with serve_store_warp(); covers the call, and what this thread has acquired.
    ptx::mbarrier_arrive(roles_shared().begin);
  }

  /// Part j of the task; it has no steps if there is none.
  __device__ const TilePlace& place(std::uint32_t j) const { return marks_.places[j]; }

  /// Waits until the current stage is full. Acquire, block scope: pairs with the copies' complete_tx. The copies end by
  /// themselves, so there is no limit.
  __device__ void wait() const {
    while (!ptx::mbarrier_test(marks_.full[now_], parity_)) {}
  }
  __device__ unsigned char* left() const { return boxes_ + now_ * kStageBytes<kColumns>; }
  __device__ unsigned char* right() const { return left() + kLeftBoxBytes; }
  /// Goes on to the next step.
  __device__ void next() {
    if (++now_ < count_) return;
    now_ = 0;
    parity_ ^= 1;
  }
  /// A warp has read the oldest stage: its products have ended.
  __device__ void release(int lane) {
    // Release, block scope: pairs with fill_rest().
    if (lane == 0) ptx::mbarrier_arrive(marks_.empty[oldest_]);
    __syncwarp();  // orders no memory: products are for whole warps
    if (++oldest_ == count_) oldest_ = 0;
  }

  /// The memory of all stages, for who has read the last one.
  __device__ unsigned char* boxes() const { return boxes_; }
  /// A warp's memory for store_values().
  __device__ unsigned char* turned_of(int warp) const { return turned_ + warp * kTurnedBytes; }

  /// Thread 0, when no thread uses the stages any more: they are plain scratch memory again. No order: a sync() lies before it,
  /// and another at the end of the body.
  __device__ void end() {
    for (std::uint32_t s = 0; s < count_; ++s) {
      ptx::mbarrier_invalidate(marks_.full[s]);
      ptx::mbarrier_invalidate(marks_.empty[s]);
    }
  }

 private:
  /// A step of a task's part.
  struct Step {
    std::uint32_t part, step;
    bool is_one;  // otherwise there is none
  };

  /// All lanes of a warp: the barriers.
  __device__ void prepare(std::uint32_t own) {
    // No order of their own: a sync() after this call orders them for the threads, publish_mbarriers() for the copies.
    if (own < count_) {
      ptx::mbarrier_init(marks_.full[own], 1);
      ptx::mbarrier_init(marks_.empty[own], kComputeWarps);
    }
    ptx::publish_mbarriers();
    __syncwarp();
  }
  /// All lanes of a warp: the copies of the first stages, by a lane each, so that they are begun side by side.
  __device__ void start(Operands which, std::uint32_t own) {
    Step mine{};
    std::uint32_t steps = place(0).steps;
    for (std::uint32_t stage = 0, part = 0, step = 0; stage < count_ && steps; ++stage) {
      if (stage == own) mine = {part, step, true};
      if (++step < steps) continue;
      step = 0;
      steps = ++part < product_.parts_each ? place(part).steps : 0;
    }
    if (!mine.is_one) return;
    // Orders the copies after the stores of tasks before, which have made the operands and which this thread has acquired; and
    // after what used the scratch memory before, see the sync() at the end of each body.
    ptx::fence_global_for_bulk_copies();
    ptx::fence_shared_for_bulk_copies();
    StageCopies(product_, marks_, boxes_, kColumns).fill(own, mine.part, mine.step, which);
  }
  /// A part for each lane of a warp; those that count come first.
  __device__ void find_parts(std::uint32_t task, std::uint32_t lane) {
    static_assert(kMostStages <= 32 && kMostPartsEach <= 32);
    const std::uint32_t part = product_.part_of(task, lane), each = product_.parts_each;
    TilePlace found{};  // no steps
    bool live = false;
    if (lane < each && part < product_.parts()) {
      found = product_.place(part);
      live = product_.is_live(found);
    }
    const std::uint32_t all = __ballot_sync(0xffffffffu, live), before = all & ((1u << lane) - 1);
    if (live) marks_.places[__popc(before)] = found;
    if (lane < each && lane >= static_cast<std::uint32_t>(__popc(all))) marks_.places[lane] = {};
  }

  const ProductRecord& product_;
  unsigned char* turned_;
  unsigned char* boxes_;
  StageMarks& marks_;
  std::uint32_t count_;
  std::uint32_t now_ = 0, parity_ = 0;
  std::uint32_t oldest_ = 0;
};

#endif

}  // namespace flywheel::detail
