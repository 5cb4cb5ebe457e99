// <flywheel/ring.cuh>: a ring of stages in shared memory, for kernels and for the GPU's part of task bodies. For nvcc.
#pragma once

#include "../../ring.cuh"
