// The type of a CUDA stream in the library's public functions. It is a forward declaration, so a program that names it
// need not include <cuda_runtime.h>.
#pragma once

struct CUstream_st;

namespace flywheel {

using CudaStream = CUstream_st*;  // cudaStream_t

}  // namespace flywheel
