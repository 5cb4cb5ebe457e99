// Conjugate gradient until it has converged, as one grid task that decides when to stop, and by cuSPARSE and cuBLAS in a CUDA
// graph. Part of the runtime's rows, see runtime_rows.hpp.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>

#include "apps/bench/cg/library_cg.hpp"
#include "apps/bench/runtime_rows.hpp"
#include "apps/measure/cuda_objects.hpp"
#include "apps/sparse/cg_system.hpp"

namespace bench {

using measure::Samples;

namespace {

constexpr double kResidual = 1e-8;  // |b - A x| / |b|, of doubles: floats end at some 1e-5 here
constexpr std::uint32_t kMostIterations = 20'000;

/// A matrix, made when it is needed, and what the solves with it took.
class CgProblem {
 public:
  explicit CgProblem(std::function<sparse::Matrix()> make) : make_(std::move(make)) {}

  const sparse::Matrix& matrix() {
    if (!matrix_.rows()) matrix_ = make_();
    return matrix_;
  }
  /// The right-hand side of a round: each way to solve has the same.
  std::vector<double> side(std::uint64_t round) { return sparse::drawn_vector(matrix().rows(), round); }

  /// Throws std::runtime_error unless x solves that round's equations, after about as many iterations as another way took.
  void check(std::uint64_t round, const std::vector<double>& x, std::uint32_t iterations) {
    const double residual = sparse::residual_of(matrix(), x, side(round));
    if (!(residual <= 1.1 * kResidual))  // the peer keeps its residual by a recurrence
      throw std::runtime_error("the residual of round " + std::to_string(round) + " is " +
                               std::to_string(residual / kResidual) + " times what was asked for, after " +
                               std::to_string(iterations) + " iterations");
    const auto [other, is_first] = iterations_.emplace(round, iterations);
    if (!is_first && std::abs(double{1} * other->second - iterations) > 5 + 0.02 * iterations)
      throw std::runtime_error("one way took " + std::to_string(other->second) + " iterations, another " +
                               std::to_string(iterations));
  }

 private:
  const std::function<sparse::Matrix()> make_;
  sparse::Matrix matrix_;
  std::map<std::uint64_t, std::uint32_t> iterations_;  // of the first that solved it, by round
};

Samples timed_in_ms(int samples, const std::function<void()>& solve) {
  Samples times = measure::time_each(1, samples, solve);
  for (double& time : times) time /= 1'000;
  return times;
}

/// Most of what an SM's block may have; the rest is the kernel's own.
std::uint32_t most_scratch() {
  return static_cast<std::uint32_t>(measure::device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) - (18u << 10);
}

Samples cg_by_task(CgProblem& problem, std::uint64_t round, int samples) {
  flywheel::Options options;
  options.target = flywheel::Target::gpu;
  options.mode = flywheel::Mode::resident;
  options.scratch_bytes = most_scratch();
  options.heap_bytes = std::size_t{128} << 20;
  flywheel::Runtime rt = flywheel::start<sparse::ConjugateGradient>(options);
  sparse::CgSystem system(rt, problem.matrix(), kResidual, kMostIterations, options.scratch_bytes);
  system.set(problem.side(round));
  system.run();
  const std::vector<double> x = system.x();
  problem.check(round, x, system.solved().iterations);
  const Samples times = timed_in_ms(samples, [&] { system.run(); });
  if (system.x() != x) throw std::runtime_error("two solves of the same equations differ");
  return times;
}

Samples cg_by_libraries(const std::shared_ptr<const SolverFunctions>& functions, CgProblem& problem, std::uint64_t round,
                        int samples) {
  LibraryCg solver(functions, problem.matrix(), kResidual, kMostIterations);
  if (!solver.decides_on_device())
    std::fprintf(stderr, "bench: the host reads the residual after every %u iterations: no loop in the graph (%s)\n",
                 LibraryCg::kChunk, solver.why_not().c_str());
  solver.set(problem.side(round));
  solver.run();
  problem.check(round, solver.x(), solver.iterations());
  return timed_in_ms(samples, [&] { solver.run(); });
}

}  // namespace

std::vector<measure::Measurement> cg_rows(const measure::Effort& effort) {
  const std::shared_ptr<const SolverFunctions> functions = find_solver_functions();
  const int samples = effort.samples(30);
  std::vector<measure::Measurement> rows;
  const auto add = [&](const std::string& name, std::function<sparse::Matrix()> make) {
    const auto problem = std::make_shared<CgProblem>(std::move(make));
    const std::string peer = "peer." + name + ".cuda_graph";
    rows.push_back({.name = "phases." + name,
                    .unit = "ms",
                    .peer = functions ? peer : "",
                    .round = [problem, samples, has_peer = functions != nullptr, name, round = std::uint64_t{0}]() mutable {
                      if (!has_peer && round == 0)
                        std::fprintf(stderr, "bench: no libcusparse and libcublas here: %s has no peer\n", name.c_str());
                      return cg_by_task(*problem, ++round, samples);
                    }});
    if (functions)
      rows.push_back({.name = peer, .unit = "ms", .round = [functions, problem, samples, round = std::uint64_t{0}]() mutable {
                        return cg_by_libraries(functions, *problem, ++round, samples);
                      }});
  };
  add("cg_poisson", [] { return sparse::poisson(512); });
  add("cg_random", [] { return sparse::random_laplacian(512 * 512, 0.01, 1); });
  return rows;
}

}  // namespace bench
