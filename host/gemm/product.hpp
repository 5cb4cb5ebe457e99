// Product: a matrix product as tasks, C = A B^T.
#pragma once

#include <type_traits>
#include <vector>

#include "../../runtime/gemm/gemm.hpp"
#include "../api/buffer.hpp"
#include "../plan/graph.hpp"
#include "product_plan.hpp"

namespace flywheel {

class Runtime;

/// A matrix in device memory, by rows: `pitch` values from one row to the next, 0 for as many as there are columns.
template <class T>
struct Matrix {
  T* values;
  std::uint32_t rows, columns;
  std::uint32_t pitch = 0;

  template <class Const>
  requires(std::is_same_v<Const, const T> && !std::is_const_v<T>) operator Matrix<Const>() const {
    return {values, rows, columns, pitch};
  }
};
/// Clang before 17 has no such guide of its own for an aggregate.
template <class T>
Matrix(T*, std::uint32_t, std::uint32_t, std::uint32_t = 0) -> Matrix<T>;

namespace detail {
class Engine;
/// C, whatever its type.
struct ProductResult {
  void* values;
  std::uint32_t rows, columns, pitch;
  bool floats;  // otherwise Bf16
};
}  // namespace detail

/// C = A B^T on tensor cores: each row of C holds the products of a row of A with all rows of B, which is what a linear layer
/// with weights B computes. Operands are bf16, sums are float, C is bf16 or float. CUDA's __nv_bfloat16 has the same bits as
/// Bf16: reinterpret_cast its pointers.
///
///   options.scratch_bytes = flywheel::kGemmScratchBytes;
///   auto rt = flywheel::start<flywheel::Gemm<>>(options);
///   flywheel::Product product(rt, Matrix{a.data(), m, k}, Matrix{b.data(), n, k}, Matrix{c.data(), m, n});
///   flywheel::Graph g;
///   auto done = product.add_to(g);  // tasks; further ones may come after(done)
///   rt.submit(rt.load(g)).wait();
///
/// Rows of A and B begin at multiples of 16 bytes. The matrices and the Product outlive the runs. If tiles are split along
/// their depth, see splits(), two runs of a product may not overlap. The order of the sums, and so each bit of C, depends on
/// the plan alone. On a GPU, compiled runs use the older instructions.
class Product {
 public:
  /// Throws UsageError for matrices that do not fit each other or cannot be read by tensor copies, GraphError for memory that
  /// the device cannot access, CapacityError if there is too little scratch or device memory.
  Product(Runtime& runtime, Matrix<const Bf16> a, Matrix<const Bf16> b, Matrix<Bf16> c, const ProductOptions& options = {});
  Product(Runtime& runtime, Matrix<const Bf16> a, Matrix<const Bf16> b, Matrix<float> c, const ProductOptions& options = {});

  /// Adds the tasks to a graph. They start after `waits` and are returned: with the end of all of them C is there. In a phased
  /// graph they belong to the current phase.
  template <class Epilogue = Identity>
  std::vector<TaskRef<>> add_to(Graph& graph, const After& waits = {}, const Epilogue& epilogue = {}) const {
    return add_each(
        graph, [&](std::uint32_t, std::uint32_t) -> const After& { return waits; }, epilogue);
  }
  /// The same where tasks wait for different ones: the i-th of the n = part_tasks() for waits(i, n), an After; and also for
  /// those of `stored_after` with the same tiles, if that is not empty: what add_each() returned of a product that is cut
  /// alike. So a product can follow another tile by tile: its epilogue reads what the other's tile has stored.
  template <class WaitsOf, class Epilogue = Identity>
  std::vector<TaskRef<>> add_each(Graph& graph, WaitsOf&& waits, const Epilogue& epilogue = {},
                                  const std::vector<TaskRef<>>& stored_after = {}) const {
    require_join(detail::HasJoin<Epilogue>);
    std::vector<TaskRef<>> parts;
    const std::uint32_t n = part_tasks();
    const auto with_stored = [&](After after, std::size_t i) {
      if (stored_after.empty()) return after;
      const std::size_t of_tile = record_.adds_parts() ? record_.splits : 1;
      for (std::size_t j = 0; j < of_tile; ++j) after.add(stored_after.at(i / of_tile * of_tile + j));
      return after;
    };
    for (std::uint32_t i = 0; i < n; ++i) parts.push_back(graph.add(task(i, epilogue), with_stored(waits(i, n), i)));
    return parts;
  }
  /// The tasks for rt.submit(range), without a graph. Throws UsageError if tiles are split: their tasks belong to one run.
  template <class Epilogue = Identity>
  std::vector<Gemm<Epilogue>> tasks(const Epilogue& epilogue = {}) const {
    require_whole_tiles();
    require_join(detail::HasJoin<Epilogue>);
    std::vector<Gemm<Epilogue>> all;
    for (std::uint32_t i = 0; i < record_.tasks(); ++i) all.push_back(task(i, epilogue));
    return all;
  }

  /// Parts of each tile along the depth. With ProductOptions::leave_parts, so many matrices C has.
  std::uint32_t splits() const { return record_.splits; }
  std::uint32_t part_tasks() const { return record_.tasks(); }
  /// Floats that the parts of split tiles take, see ProductOptions::partials; 0 if there are none.
  std::size_t partial_values() const { return record_.adds_parts() ? record_.parts() * record_.tile_values() : 0; }
  /// Columns of a tile, of A B^T and A B2^T together.
  std::uint32_t tile_columns() const { return record_.tile_columns; }

 private:
  Product(Runtime& runtime, Matrix<const Bf16> a, Matrix<const Bf16> b, detail::ProductResult c, const ProductOptions& options);
  void make_maps(const detail::Engine& engine);
  void map_stores(const detail::Engine& engine);
  void require_whole_tiles() const;
  void require_join(bool has_join) const;
  template <class Epilogue>
  Gemm<Epilogue> task(std::uint32_t index, const Epilogue& epilogue) const {
    return {on_device_.data(), index, epilogue};
  }

  detail::ProductRecord record_{};
  Buffer<float> partials_;
  Buffer<std::uint64_t> arrivals_;
  Buffer<detail::ProductRecord> on_device_;
};

}  // namespace flywheel
