// Copies of 4 bytes that go on beside the thread: 16 bytes at once cannot be turned.
#pragma once

#include <cuda_pipeline.h>

namespace ladder {

/// Starts the copy of 4 bytes to shared memory. RingPlace::producer_commit_copies() ends it, too.
__device__ __forceinline__ void copy4(float* to, const float* from) { __pipeline_memcpy_async(to, from, sizeof(float)); }

}  // namespace ladder
