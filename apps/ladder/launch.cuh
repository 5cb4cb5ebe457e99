// How the rungs are launched.
#pragma once

#include <cuda_runtime.h>

#include "apps/ladder/rungs.hpp"
#include "apps/measure/cuda_objects.hpp"

namespace ladder {

/// Blocks, threads of each, bytes of dynamic shared memory of each, and blocks of a cluster.
struct Shape {
  dim3 blocks;
  unsigned threads;
  std::size_t shared_bytes = 0;
  unsigned cluster = 1;
};

template <class... Params>
void launch(Stream stream, const Shape& shape, void (*kernel)(Params...), const std::type_identity_t<Params>&... params) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {shape.cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = shape.blocks;
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = shape.cluster > 1 ? 1 : 0;
  measure::check_cuda(cudaLaunchKernelEx(&config, kernel, params...), "cudaLaunchKernelEx");
}

/// Lets the kernel have so much dynamic shared memory a block.
template <class... Params>
void allow_shared(void (*kernel)(Params...), std::size_t bytes) {
  measure::check_cuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(bytes)),
                      "cudaFuncSetAttribute", "A block of this GPU has less shared memory: take a rung further down");
}

}  // namespace ladder
