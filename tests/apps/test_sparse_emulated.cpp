// The solver of apps/sparse through the GPU's kernel, on an emulated GPU, and on CPU workers: lanes that share long rows,
// vectors in scratch memory and out of it, and solves that end in another way.
#include "support/emulated_engine.hpp"

#include <limits>

#include "apps/sparse/cg_system.hpp"
#include "apps/sparse/plain_cg.hpp"
#include "catch.hpp"

namespace sparse {
namespace {

using flywheel::Runtime;

/// Makes the list of task types one that no other file has.
struct NobodysTask {
  int nothing;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

flywheel::Options small_options() {
  flywheel::Options options;
  options.workers = 3;
  options.log_level = "error";
  options.start_timeout = std::chrono::seconds(60);  // of processors that others keep busy
  return options;
}

/// Calls f with an emulated GPU, and with CPU workers.
template <class F>
void on_both(F&& f) {
  for (const bool emulated : {true, false}) {
    flywheel::Options options = small_options();
    if (!emulated) options.target = flywheel::Target::cpu;
    Runtime rt = emulated ? flywheel::testing::start_emulated<ConjugateGradient, NobodysTask>(options)
                          : flywheel::start<ConjugateGradient>(options);
    INFO(rt.device());
    f(rt);
  }
}

constexpr std::uint32_t kAllScratch = 72u << 10, kMost = 3000;

/// Solves twice, and compares with the plain loop, with the residual and with the first time.
void check_solve(Runtime& rt, const Matrix& a, double bound, std::uint32_t scratch_bytes, std::uint64_t seed) {
  const std::vector<double> b = drawn_vector(a.rows(), seed);
  INFO(a.rows() << " rows, " << a.values.size() << " entries, " << scratch_bytes << " bytes of scratch, seed " << seed);
  CgSystem system(rt, a, bound, kMost, scratch_bytes);
  system.set(b);
  system.run();
  const std::vector<double> x = system.x();
  const Solved solved = system.solved();
  const PlainSolve plain = solve_plainly(a, b, bound, kMost);
  CHECK(solved.converged == 1);
  CHECK(solved.residual <= bound);
  CHECK(residual_of(a, x, b) <= 1.01 * bound + 1e-14);
  CHECK(difference(x, plain.x) <= 1e5 * bound);
  const double more = static_cast<double>(solved.iterations) - plain.iterations;
  CHECK(std::abs(more) <= 3 + (bound < 1e-10 ? 0.5 : 0.05) * plain.iterations);  // rounding tells where little is left
  CHECK(solved.meetings == solved.iterations + 3 * solved.refreshes);
  system.run();
  CHECK(system.x() == x);
}

/// A row and a column of many entries, as no other row has.
Matrix arrow(std::uint32_t rows) {
  Matrix made;
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (row == 0) {
      made.add(0, rows);
      for (std::uint32_t column = 1; column < rows; ++column) made.add(column, -0.5);
    } else {
      made.add(0, -0.5);
      made.add(row, 2);
    }
    made.end_row();
  }
  return made;
}

}  // namespace

TEST_CASE("sparse, emulated: matrices of all sizes, fewer rows than workers among them") {
  on_both([](Runtime& rt) {
    for (const std::uint32_t rows : {1u, 2u, 3u, 5u, 33u, 257u, 1000u})
      for (const std::uint32_t scratch : {0u, kAllScratch})
        check_solve(rt, random_laplacian(rows, 0.1, rows), 1e-9, scratch, rows + scratch);
    check_solve(rt, random_laplacian(3000, 1, 1), 1e-10, 20'000, 3);  // not all of it fits into scratch memory
  });
}

TEST_CASE("sparse, emulated: Poisson's equation, with refreshes on the way") {
  on_both([](Runtime& rt) {
    for (const std::uint32_t side : {1u, 2u, 9u, 40u}) check_solve(rt, poisson(side), 1e-12, kAllScratch, side);
    check_solve(rt, poisson(72), 1e-8, kAllScratch, 1);
  });
}

TEST_CASE("sparse, emulated: recurrences that have drifted away are not gone on with") {
  on_both([](Runtime& rt) {
    const Matrix a = random_laplacian(5000, 1e-4, 1);
    const std::vector<double> b = drawn_vector(a.rows(), 5);
    CgSystem system(rt, a, 1e-11, kMost, kAllScratch);
    system.set(b);
    system.run();
    CHECK(system.solved().converged == 1);
    CHECK(residual_of(a, system.x(), b) <= 1.01e-11);
    CHECK(system.solved().iterations <= 3 * solve_plainly(a, b, 1e-11, kMost).iterations);
  });
}

TEST_CASE("sparse, emulated: one row has as many entries as all others") {
  on_both([](Runtime& rt) {
    check_solve(rt, arrow(2), 1e-10, kAllScratch, 1);
    check_solve(rt, arrow(1500), 1e-10, kAllScratch, 2);
  });
}

TEST_CASE("sparse, emulated: nothing to solve takes no iteration") {
  on_both([](Runtime& rt) {
    CgSystem system(rt, poisson(7), 1e-8, kMost, kAllScratch);
    system.set(drawn_vector(49, 1));
    system.run();
    system.set(std::vector<double>(49));
    system.run();
    CHECK(system.solved().converged == 1);
    CHECK(system.solved().iterations == 0);
    CHECK(system.solved().residual == 0);
    CHECK(system.x() == std::vector<double>(49));
  });
}

TEST_CASE("sparse, emulated: a limit of iterations is reported, with what is left") {
  on_both([](Runtime& rt) {
    const Matrix a = poisson(20);
    const std::vector<double> b = drawn_vector(a.rows(), 1);
    for (const std::uint32_t most : {0u, 1u, 9u}) {
      CgSystem system(rt, a, 1e-8, most, kAllScratch);
      system.set(b);
      system.run();
      CHECK(system.solved().converged == 0);
      CHECK(system.solved().iterations == most);
      CHECK(system.solved().residual == Approx(residual_of(a, system.x(), b)));
      CHECK(difference(system.x(), solve_plainly(a, b, 1e-8, most).x) < 1e-9);
    }
  });
}

TEST_CASE("sparse, emulated: what is not positive definite, or no number, fails with the solver's code") {
  on_both([](Runtime& rt) {
    const auto check_fails = [&](const Matrix& a, const std::vector<double>& b) {
      CgSystem system(rt, a, 1e-8, kMost, kAllScratch);
      system.set(b);
      try {
        system.run();
        FAIL("the solve went well, and should not");
      } catch (const flywheel::RunError& error) {
        INFO(error.what());
        CHECK(error.user_code() == ConjugateGradient::kNotPositive);
      }
    };
    Matrix negative = poisson(9), one_bad = poisson(9);
    for (double& value : negative.values) value = -value;
    one_bad.values[one_bad.offsets[40] + 2] = -40;  // a diagonal
    std::vector<double> b = drawn_vector(81, 1);
    check_fails(negative, b);
    check_fails(one_bad, b);
    check_fails(random_laplacian(300, -2, 1), drawn_vector(300, 2));
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      b[7] = bad;
      check_fails(poisson(9), b);
    }
  });
}

}  // namespace sparse
