#include "apps/ladder/problem.hpp"

#include <cmath>
#include <random>
#include <stdexcept>

namespace ladder {
namespace {

constexpr int kApart = 128;            // rows, of those that are computed
constexpr double kMostPerTerm = 1e-6;  // error of a sum of products of values up to 1, for each of its terms

std::size_t at(int row, int column, int n) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(n) + static_cast<std::size_t>(column);
}

[[noreturn]] void complain(const std::string& rung, int row, int column, double found, const std::string& wanted) {
  throw std::runtime_error(rung + " is wrong in row " + std::to_string(row) + ", column " + std::to_string(column) + ": " +
                           std::to_string(found) + " for " + wanted);
}

}  // namespace

std::vector<float> draw_values(int n) {
  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> all(at(n, 0, n));
  for (float& one : all) one = draw(random);
  return all;
}

Expected::Expected(const std::vector<float>& a, const std::vector<float>& b, int n) : n_(n) {
  std::mt19937_64 random(std::random_device{}());
  for (int first = 0; first < n; first += kApart) rows_.push_back(first + static_cast<int>(random() % kApart));
  values_.resize(rows_.size() * static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    double* const sums = values_.data() + i * static_cast<std::size_t>(n);
    for (int k = 0; k < n; ++k) {
      const double left = a[at(rows_[i], k, n)];
      const float* const right = b.data() + at(k, 0, n);
      for (int column = 0; column < n; ++column) sums[column] += left * double{right[column]};
    }
  }
}

void Expected::check(const std::vector<float>& c, const std::string& rung) const {
  for (int row = 0; row < n_; ++row)
    for (int column = 0; column < n_; ++column)
      if (!std::isfinite(c[at(row, column, n_)])) complain(rung, row, column, double{c[at(row, column, n_)]}, "a number");
  for (std::size_t i = 0; i < rows_.size(); ++i)
    for (int column = 0; column < n_; ++column) {
      const double found = c[at(rows_[i], column, n_)], wanted = values_[at(static_cast<int>(i), column, n_)];
      if (std::abs(found - wanted) > kMostPerTerm * n_) complain(rung, rows_[i], column, found, std::to_string(wanted));
    }
}

}  // namespace ladder
