// Tensor maps of the rungs' matrices.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace ladder {

/// Boxes of `rows` x `columns` of a matrix of n x n floats by rows.
inline CUtensorMap map_of(const float* matrix, int n, unsigned rows, unsigned columns) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result) != cudaSuccess ||
      result != cudaDriverEntryPointSuccess)
    throw std::runtime_error("the NVIDIA driver has no cuTensorMapEncodeTiled: install one for CUDA 12 or newer");
  const auto size = static_cast<cuuint64_t>(n);
  const cuuint64_t sizes[] = {size, size}, pitch[] = {size * sizeof(float)};
  const cuuint32_t box[] = {columns, rows}, strides[] = {1, 1};
  CUtensorMap map;
  const CUresult status = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(matrix), sizes, pitch, box, strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled failed with error " + std::to_string(status) + " for boxes of " +
                             std::to_string(rows) + " x " + std::to_string(columns));
  return map;
}

}  // namespace ladder
