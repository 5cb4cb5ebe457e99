#include "product.hpp"

#include <algorithm>

#include "../../runtime/compiled/operands.hpp"
#include "../api/runtime.hpp"
#include "../base/error.hpp"
#include "../futures/core.hpp"

namespace flywheel {
using namespace detail;

namespace {

std::string size_of(std::uint32_t rows, std::uint32_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

/// Of a worker: on a GPU, tasks of dynamic and phased runs have the pages of operands, too.
std::uint32_t scratch_of_dynamic_runs(const Core& core) {
  const Engine& engine = *core.engine;
  return engine.scratch_bytes(core.options) + (engine.is_gpu() ? engine.operand_pages() * kPageBytes : 0);
}

/// A null pointer passes.
void check_device_pointer(const Core& core, const std::string& name, const void* pointer) {
  if (!pointer || core.heap.holds(pointer)) return;
  const std::string wrong = core.engine->check_pointer(pointer);
  if (!wrong.empty()) throw GraphError(name + ": " + wrong + ". Allocate it with Runtime::allocate() first.");
}

template <class Any>
void check_matrix(const Core& core, const char* name, Any& matrix) {
  if (!matrix.pitch) matrix.pitch = matrix.columns;
  const std::string text = std::string("matrix ") + name + " of a product";
  if (!matrix.rows || !matrix.columns)
    throw UsageError(text + " is " + size_of(matrix.rows, matrix.columns) + ": it needs values");
  if (matrix.pitch < matrix.columns)
    throw UsageError(text + " has a pitch of " + std::to_string(matrix.pitch) + " and " + std::to_string(matrix.columns) +
                     " columns: rows must not overlap");
  if (!matrix.values) throw GraphError(text + " is a null pointer: pass the data() of a buffer");
  check_device_pointer(core, text, matrix.values);
}

void check_operand(const Core& core, const char* name, Matrix<const Bf16>& matrix) {
  check_matrix(core, name, matrix);
  if (matrix.pitch % 8 || reinterpret_cast<std::uintptr_t>(matrix.values) % 16)
    throw UsageError(
        std::string("matrix ") + name + " of a product has rows " + std::to_string(matrix.pitch) +
        " values apart: make its address and its pitch multiples of 16 bytes (8 values), so that rows can be copied");
}

void check_sizes(const Matrix<const Bf16>& a, const Matrix<const Bf16>& b, const ProductResult& c) {
  if (a.columns == b.columns && c.rows == a.rows && c.columns == b.rows) return;
  throw UsageError("C = A B^T with A " + size_of(a.rows, a.columns) + " and B " + size_of(b.rows, b.columns) + " is " +
                   size_of(a.rows, b.rows) +
                   (a.columns == b.columns ? ", and C is " + size_of(c.rows, c.columns)
                                           : ": rows of A and of B must be as long as each other"));
}

}  // namespace

Product::Product(Runtime& runtime, Matrix<const Bf16> a, Matrix<const Bf16> b, Matrix<Bf16> c, const ProductOptions& options)
    : Product(runtime, a, b, ProductResult{c.values, c.rows, c.columns, c.pitch, false}, options) {}
Product::Product(Runtime& runtime, Matrix<const Bf16> a, Matrix<const Bf16> b, Matrix<float> c, const ProductOptions& options)
    : Product(runtime, a, b, ProductResult{c.values, c.rows, c.columns, c.pitch, true}, options) {}

Product::Product(Runtime& runtime, Matrix<const Bf16> a, Matrix<const Bf16> b, ProductResult c, const ProductOptions& options) {
  const std::shared_ptr<Core>& core = runtime.core();
  check_operand(*core, "A", a);
  check_operand(*core, "B", b);
  check_matrix(*core, "C", c);
  check_sizes(a, b, c);
  if (options.add && !c.floats)
    throw UsageError("ProductOptions::add adds to a C of floats, and this one holds Bf16: make it a Matrix<float>");
  if (options.leave_parts && (!c.floats || options.add || options.second_b))
    throw UsageError(
        "ProductOptions::leave_parts leaves parts of sums as floats: make C a Matrix<float>, of splits() times the rows in "
        "memory, and leave add and second_b to the tasks that add the parts up");
  const ProductPlan plan =
      plan_product({a.rows, b.rows, a.columns}, core->engine->workers(), scratch_of_dynamic_runs(*core), options);
  const Operand rows_of_a{a.values, a.rows, a.pitch}, rows_of_b{b.values, b.rows, b.pitch};
  record_.left = plan.transposed ? rows_of_b : rows_of_a;
  record_.right = plan.transposed ? rows_of_a : rows_of_b;
  record_.out = c.values;
  record_.out_pitch = c.pitch;
  record_.depth = a.columns;
  record_.floats = c.floats;
  record_.adds = options.add;
  record_.leaves_parts = options.leave_parts;
  record_.constant_b = options.constant_b;
  if (options.second_b) {
    Matrix<const Bf16> second = b;
    second.values = options.second_b;
    check_operand(*core, "B2", second);
    record_.second = {second.values, second.rows, second.pitch};
  }
  cut_product(record_, plan, core->engine->workers());
  make_maps(*core->engine);
  map_stores(*core->engine);
  check_device_pointer(*core, "ProductOptions::live_rows", options.live_rows);
  check_device_pointer(*core, "ProductOptions::partials", options.partials);
  record_.live_rows = options.live_rows;
  if (record_.adds_parts() && !options.partials) partials_ = Buffer<float>(core, partial_values());
  record_.partials = options.partials ? options.partials : partials_.data();
  if (record_.adds_parts()) {
    arrivals_ = Buffer<std::uint64_t>(core, record_.tiles());
    arrivals_.write(std::vector<std::uint64_t>(record_.tiles()));
    record_.arrivals = arrivals_.data();
  }
  on_device_ = Buffer<ProductRecord>(core, 1);
  on_device_.write(&record_, 1);
}

void Product::make_maps(const Engine& engine) {
  const auto values = [](const Operand& of) {
    return TensorBox{of.values, false, of.rows, 0, of.pitch, kTileDepth, kTileRows};
  };
  TensorBox left = values(record_.left), right = values(record_.right);
  left.columns = right.columns = record_.depth;
  // Rows that are not there would be filled with zeros, which takes as long as a copy; their sums are not stored.
  constexpr std::uint32_t kSwizzledRows = 8;
  record_.left_box_rows = std::min(kTileRows, (left.rows + kSwizzledRows - 1) / kSwizzledRows * kSwizzledRows);
  left.box_rows = record_.left_box_rows;
  right.box_rows = record_.out_columns();
  engine.map_matrix(record_.left_map, left);
  engine.map_matrix(record_.right_map, right);
  right.values = record_.second.values;
  if (record_.has_second()) engine.map_matrix(record_.second_map, right);
}

void Product::map_stores(const Engine& engine) {
  const std::uintptr_t value_bytes = record_.floats ? sizeof(float) : sizeof(Bf16);
  const auto is_whole = [](std::uintptr_t bytes) { return bytes % 16 == 0; };
  record_.stores_rows = record_.leaves_parts && record_.parts_each == 1 && is_whole(record_.out_pitch * value_bytes) &&
                        is_whole((record_.transposed ? record_.left : record_.right).rows * value_bytes) &&
                        is_whole(reinterpret_cast<std::uintptr_t>(record_.out));
  record_.has_vectors = !record_.transposed && record_.out_columns() % kStoredColumns == 0 &&
                        is_whole(record_.out_pitch * value_bytes) && is_whole(record_.right.rows * value_bytes) &&
                        is_whole(reinterpret_cast<std::uintptr_t>(record_.out));
  record_.has_turned_vectors = record_.transposed && !record_.adds && is_whole(record_.out_pitch * value_bytes) &&
                               is_whole(record_.left.rows * value_bytes) &&
                               is_whole(reinterpret_cast<std::uintptr_t>(record_.out));
  if (!record_.has_vectors || record_.has_second() || record_.leaves_parts || record_.out_columns() * value_bytes < kStoredLine)
    return;
  record_.has_out_map = engine.map_matrix(
      record_.out_map, {record_.out, record_.floats != 0, record_.left.rows, record_.right.rows, record_.out_pitch,
                        static_cast<std::uint32_t>(kStoredLine / value_bytes), kStoredRows});
}

void Product::require_join(bool has_join) const {
  if (record_.has_second() && !has_join)
    throw UsageError(
        "this product has ProductOptions::second_b, and its epilogue does not say what becomes of two sums: give it "
        "float join(float sum, float second) const");
}

void Product::require_whole_tiles() const {
  if (record_.adds_parts())
    throw UsageError("each tile of this product has " + std::to_string(record_.splits) +
                     " parts, which tasks of one run add up: use add_to(graph), or set ProductOptions::splits to 1");
}

}  // namespace flywheel
