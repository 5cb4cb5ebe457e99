// The last rung: the product as tasks on the resident runtime.
#pragma once

#include "apps/measure/stats.hpp"

namespace ladder {

/// TFLOP/s of `samples` products of n x n bf16 values on tensor cores, from submission to result. Throws std::runtime_error if
/// one is wrong.
measure::Samples product_rates(int n, int samples);

}  // namespace ladder
