#include "apps/ladder/rows.hpp"

#include <stdexcept>

#include "apps/ladder/rungs.hpp"

namespace ladder {

void check_size(int n) {
  constexpr int kLeast = kStep, kMost = 64 * kStep;
  if (n < kLeast || n > kMost || n % kStep)
    throw std::invalid_argument("--size " + std::to_string(n) + ": take a multiple of " + std::to_string(kStep) + " from " +
                                std::to_string(kLeast) + " to " + std::to_string(kMost));
}

}  // namespace ladder
