// The oracle: conjugate gradient in plain loops, as Hestenes and Stiefel wrote it in 1952. A header alone.
#pragma once

#include "apps/sparse/csr.hpp"

namespace sparse {

struct PlainSolve {
  std::vector<double> x{};
  std::uint32_t iterations = 0;
};

/// Until the residual that it keeps is `bound` of that of x = 0 or less, or for `most` iterations.
inline PlainSolve solve_plainly(const Matrix& a, const std::vector<double>& b, double bound, std::uint32_t most) {
  PlainSolve done{std::vector<double>(b.size())};
  std::vector<double> r = b, p = b;
  double rr = dot(r, r);
  for (const double enough = bound * bound * rr; rr > enough && done.iterations < most; ++done.iterations) {
    const std::vector<double> ap = a.times(p);
    const double alpha = rr / dot(p, ap), before = rr;
    for (std::size_t i = 0; i < b.size(); ++i) {
      done.x[i] += alpha * p[i];
      r[i] -= alpha * ap[i];
    }
    rr = dot(r, r);
    for (std::size_t i = 0; i < b.size(); ++i) p[i] = r[i] + rr / before * p[i];
  }
  return done;
}

/// The largest |x - y|, as a share of the largest |y|; 0 if both are zeros.
inline double difference(const std::vector<double>& x, const std::vector<double>& y) {
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    largest = std::fmax(largest, std::fabs(y[i]));
    apart = std::fmax(apart, std::fabs(x[i] - y[i]));
  }
  return apart == 0 ? 0 : apart / largest;
}

}  // namespace sparse
