// What all tasks that multiply tiles have in common: their compute part.
#pragma once

#include "apps/llama/tuned/multiply.cuh"
#include "apps/llama/tuned/multiply_any.cuh"
#include "apps/llama/tuned/multiply_many.cuh"

namespace llama {

namespace detail {
/// Of whole pages of columns, with kFewSequences at most.
template <int kBlocks, class Block, class Operands>
FLYWHEEL_TASK void multiply(Block& block, Operands& operands, const TileShape& tile, const TiledInput& input) {
  using Work = Multiplier<kBlocks, Block, Operands>;
  const int chunks = tile.chunks().count;
  if (chunks > kResidentChunks) return Work(block, operands, tile, input).stream();
  if (chunks > 1) return Work(block, operands, tile, input).template resident<kResidentChunks>();
  if constexpr (kBlocks == 1) Work(block, operands, tile, input).ahead();
  else Work(block, operands, tile, input).template resident<1>();
}
// The other ways, each with registers of its own: the first one needs all.
template <int kBlocks, class Block, class Operands>
FLYWHEEL_COLD void multiply_whole(Block block, Operands& operands, TileShape tile, TiledInput input) {
  multiply<kBlocks>(block, operands, tile, input);
}
template <class Block, class Operands>
FLYWHEEL_COLD void multiply_many(Block block, Operands& operands, TileShape tile, TiledInput input) {
  ManyMultiplier<Block, Operands>(block, operands, tile, input)();
}
template <int kBlocks, class Block, class Operands>
FLYWHEEL_COLD void multiply_any(Block block, Operands& operands, TileShape tile, TiledInput input) {
  AnyMultiplier<kBlocks, Block, Operands>(block, operands, tile, input)();
}
/// The rarer ones: one call, for several cost their caller registers.
template <class Block, class Operands>
FLYWHEEL_COLD void multiply_apart(Block block, Operands& operands, TileShape tile, TiledInput input) {
  if (is_whole(tile.columns)) multiply_many(block, operands, tile, input);
  else if (columns_of_b(input.sequences) <= 8) multiply_any<1>(block, operands, tile, input);
  else if (input.sequences <= kFewSequences) multiply_any<2>(block, operands, tile, input);
  else multiply_any<4>(block, operands, tile, input);
}
template <class Block, class Operands>
FLYWHEEL_TASK void multiply(Block& block, Operands& operands, const TileShape& tile, const TiledInput& input) {
  const bool whole = is_whole(tile.columns);
  if (whole && columns_of_b(input.sequences) <= 8) return multiply<1>(block, operands, tile, input);
  Operands copy = operands;  // for the call: the caller's own stay in registers
  if (whole && input.sequences <= kFewSequences) multiply_whole<2>(block, copy, tile, input);
  else multiply_apart(block, copy, tile, input);
  operands = copy;
}
}  // namespace detail

struct TiledTask {
  using ComputeAs = TiledTask;
  static constexpr bool kEarly = true;  // all that other tasks write and these read is stamped
  TiledInput input;
  std::int32_t columns;
  std::int32_t groups;  // of 8 rows

  FLYWHEEL_TASK TileShape shape() const { return {columns, groups, input.sequences}; }
  std::uint32_t operand_bytes() const { return shape().bytes(); }
  double cost_ns() const { return operand_bytes() / 30.; }  // an SM's share of the bandwidth, bytes/ns

  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    detail::multiply(block, operands, shape(), input);
  }
};

}  // namespace llama
