// Gemm: the task type of matrix products, C = A B^T with bf16 operands and sums in float. A Product makes the tasks.
//
// This file has what a CPU worker does; what a GPU does stands in device/gemm.
#pragma once

#include <concepts>
#include <type_traits>

#include "../records/task_type.hpp"
#include "product_record.hpp"

namespace flywheel {

/// What becomes of a value of C: the sum itself. An epilogue of your own is trivially copyable, has at most 80 bytes and is
/// called once for each value: struct Relu { FLYWHEEL_TASK float operator()(float sum, int row, int column) const; };
/// One that reads memory may have a second function, which does the same for several values of a row, so that a GPU need not
/// wait for each: values[2 i] and [2 i + 1] are those of columns column + 8 i and column + 8 i + 1. Columns from `columns` on
/// are not there.
///
///   template <int kCount> FLYWHEEL_TASK void pairs(float (&values)[kCount], int row, int column, int columns) const;
///
/// That of a product with a second B, see ProductOptions::second_b, has one that joins the two sums of a place, before:
///
///   FLYWHEEL_TASK float join(float sum, float second) const;
struct Identity {
  FLYWHEEL_TASK float operator()(float sum, int, int) const { return sum; }
};

namespace detail {

/// An epilogue that has pairs().
template <class Epilogue>
concept HasPairs = requires(const Epilogue& epilogue, float (&values)[2]) {
  epilogue.pairs(values, 0, 0, 0);
};

/// An epilogue that has join().
template <class Epilogue>
concept HasJoin = requires(const Epilogue& epilogue) {
  { epilogue.join(0.f, 0.f) } -> std::convertible_to<float>;
};

/// Whether an epilogue makes nothing else of sums. One that reads nothing for some products may say so: bool keeps() const.
template <class Epilogue>
FLYWHEEL_TASK bool keeps_sums(const Epilogue& epilogue) {
  if constexpr (requires { epilogue.keeps(); }) return epilogue.keeps();
  else return std::is_same_v<Epilogue, Identity>;
}

template <class Epilogue>
FLYWHEEL_TASK float joined(const Epilogue& epilogue, float sum, float second) {
  if constexpr (HasJoin<Epilogue>) return epilogue.join(sum, second);
  else return sum;
}

/// Adds to a value that no other thread adds to meanwhile. On a GPU no thread waits for the old value.
FLYWHEEL_TASK inline void add_alone(float* to, float value) {
#ifdef __CUDA_ARCH__
  atomicAdd(to, value);  // relaxed, as a plain store: the sync() at the end of the task orders it
#else
  *to += value;
#endif
}

/// Writes one value of C, given by its place in the operands. `split`: of a part that is left; the epilogue is the first one's.
template <class Epilogue>
FLYWHEEL_TASK void put_value(const ProductRecord& product, const Epilogue& epilogue, std::uint32_t split, std::uint32_t left,
                             std::uint32_t right, float sum) {
  const std::uint32_t row = product.transposed ? right : left, column = product.transposed ? left : right;
  const float value = split ? sum : epilogue(sum, static_cast<int>(row), static_cast<int>(column));
  const std::size_t at = product.place_of(split, row, column);
  if (product.adds) add_alone(static_cast<float*>(product.out) + at, value);
  else if (product.floats) static_cast<float*>(product.out)[at] = value;
  else static_cast<Bf16*>(product.out)[at] = Bf16::nearest(value);
}

/// The sum of a part of a row of each operand; `column` is one of the tile.
FLYWHEEL_TASK inline float dot(const ProductRecord& product, const TilePlace& place, std::uint32_t left, std::uint32_t column) {
  const Operand& right = product.operand_of(column);
  const Bf16* a = product.left.values + std::size_t{left} * product.left.pitch;
  const Bf16* b = right.values + std::size_t{product.row_of(place, column)} * right.pitch;
  const std::uint32_t begin = place.first_step * kTileDepth, end = (place.first_step + place.steps) * kTileDepth;
  float sum = 0;
  for (std::uint32_t k = begin; k < end && k < product.depth; ++k) sum += a[k].value() * b[k].value();
  return sum;
}

/// Portable: f(i, row of `left`, column of the tile) for each value of a tile's first `columns` columns that is one of C.
template <class Block, class F>
FLYWHEEL_TASK void for_each_value(Block& block, const ProductRecord& product, const TilePlace& place, std::uint32_t columns,
                                  F&& f) {
  block.for_each(static_cast<int>(product.tile_values()), [&](int i) {
    const auto value = static_cast<std::uint32_t>(i);
    const std::uint32_t left = place.row + value / product.tile_columns, column = value % product.tile_columns;
    if (left < product.left.rows && column < columns && product.row_of(place, column) < product.right.rows)
      f(value, left, column);
  });
}

/// Portable: a part of a tile, value by value.
template <class Block, class Epilogue>
FLYWHEEL_TASK void multiply_part(Block& block, const ProductRecord& product, const TilePlace& place, const Epilogue& epilogue) {
  float* const partial = product.partials + (std::size_t{place.tile} * product.splits + place.split) * product.tile_values();
  const bool whole = !product.adds_parts();
  for_each_value(block, product, place, whole ? product.out_columns() : product.tile_columns,
                 [&](std::uint32_t i, std::uint32_t left, std::uint32_t column) {
                   float sum = dot(product, place, left, column);
                   if (!whole) return void(partial[i] = sum);
                   if (product.has_second())
                     sum = joined(epilogue, sum, dot(product, place, left, column + product.out_columns()));
                   put_value(product, epilogue, place.split, left, place.column + column, sum);
                 });
}

/// Collective: whether the part of a tile that the block has stored is the last one. Then all parts are there for all threads.
template <class Block>
FLYWHEEL_TASK bool is_last_part(Block& block, const ProductRecord& product, const TilePlace& place) {
  block.sync();  // all threads have stored their values
  return block.any(block.leader() && block.arrives_last(product.arrivals[place.tile], product.splits));
}

/// Portable: adds up the parts of a tile.
template <class Block, class Epilogue>
FLYWHEEL_TASK void add_parts(Block& block, const ProductRecord& product, const TilePlace& place, const Epilogue& epilogue) {
  const float* const partials = product.partials + std::size_t{place.tile} * product.splits * product.tile_values();
  const auto add_up = [&](std::uint32_t i) {
    float sum = 0;
    for (std::uint32_t split = 0; split < product.splits; ++split) sum += partials[split * product.tile_values() + i];
    return sum;
  };
  for_each_value(block, product, place, product.out_columns(), [&](std::uint32_t i, std::uint32_t left, std::uint32_t column) {
    const bool joins = product.has_second();
    const float sum = add_up(i), second = joins ? add_up(i + product.out_columns()) : 0;
    put_value(product, epilogue, 0, left, place.column + column, joins ? joined(epilogue, sum, second) : sum);
  });
}

/// One task of a product.
template <class Block, class Epilogue>
FLYWHEEL_TASK void multiply_on_cpu(Block& block, const ProductRecord& product, std::uint32_t task, const Epilogue& epilogue) {
  for (std::uint32_t j = 0; j < product.parts_each; ++j) {
    const std::uint32_t part = product.part_of(task, j);
    if (part >= product.parts()) return;
    const TilePlace place = product.place(part);
    if (!product.is_live(place)) continue;
    multiply_part(block, product, place, epilogue);
    if (product.adds_parts() && is_last_part(block, product, place)) add_parts(block, product, place, epilogue);
  }
}

}  // namespace detail

/// One task of a Product: some tiles of C, or a part of one. Name it in start<...>() with each epilogue that products have.
template <class Epilogue = Identity>
struct Gemm {
  const detail::ProductRecord* product;
  std::uint32_t index;
  Epilogue epilogue;

