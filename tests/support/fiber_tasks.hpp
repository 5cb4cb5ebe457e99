// Tasks made of functions, for tests of the emulated GPU block.
#pragma once

#include "support/fiber_block.hpp"

namespace flywheel::testing {

/// A task whose compute and store parts are these.
template <class Compute, class Store>
struct Both {
  Compute on_compute;
  Store on_store;
  template <class Block>
  void operator()(Block&) const {}
  template <class Block, class Operands>
  requires Block::kOnGpu void compute(Block& block, Operands& operands) const { on_compute(block, operands); }
  template <class Block>
  void store(Block& block) const {
    on_store(block);
  }
};
template <class Compute, class Store>
Both(Compute, Store) -> Both<Compute, Store>;

/// Runs a function as a compute part, with `bytes` of operands that are all 1.
template <class Compute>
Outcome compute(Compute&& body, const FiberOptions& options = {}, std::size_t bytes = 0) {
  const std::vector<unsigned char> operands(bytes, 1);
  return run_fibers(Both{body, [](auto&) {}}, operands, options);
}

inline FiberOptions seeded(std::uint64_t seed) {
  FiberOptions options;
  options.seed = seed;
  return options;
}

}  // namespace flywheel::testing
