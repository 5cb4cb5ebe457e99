// The rungs as rows to measure.
#pragma once

#include <string>
#include <vector>

#include "apps/measure/measurement.hpp"

namespace ladder {

/// A row, and what it shows.
struct Step {
  measure::Measurement row;
  std::string idea;
};

/// The rungs for n x n matrices, in order, then the product as tasks, and cuBLAS beside each: TFLOP/s. Each round starts with a
/// product that is checked, and throws std::runtime_error for a wrong one. Empty in a host-only build. `n`: see check_size().
std::vector<Step> steps(const measure::Effort& effort, int n);

/// Throws std::invalid_argument for a size that the rungs do not take, with those they do.
void check_size(int n);

}  // namespace ladder