  static constexpr bool kCompiled = detail::is_compiled<Epilogue>();  // an epilogue may leave compiled graphs out

  template <class Note>
  void buffers(Note&& note) const {
    note("product", product);
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if constexpr (Block::kOnGpu) multiply_portably(block, *product, index, epilogue);  // device/gemm/gemm.cuh
    else detail::multiply_on_cpu(block, *product, index, epilogue);
  }
  /// The same with instructions that are good only where they are inlined into the kernel.
  template <class Block>
  [[gnu::always_inline]] FLYWHEEL_TASK void in_kernel(Block& block) const {
    multiply_in_kernel(block, *product, index, epilogue);  // device/gemm/gemm.cuh
  }
  /// On a GPU, in front of the boundary before a phase: a warp starts copies of B, if ProductOptions::constant_b.
  template <class Block>
  FLYWHEEL_TASK bool prefetch(Block& block) const {
    return prefetch_product(block, *product, index);  // device/gemm/gemm.cuh
  }
  template <class Block>
  FLYWHEEL_TASK void drop_prefetched(Block& block) const {
    drop_prefetched_product(block, *product);  // device/gemm/gemm.cuh
  }
  /// On a GPU, ahead of a phase: starts copies to L2 of what all tasks of the product read first.
  template <class Lanes>
  FLYWHEEL_TASK void look_ahead(const Lanes& lanes) const {
    look_ahead_of_product(lanes, *product);  // device/gemm/gemm.cuh
  }
  /// On a GPU, the store warp: starts the copies of the steps beside the body.
  template <class Lanes>
  FLYWHEEL_TASK static void serve_beside(const Lanes& lanes) {
    fill_stages_beside(lanes);  // device/gemm/stages.cuh
  }
};

}  // namespace flywheel
