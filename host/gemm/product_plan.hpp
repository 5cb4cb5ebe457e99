// How a matrix product is cut into tasks. Product asks, and the device follows what its record says.
#pragma once

#include <cstdint>

#include "../../runtime/gemm/bf16.hpp"

namespace flywheel {

/// How to cut a product, where the shape's own way is not wanted; 0 leaves a choice open.
struct ProductOptions {
  std::uint32_t tile_columns = 0;  // 16, 64, 128 or 256
  std::uint32_t splits = 0;        // parts of each tile along the depth, at most 64
  std::uint32_t tiles_each = 0;    // of a task, at most 16: the next tile loads while one is stored. Not of split tiles
  bool alone = true;               // false: other work keeps the workers busy, so the product is to take little of their time
  bool add = false;                // C += A B^T: what the epilogue makes of a sum is added to C, which holds floats
  // In device memory: rows of A that count, read when a task begins; null: all do. Tiles without such rows are left alone.
  const std::uint32_t* live_rows = nullptr;
  // In device memory: a matrix like B, B2. The epilogue joins the sums with both: C = join(A B^T, A B2^T), value by value, as
  // gated layers need it. Null: there is none.
  const Bf16* second_b = nullptr;
  // In device memory: where the parts of split tiles go, partial_values() floats. Products whose runs do not overlap may share
  // it. Null: memory of the product's own.
  float* partials = nullptr;
  // No task writes B, or B2, while graphs with this product run. Then, in phased graphs on a GPU, tasks begin to copy them to
  // their workers while those still wait for the phase before.
  bool constant_b = false;
  // The parts of split tiles are left for tasks of yours to add up, in whatever they do next: C is splits() matrices of floats
  // behind each other, one of the sums of each part. The epilogue is called for the first part alone, so it may only add.
  bool leave_parts = false;
};

}  // namespace flywheel

namespace flywheel::detail {

struct ProductRecord;

struct ProductShape {
  std::uint32_t rows, columns, depth;  // of C = A B^T: rows of A, rows of B, values of each row
};

struct ProductPlan {
  bool transposed;
  std::uint32_t tile_columns, splits, band;
  std::uint32_t parts_each;  // of a task
};

/// The plan that takes least time by a simple model. Throws CapacityError if `scratch_bytes` of a worker are too few for any
/// tile, UsageError for options that no tile has.
ProductPlan plan_product(const ProductShape& shape, std::uint32_t workers, std::uint32_t scratch_bytes,
                         const ProductOptions& options);
/// Cuts a product, whose operands and depth are there, as the plan says.
void cut_product(ProductRecord& record, const ProductPlan& plan, std::uint32_t workers);

}  // namespace flywheel::detail
