// Sparse matrices in rows (CSR): as tasks see them, and as the host makes them. Two to solve: the Laplacian of a grid, and that
// of a random graph. A header alone.
#pragma once

#include <flywheel/flywheel.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace sparse {

/// A square matrix: row r has the entries offsets[r] to offsets[r + 1] - 1, and fewer than 2^31 entries are in all rows.
struct Csr {
  const std::uint32_t* offsets;  // rows + 1 of them
  const std::uint32_t* columns;
  const double* values;
  std::uint32_t rows;
};

/// The same on the host.
struct Matrix {
  std::vector<std::uint32_t> offsets{0}, columns{};
  std::vector<double> values{};

  std::uint32_t rows() const { return static_cast<std::uint32_t>(offsets.size() - 1); }
  void add(std::uint32_t column, double value) {
    columns.push_back(column);
    values.push_back(value);
  }
  void end_row() { offsets.push_back(static_cast<std::uint32_t>(columns.size())); }

  std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> product(rows());
    for (std::uint32_t row = 0; row < rows(); ++row)
      for (std::uint32_t e = offsets[row]; e < offsets[row + 1]; ++e) product[row] += values[e] * x[columns[e]];
    return product;
  }
};

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// |b - A x| / |b|, of the x that was found; 0 if there is nothing to solve.
inline double residual_of(const Matrix& a, const std::vector<double>& x, const std::vector<double>& b) {
  std::vector<double> rest = a.times(x);
  for (std::size_t i = 0; i < b.size(); ++i) rest[i] = b[i] - rest[i];
  const double left = dot(rest, rest), all = dot(b, b);
  return left == 0 ? 0 : std::sqrt(left / all);
}

/// The Laplacian by five points of a grid of side x side, with zeros around it: 4 on the diagonal, -1 for each neighbour.
inline Matrix poisson(std::uint32_t side) {
  Matrix made;
  for (std::uint32_t y = 0; y < side; ++y)
    for (std::uint32_t x = 0; x < side; ++x) {
      const std::uint32_t row = y * side + x;
      if (y > 0) made.add(row - side, -1);
      if (x > 0) made.add(row - 1, -1);
      made.add(row, 4);
      if (x + 1 < side) made.add(row + 1, -1);
      if (y + 1 < side) made.add(row + side, -1);
      made.end_row();
    }
  return made;
}

/// Numbers from -1 to 1.
inline std::vector<double> drawn_vector(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> all(count);
  for (double& one : all) one = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  return all;
}

/// The Laplacian of a random graph, plus `shift` on the diagonal: symmetric, and positive definite for a shift above 0. A row
/// draws 2 to 64 neighbours, most rows few, with weights from 0.01 to 1.01, and is drawn by others.
inline Matrix random_laplacian(std::uint32_t rows, double shift, std::uint64_t seed) {
  using Entry = std::pair<std::uint32_t, double>;
  std::mt19937_64 random(seed);
  const auto share = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<std::vector<Entry>> entries(rows);
  for (std::uint32_t row = 0; row < rows; ++row)
    for (double draws = std::min(2 / std::sqrt(share() + 1e-9), 64.); draws >= 1; --draws) {
      const auto other = static_cast<std::uint32_t>(random() % rows);
      const double weight = share() + 0.01;
      if (other == row) continue;
      entries[row].emplace_back(other, -weight);
      entries[other].emplace_back(row, -weight);
    }
  Matrix made;
  for (std::uint32_t row = 0; row < rows; ++row) {
    double diagonal = shift;
    for (const Entry& entry : entries[row]) diagonal -= entry.second;
    entries[row].emplace_back(row, diagonal);
    std::sort(entries[row].begin(), entries[row].end());
    for (const auto& [column, value] : entries[row])
      if (made.columns.size() > made.offsets.back() && made.columns.back() == column) made.values.back() += value;
      else made.add(column, value);
    made.end_row();
  }
  return made;
}

}  // namespace sparse
