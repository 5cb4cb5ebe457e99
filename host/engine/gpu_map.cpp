// Tensor maps: how the GPU's bulk tensor copies find their way through a matrix.
#include <cuda.h>

#include "../../runtime/gemm/product_record.hpp"
#include "../base/cuda_error.hpp"
#include "gpu_engine.hpp"

namespace flywheel::detail {

static_assert(sizeof(CUtensorMap) == kTensorMapBytes);

namespace {

/// The driver's function, found at run time: a program need not link the driver.
auto find_encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  FLYWHEEL_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess)
    throw DeviceError("the NVIDIA driver has no cuTensorMapEncodeTiled: install one for CUDA 12 or newer");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
}

}  // namespace

bool GpuEngine::map_matrix(unsigned char (&map)[kTensorMapBytes], const TensorBox& of) const {
  if (facts_.major < 9) return false;
  CUtensorMap made;
  const std::size_t value_bytes = of.floats ? sizeof(float) : sizeof(Bf16);
  const cuuint64_t sizes[] = {of.columns, of.rows}, pitch[] = {of.pitch * value_bytes};
  const cuuint32_t box[] = {of.box_columns, of.box_rows}, strides[] = {1, 1};
  const auto type = of.floats ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const CUresult result =
      find_encoder()(&made, type, 2, const_cast<void*>(of.values), sizes, pitch, box, strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
                     CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw DeviceError("cuTensorMapEncodeTiled failed with error " + std::to_string(result) + " for a matrix of " +
                      std::to_string(of.rows) + " rows of " + std::to_string(of.columns) + " values, " +
                      std::to_string(of.pitch) + " apart. To do: check that its address is device memory");
  std::memcpy(map, &made, sizeof(made));
  return true;
}

}  // namespace flywheel::detail
