// Sharing a model's rows out over the workers.
#pragma once

#include <vector>

namespace llama {

/// Consecutive units of a matrix for one worker.
struct Share {
  int worker, first, count;
};

/// Shares out one matrix after another. A stage ends with its slowest worker, so shares of a matrix differ by one unit at
/// most; the larger ones go to those who have got the fewest bytes so far.
class Sharer {
 public:
  /// Throws std::invalid_argument for fewer than 1 worker.
  explicit Sharer(int workers);

  /// `unit_bytes`: what a unit weighs against those of other matrices, more than 0. No share is larger than `most` units,
  /// 1 or more: a worker may get several. Shares with nothing in them are left out. Throws std::invalid_argument.
  std::vector<Share> operator()(int units, double unit_bytes, int most);

  /// `count` workers to do something else before the next matrix, each as long as so many bytes take: of that matrix they
  /// get so much less. Those who have got the most bytes so far. Throws std::out_of_range if there are not as many.
  std::vector<int> occupy(int count, double bytes);

 private:
  std::vector<std::size_t> by_debt() const;
  std::vector<int> count_units(int units, double unit_bytes) const;

  std::vector<double> debts_;  // bytes
  std::vector<double> late_;   // bytes, for the next matrix
};

}  // namespace llama
