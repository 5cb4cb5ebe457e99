#include <flywheel/gemm.cuh>
#include <flywheel/task.cuh>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

#include "apps/ladder/problem.hpp"
#include "apps/ladder/tasks.hpp"

namespace ladder {

using flywheel::Bf16;
using flywheel::Matrix;

namespace {

std::vector<Bf16> rounded(const std::vector<float>& values) {
  std::vector<Bf16> all(values.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = Bf16::nearest(values[i]);
  return all;
}

/// Some values of C = A B^T, against sums in double.
void check(const std::vector<Bf16>& a, const std::vector<Bf16>& b, const std::vector<float>& c, std::size_t n) {
  std::mt19937_64 random(std::random_device{}());
  for (int tries = 0; tries < 500; ++tries) {
    const std::size_t row = random() % n, column = random() % n;
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += double{a[row * n + k].value()} * double{b[column * n + k].value()};
    if (!(std::abs(double{c[row * n + column]} - sum) <= 1e-5 * static_cast<double>(n)))
      throw std::runtime_error("the product as tasks is wrong in row " + std::to_string(row) + ", column " +
                               std::to_string(column));
  }
}

}  // namespace

measure::Samples product_rates(int n, int samples) {
  flywheel::Options options;
  options.target = flywheel::Target::gpu;
  options.scratch_bytes = flywheel::kGemmScratchBytes;
  flywheel::Runtime rt = flywheel::start<flywheel::Gemm<>>(options);
  const auto size = static_cast<std::uint32_t>(n);
  const std::vector<Bf16> a = rounded(draw_values(n)), b = rounded(draw_values(n));
  const auto left = rt.upload(a), right = rt.upload(b);
  const auto out = rt.allocate<float>(a.size());
  const flywheel::Product product(rt, Matrix{left.data(), size, size}, Matrix{right.data(), size, size},
                                  Matrix{out.data(), size, size});
  flywheel::Graph graph;
  product.add_to(graph);
  const flywheel::Executable executable = rt.load(graph);
  rt.submit(executable).wait();
  check(a, b, out.read(), size);
  measure::Samples us = measure::time_each(3, samples, [&] { rt.submit(executable).wait(); });
  for (double& one : us) one = 2e-6 * n * n * n / one;
  return us;
}

}  // namespace ladder
