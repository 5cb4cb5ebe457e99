// <flywheel/gemm.cuh>: matrix products on tensor cores as tasks. Include it where a Product is made, and in the file that calls
// flywheel::start<flywheel::Gemm<>, ...>(); that one is compiled by nvcc for GPUs.
#pragma once

#include <flywheel/flywheel.hpp>

#include "../../../host/gemm/product.hpp"
#include "../../../runtime/gemm/gemm.hpp"
#ifdef __CUDACC__
#include "../../gemm/gemm.cuh"
#endif
