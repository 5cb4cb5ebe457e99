// A CUDA stream of the program, as the library's public functions take it: <cuda_runtime.h> is not needed to name it.
#pragma once

struct CUstream_st;

namespace flywheel {

using CudaStream = CUstream_st*;  // cudaStream_t

}  // namespace flywheel
