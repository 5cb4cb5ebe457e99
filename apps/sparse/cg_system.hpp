// A system of equations in device memory, and the graph that solves it. A header for the programs that solve.
#pragma once

#include <flywheel/flywheel.hpp>

#include <vector>

#include "apps/sparse/conjugate_gradient.hpp"

namespace sparse {

/// Owns what ConjugateGradient has pointers to. One thread uses it. Errors are those of flywheel::Runtime; solve() throws
/// flywheel::RunError with the code ConjugateGradient::kNotPositive where the method breaks down.
class CgSystem {
 public:
  /// `bound` is for |b - A x| / |b|, `most` for iterations; `scratch_bytes`: of Options::scratch_bytes, or 0 for none.
  CgSystem(flywheel::Runtime& rt, const Matrix& a, double bound, std::uint32_t most, std::uint32_t scratch_bytes)
      : rt_(rt),
        offsets_(rt.upload(a.offsets)),
        columns_(rt.upload(a.columns)),
        values_(rt.upload(a.values)),
        b_(rt.allocate<double>(a.rows())),
        x_(rt.allocate<double>(a.rows())),
        memory_(rt.allocate<double>(ConjugateGradient::memory_of(a.rows(), rt.workers()))),
        solved_(rt.allocate<Solved>(1)) {
    flywheel::Graph g;
    g.add_grid(ConjugateGradient{.a = {offsets_.data(), columns_.data(), values_.data(), a.rows()},
                                 .b = b_.data(),
                                 .x = x_.data(),
                                 .memory = memory_.data(),
                                 .solved = solved_.data(),
                                 .bound = bound,
                                 .most = most,
                                 .scratch_bytes = scratch_bytes / 16 * 16});
    solve_ = rt.load(g);
  }

  void set(const std::vector<double>& b) { b_.write(b); }
  void run() { rt_.submit(solve_).wait(); }
  Solved solved() const { return solved_.read()[0]; }
  std::vector<double> x() const { return x_.read(); }

 private:
  flywheel::Runtime& rt_;
  flywheel::Buffer<std::uint32_t> offsets_, columns_;
  flywheel::Buffer<double> values_, b_, x_, memory_;
  flywheel::Buffer<Solved> solved_;
  flywheel::Executable solve_;
};

}  // namespace sparse
