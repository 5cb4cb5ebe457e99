// The boxes of a matrix product in shared memory: a ring of stages that tensor copies fill and warpgroups read. gemm.cuh
// includes it.
//
// No warp is there to fill stages alone: the last of the eight warps that has read a stage starts the copies into it. The steps
// of all parts of a task follow each other, so the first stages of a part fill while the values of the part before are stored.
#pragma once

#include "../../runtime/gemm/product_record.hpp"
#include "../collectives.cuh"
#include "tile_sums.cuh"
#include "wgmma.cuh"

namespace flywheel::detail {

inline constexpr std::uint32_t kFewestStages = 2;  // a stage is free when the products of the next one are under way
inline constexpr std::uint32_t kMostStages = 10;
inline constexpr std::uint32_t kStageAlign = 1024;                     // of a box, see wgmma.cuh
inline constexpr std::uint32_t kRowBytes = kTileDepth * sizeof(Bf16);  // of a box
inline constexpr std::uint32_t kLeftBoxBytes = kTileRows * kRowBytes;

template <int kColumns>
constexpr std::uint32_t kStageBytes = (kTileRows + kColumns) * kRowBytes;

/// What lies behind the stages. In front of them lies the memory through which C is stored value by value, kAllTurnedBytes.
struct StageMarks {
  std::uint64_t full[kMostStages];
  std::uint32_t read[kMostStages];  // warps that have read the stage; back at 0 after the eighth
  TilePlace places[kMostPartsEach];
};
inline constexpr std::uint32_t kAllTurnedBytes = kComputeWarps * kTurnedBytes;
inline constexpr std::uint32_t kBesideStages = kAllTurnedBytes + sizeof(StageMarks) + kStageAlign - 16;

/// The stages that fit in `bytes` of scratch memory at any address.
template <int kColumns>
__host__ __device__ constexpr std::uint32_t stages_in(std::uint32_t bytes) {
  const std::uint32_t fit = bytes > kBesideStages ? (bytes - kBesideStages) / kStageBytes<kColumns> : 0;
  return fit < kMostStages ? fit : kMostStages;
}
template <int kColumns>
constexpr bool kFewestFit = stages_in<kColumns>(least_scratch(kColumns)) >= kFewestStages;
static_assert(kFewestFit<256> && kFewestFit<128> && kFewestFit<64> && kFewestFit<16>);

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
        count_(count),
        stage_bytes_((product.left_box_rows + kColumns) * kRowBytes),
        has_second_(product.has_second()) {}

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
  /// Each thread, once begin() or prefetch() is known to it.
  __device__ void follow() {
    fill_steps_ = place(0).steps;
    for (std::uint32_t stage = 0; stage < count_ && fill_steps_; ++stage) advance_fill();
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
  /// A warp has read the oldest stage. The last of the eight fills it again, if there are more steps.
  __device__ void release(int lane) {
    if (fill_steps_) {
      if (lane == 0 && ptx::is_last_of_eight(marks_.read[oldest_])) fill(oldest_, fill_part_, fill_step_, Operands::both);
      advance_fill();
      __syncwarp();  // orders no memory: products are for whole warps
    }
    if (++oldest_ == count_) oldest_ = 0;
  }

  /// The memory of all stages, for who has read the last one.
  __device__ unsigned char* boxes() const { return boxes_; }
  /// A warp's memory for store_values().
  __device__ unsigned char* turned_of(int warp) const { return turned_ + warp * kTurnedBytes; }

  /// Thread 0, when no thread uses the stages any more: they are plain scratch memory again. No order: a sync() lies before it,
  /// and another at the end of the body.
  __device__ void end() {
    for (std::uint32_t s = 0; s < count_; ++s) ptx::mbarrier_invalidate(marks_.full[s]);
  }

 private:
  enum class Operands { both, constant, other };
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
      marks_.read[own] = 0;
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
    fill(own, mine.part, mine.step, which);
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
  __device__ void fill(std::uint32_t stage, std::uint32_t part, std::uint32_t step, Operands which) const {
    const TilePlace& from = place(part);
    unsigned char* const box = boxes_ + stage * kStageBytes<kColumns>;
    const std::uint32_t x = (from.first_step + step) * kTileDepth;
    const bool left = which == Operands::both || (which == Operands::constant) == (product_.transposed != 0);
    const bool right = which == Operands::both || !left;
    const std::uint32_t left_bytes = product_.left_box_rows * kRowBytes;
    const std::uint32_t bytes = (left ? left_bytes : 0) + (right ? stage_bytes_ - left_bytes : 0);
    // Release, block scope, as the copies' complete_tx: pairs with wait(). is_last_of_eight() has ordered the reads before it.
    // What is copied ahead is expected without the phase's arrival, which comes with the rest.
    if (which == Operands::constant) ptx::expect_more_bytes(marks_.full[stage], bytes);
    else ptx::expect_bytes(marks_.full[stage], bytes);
    if (left) ptx::tensor_copy(box, product_.left_map, x, from.row, marks_.full[stage]);
    if (!right) return;
    ptx::tensor_copy(box + kLeftBoxBytes, product_.right_map, x, from.column, marks_.full[stage]);
    if (has_second_)
      ptx::tensor_copy(box + kLeftBoxBytes + kColumns / 2 * kRowBytes, product_.second_map, x, from.column, marks_.full[stage]);
  }
  __device__ void advance_fill() {
    if (++fill_step_ < fill_steps_) return;
    fill_step_ = 0;
    ++fill_part_;
    fill_steps_ = fill_part_ < product_.parts_each ? place(fill_part_).steps : 0;
  }

  const ProductRecord& product_;
  unsigned char* turned_;
  unsigned char* boxes_;
  StageMarks& marks_;
  std::uint32_t count_;
  std::uint32_t stage_bytes_;  // that copies bring to each
  bool has_second_;
  std::uint32_t now_ = 0, parity_ = 0;
  std::uint32_t oldest_ = 0;
  // The step that is filled next: of which part, which one, and how many that has; 0 once all are under way.
  std::uint32_t fill_part_ = 0, fill_step_ = 0, fill_steps_ = 0;
};

#endif

}  // namespace flywheel::detail
