// In place of apps/ladder/launch.cuh: the rungs run block after block on an emulated one.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "apps/ladder/rungs.hpp"
#include "support/emulated/cuda.hpp"
#include "support/seed.hpp"

struct __attribute__((may_alias, aligned(16))) float4 {
  float x, y, z, w;
};
struct int2 {
  int x, y;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

inline std::size_t __cvta_generic_to_shared(const void* p) { return reinterpret_cast<std::size_t>(p); }

namespace measure {
/// Few, so that a block has several tiles.
inline int sm_count() { return 1; }
}  // namespace measure

namespace ladder {

inline thread_local __align__(128) unsigned char memory[flywheel::detail::kEmulatedSharedBytes];

struct Shape {
  dim3 blocks;
  unsigned threads;
  std::size_t shared_bytes = 0;
  unsigned cluster = 1;
};

/// Throws std::runtime_error that says what was wrong in a block.
template <class... Params>
void launch(Stream, const Shape& shape, void (*kernel)(Params...), const std::type_identity_t<Params>&... params) {
  using namespace flywheel::testing;
  for (unsigned y = 0; y < shape.blocks.y; ++y)
    for (unsigned x = 0; x < shape.blocks.x; ++x) {
      EmulatedGrid grid;
      grid.seed = fresh_seed();
      EmulatedStacks stacks;
      const auto block = std::make_unique<EmulatedBlock>(x, grid.seed, grid, stacks);
      block->copies().dynamic = {memory, shape.shared_bytes};
      block->threads = shape.threads;
      blockIdx.y = y;
      gridDim = {shape.blocks.x, shape.blocks.y, 1};
      block->run([&] {
        if (threadIdx.x < shape.threads) kernel(params...);
      });
      if (!grid.why().empty()) throw std::runtime_error(grid.why());
    }
}

template <class... Params>
void allow_shared(void (*)(Params...), std::size_t bytes) {
  if (bytes > sizeof(memory)) throw std::runtime_error("a rung asks for more shared memory than a block has");
}

}  // namespace ladder
