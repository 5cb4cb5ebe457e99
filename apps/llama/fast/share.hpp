// Sharing a model's rows out over the workers.
#pragma once

#include <vector>

namespace flywheel::llama {

/// Consecutive units of a matrix for one worker.
struct Share {
  int worker, first, count;
};

/// Shares out one matrix after another. A stage ends with its slowest worker, so shares of a matrix differ by one unit at
/// most; the larger ones go to those who have got the fewest bytes so far.
class Sharer {
 public:
  explicit Sharer(int workers) : debts_(static_cast<std::size_t>(workers), 0.) {}

  /// `unit_bytes`: what a unit weighs against those of other matrices. No share is larger than `most` units: a worker
  /// may get several. Shares with nothing in them are left out.
  std::vector<Share> operator()(int units, double unit_bytes, int most);

 private:
  std::vector<double> debts_;  // bytes
};

}  // namespace flywheel::llama
