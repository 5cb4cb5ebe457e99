// The matrices of a ladder: what they hold, and what C must hold.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ladder {

/// n x n values from -1 to 1, another draw in each run.
std::vector<float> draw_values(int n);

/// Rows of C = A B, one of each 128 drawn at random, in double.
class Expected {
 public:
  Expected(const std::vector<float>& a, const std::vector<float>& b, int n);

  /// Throws std::runtime_error that names the first wrong value: of these rows by how far it is off, and of all rows if it is
  /// no number. `rung`: for the message.
  void check(const std::vector<float>& c, const std::string& rung) const;

 private:
  int n_;
  std::vector<int> rows_;
  std::vector<double> values_;  // rows_.size() x n
};

}  // namespace ladder
