// A solver that ends by itself: conjugate gradient for A x = b as one grid task. All workers meet once an iteration, each adds
// up the sums that all have left, and so all see at the same time that it is enough, with no host in the loop. The task is in
// apps/sparse; here it solves Poisson's equation on a square, twice, to the same bits.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "apps/sparse/conjugate_gradient.hpp"
#include "apps/sparse/plain_cg.hpp"

int main() {
  using sparse::ConjugateGradient;
  constexpr double kBound = 1e-8;  // of |b - A x| / |b|
  constexpr std::uint32_t kMost = 10'000;
  flywheel::Options options;
  flywheel::Runtime rt = flywheel::start<ConjugateGradient>(options);
  const sparse::Matrix a = sparse::poisson(rt.on_gpu() ? 256 : 48);
  const std::vector<double> b = sparse::drawn_vector(a.rows(), 1);

  const auto offsets = rt.upload(a.offsets), columns = rt.upload(a.columns);
  const auto values = rt.upload(a.values), b_there = rt.upload(b);
  const auto x = rt.allocate<double>(a.rows()),
             memory = rt.allocate<double>(ConjugateGradient::memory_of(a.rows(), rt.workers()));
  const auto solved = rt.allocate<sparse::Solved>(1);
  flywheel::Graph g;
  g.add_grid(ConjugateGradient{.a = {offsets.data(), columns.data(), values.data(), a.rows()},
                               .b = b_there.data(),
                               .x = x.data(),
                               .memory = memory.data(),
                               .solved = solved.data(),
                               .bound = kBound,
                               .most = kMost,
                               .scratch_bytes = options.scratch_bytes});
  const flywheel::Executable solve = rt.load(g);
  rt.submit(solve).wait();
  const std::vector<double> first = x.read();
  const auto begin = std::chrono::steady_clock::now();
  rt.submit(solve).wait();
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();

  const std::vector<double> found = x.read();
  const sparse::Solved outcome = solved.read()[0];
  const sparse::PlainSolve plain = sparse::solve_plainly(a, b, kBound, kMost);
  const double residual = sparse::residual_of(a, found, b), off = sparse::difference(found, plain.x);
  std::printf("%u unknowns on %s: residual %.1e after %u iterations, %u meetings and %.2f ms; a plain loop: %u iterations\n",
              a.rows(), rt.device().c_str(), residual, outcome.iterations, outcome.meetings, ms, plain.iterations);
  const double more = std::fabs(static_cast<double>(outcome.iterations) - plain.iterations);
  return residual < 1.001 * kBound && off < 1e-5 && more <= 3 && found == first ? 0 : 1;
}
