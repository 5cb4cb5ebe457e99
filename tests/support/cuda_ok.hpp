// For GPU tests that call CUDA themselves.
#pragma once

#include <cuda_runtime_api.h>

#include "catch.hpp"

namespace flywheel::testing {

inline void cuda_ok(cudaError_t error) {
  INFO(cudaGetErrorString(error));
  REQUIRE(error == cudaSuccess);
}

}  // namespace flywheel::testing
