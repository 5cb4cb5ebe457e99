// Matrix products on tensor cores, as tasks beside others: two layers of a network, Y = relu(X W1^T + b) W2^T. The bias and the
// ramp are an epilogue, which each value of the first product goes through on its way to memory. The second product starts when
// the first has ended, on the device.
#include <flywheel/gemm.cuh>
#include <flywheel/task.cuh>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

namespace layers {

using flywheel::Bf16;

struct BiasAndRamp {
  const float* bias;
  FLYWHEEL_TASK float operator()(float sum, int, int column) const {
    const float value = sum + bias[column];
    return value > 0 ? value : 0;
  }
};

std::vector<Bf16> numbers(std::size_t count, unsigned seed) {
  std::vector<Bf16> all(count);
  for (Bf16& one : all) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes, 1992
    one = Bf16::nearest(static_cast<float>(seed >> 24) / 128 - 1);
  }
  return all;
}

/// One row of the network's output, in double but for the bf16 between the layers.
std::vector<double> row_of(const Bf16* x, const std::vector<Bf16>& w1, const std::vector<float>& bias,
                           const std::vector<Bf16>& w2, std::uint32_t in, std::uint32_t hidden) {
  std::vector<double> between(hidden), out(w2.size() / hidden);
  for (std::uint32_t h = 0; h < hidden; ++h) {
    double sum = bias[h];
    for (std::uint32_t i = 0; i < in; ++i) sum += double{x[i].value()} * double{w1[std::size_t{h} * in + i].value()};
    between[h] = Bf16::nearest(static_cast<float>(std::max(sum, 0.))).value();
  }
  for (std::size_t o = 0; o < out.size(); ++o)
    for (std::uint32_t h = 0; h < hidden; ++h) out[o] += between[h] * double{w2[o * hidden + h].value()};
  return out;
}

}  // namespace layers

int main() {
  using namespace layers;
  flywheel::Options options;
  options.scratch_bytes = flywheel::kGemmScratchBytes;
  flywheel::Runtime rt = flywheel::start<flywheel::Gemm<>, flywheel::Gemm<BiasAndRamp>>(options);
  const std::uint32_t rows = rt.on_gpu() ? 4096 : 48, in = rt.on_gpu() ? 2048 : 64, hidden = 2 * in, out = in;
  const std::vector<Bf16> x = numbers(std::size_t{rows} * in, 1), w1 = numbers(std::size_t{hidden} * in, 2),
                          w2 = numbers(std::size_t{out} * hidden, 3);
  std::vector<float> bias(hidden);
  for (std::uint32_t h = 0; h < hidden; ++h) bias[h] = static_cast<float>(h % 7) - 3;

  const auto x_there = rt.upload(x), w1_there = rt.upload(w1), w2_there = rt.upload(w2);
  const auto bias_there = rt.upload(bias);
  const auto between = rt.allocate<Bf16>(std::size_t{rows} * hidden);
  const auto y = rt.allocate<float>(std::size_t{rows} * out);
  using flywheel::Matrix;
  const flywheel::Product first(rt, Matrix{x_there.data(), rows, in}, Matrix{w1_there.data(), hidden, in},
                                Matrix{between.data(), rows, hidden});
  const flywheel::Product second(rt, Matrix{between.data(), rows, hidden}, Matrix{w2_there.data(), out, hidden},
                                 Matrix{y.data(), rows, out});
  flywheel::Graph g;
  const auto done = first.add_to(g, {}, BiasAndRamp{bias_there.data()});
  second.add_to(g, after(done));
  const flywheel::Executable network = rt.load(g);
  rt.submit(network).wait();

  double worst = 0;
  const std::vector<float> found = y.read();
  for (std::uint32_t row = 0; row < rows; row += rows / 8) {
    const std::vector<double> wanted = row_of(x.data() + std::size_t{row} * in, w1, bias, w2, in, hidden);
    for (std::uint32_t o = 0; o < out; ++o)
      worst =
          std::max(worst, std::abs(found[std::size_t{row} * out + o] - wanted[o]) / (std::sqrt(hidden) + std::abs(wanted[o])));
  }
  std::vector<double> us;
  for (int run = 0; run < 21; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    rt.submit(network).wait();
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(us.begin(), us.begin() + 10, us.end());
  std::printf("%u rows through two layers in %.0f us, %.1f TFLOP/s, on %s; off by %.4f at most\n", rows, us[10],
              4. * rows * in * hidden / us[10] / 1e6, rt.device().c_str(), worst);
  return worst < 0.02 ? 0 : 1;
}
