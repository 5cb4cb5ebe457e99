// What lies in shared memory beside the stages of a matrix product, and the copies that fill them: by the first compute warp at
// first (stages.cuh), then by the store warp. stages.cuh includes it.
#pragma once

#include "../../runtime/gemm/product_record.hpp"
#include "../collectives.cuh"
#include "../compiled/roles.cuh"
#include "tile_sums.cuh"
#include "wgmma.cuh"

namespace flywheel::detail {

inline constexpr std::uint32_t kFewestStages = 2;  // a stage is free when the products of the next one are under way
inline constexpr std::uint32_t kMostStages = 7;
inline constexpr std::uint32_t kStageAlign = 1024;                     // of a box, see wgmma.cuh
inline constexpr std::uint32_t kRowBytes = kTileDepth * sizeof(Bf16);  // of a box
inline constexpr std::uint32_t kLeftBoxBytes = kTileRows * kRowBytes;

constexpr std::uint32_t stage_bytes(std::uint32_t columns) { return (kTileRows + columns) * kRowBytes; }

/// What the store warp is to do beside a task. Plain members: by a compute thread, before RolesShared::begin.
struct FillCall {
  const ProductRecord* product;
  unsigned char* boxes;
  std::uint32_t count, columns;  // of the stages, and of a tile
};

/// What lies behind the stages. In front of them lies the memory through which C is stored value by value, kAllTurnedBytes.
struct StageMarks {
  std::uint64_t full[kMostStages], empty[kMostStages];
  FillCall call;
  TilePlace places[kMostPartsEach];
};
inline constexpr std::uint32_t kAllTurnedBytes = kComputeWarps * kTurnedBytes;
inline constexpr std::uint32_t kBesideStages = kAllTurnedBytes + sizeof(StageMarks) + kStageAlign - 16;

/// The stages of tiles with so many columns that fit in `bytes` of scratch memory at any address.
__host__ __device__ constexpr std::uint32_t stages_in(std::uint32_t bytes, std::uint32_t columns) {
  const std::uint32_t fit = bytes > kBesideStages ? (bytes - kBesideStages) / stage_bytes(columns) : 0;
  return fit < kMostStages ? fit : kMostStages;
}
constexpr bool do_fewest_fit() {
  for (const std::uint32_t columns : kTileColumns)
    if (stages_in(least_scratch(columns), columns) < kFewestStages) return false;
  return true;
}
static_assert(do_fewest_fit());

#if FLYWHEEL_HAS_WGMMA

/// Which operands a copy brings: those that prefetch() may bring, the others, or both.
enum class Operands { both, constant, other };

/// Starts the copies into stages: a thread.
class StageCopies {
 public:
  __device__ StageCopies(const ProductRecord& product, StageMarks& marks, unsigned char* boxes, std::uint32_t columns)
      : product_(product),
        marks_(marks),
        boxes_(boxes),
        columns_(columns),
        left_bytes_(product.left_box_rows * kRowBytes),
        has_second_(product.has_second()),
        left_policy_(policy_of(product, product.column_tiles)),
        right_policy_(policy_of(product, product.row_tiles)) {}

  __device__ void fill(std::uint32_t stage, std::uint32_t part, std::uint32_t step, Operands which) const {
    const TilePlace& from = marks_.places[part];
    unsigned char* const box = boxes_ + stage * stage_bytes(columns_);
    const std::uint32_t x = (from.first_step + step) * kTileDepth;
    const bool left = which == Operands::both || (which == Operands::constant) == (product_.transposed != 0);
    const bool right = which == Operands::both || !left;
    const std::uint32_t bytes = (left ? left_bytes_ : 0) + (right ? columns_ * kRowBytes : 0);
    // Release, block scope, as the copies' complete_tx: pairs with Stages::wait(). What is copied ahead is expected without the
    // phase's arrival, which comes with the rest.
    if (which == Operands::constant) ptx::expect_more_bytes(marks_.full[stage], bytes);
    else ptx::expect_bytes(marks_.full[stage], bytes);
    if (left) ptx::tensor_copy(box, product_.left_map, x, from.row, marks_.full[stage], left_policy_);
    if (!right) return;
    unsigned char* const at = box + kLeftBoxBytes;
    ptx::tensor_copy(at, product_.right_map, x, from.column, marks_.full[stage], right_policy_);
    if (!has_second_) return;
    ptx::tensor_copy(at + columns_ / 2 * kRowBytes, product_.second_map, x, from.column, marks_.full[stage], right_policy_);
  }

 private:
  /// What one task reads, or all tasks at the same time, leaves the rest of L2 where it is. `times`: that tiles read the
  /// operand.
  __device__ static std::uint64_t policy_of(const ProductRecord& product, std::uint32_t times) {
    const bool together = product.parts_each == 1 && product.parts() == product.stride;
    return times == 1 || together ? ptx::kEvictFirst : ptx::kEvictNormal;
  }

  const ProductRecord& product_;
  StageMarks& marks_;
  unsigned char* boxes_;
  std::uint32_t columns_, left_bytes_;
  bool has_second_;
  std::uint64_t left_policy_, right_policy_;
};

/// The store warp's thread: fills stages as they become empty, from the first step on that Stages::start() has left.
__device__ inline void fill_rest(StageMarks& marks) {
  const FillCall call = marks.call;
  const std::uint32_t parts = call.product->parts_each;
  const StageCopies copies(*call.product, marks, call.boxes, call.columns);
  // As in Stages::start(): this thread has acquired what the compute threads had.
  ptx::fence_global_for_bulk_copies();
  ptx::fence_shared_for_bulk_copies();
  std::uint32_t number = 0, stage = 0, parity = 0;
  for (std::uint32_t part = 0; part < parts && marks.places[part].steps; ++part)
    for (std::uint32_t step = 0; step < marks.places[part].steps; ++step, ++number) {
      if (number < call.count) continue;
      // Acquire, block scope: pairs with Stages::release() of the eight warps, which come by themselves; so without a limit.
      while (!ptx::mbarrier_test(marks.empty[stage], parity)) {}
      copies.fill(stage, part, step, Operands::both);
      if (++stage == call.count) stage = 0, parity ^= 1;
    }
}

/// All lanes of the store warp, see TaskList::serve_beside().
template <class Lanes>
__device__ __forceinline__ void fill_stages_beside(const Lanes& lanes) {
  if (lanes.lane() == 0) {
    auto& marks = *static_cast<StageMarks*>(roles_shared().beside);
    roles_shared().beside = nullptr;  // plain: only this warp reads it, and who calls it next
    fill_rest(marks);
  }
  __syncwarp();  // orders no memory: the warp waits for its next call together
}

#else

template <class Lanes>
__device__ __forceinline__ void fill_stages_beside(const Lanes&) {}

#endif

}  // namespace flywheel::detail
