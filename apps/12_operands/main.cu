// Operands: constants that a compiled run fetches ahead of the tasks that use them. When the graph is loaded, each
// worker's share is packed in the order of use; in a run it streams through shared memory, pass after pass, and waits for
// no other task.
//
// A vector goes through a chain of matrices, again and again. Each task multiplies a strip of rows.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

namespace layers {

constexpr int kSize = 256, kRows = 32, kLayers = 6, kPasses = 50;  // rows of a strip

struct Strip {
  const float* matrix;  // [kSize][kSize]
  const float* in;
  float* out;
  int first;

  std::uint32_t operand_bytes() const { return kRows * kSize * sizeof(float); }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    block.for_each(kRows * kSize, [&](int i) { reinterpret_cast<float*>(to)[i] = matrix[first * kSize + i]; });
  }

  /// Portable: what dynamic runs do, and what a test holds the other one against.
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(kRows, [&](int r) { out[first + r] = row(matrix + (first + r) * kSize); });
  }
  /// In a compiled run: the same rows, from pages that are there already.
  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    int done = 0;
    while (const unsigned char* page = operands.consumer_wait()) {
      const int of_page = static_cast<int>(flywheel::kPageBytes / (kSize * sizeof(float)));
      const int rows = of_page < kRows - done ? of_page : kRows - done;  // a task's last page may be shorter
      const float* weights = reinterpret_cast<const float*>(page);
      block.for_each(rows, [&](int r) { out[first + done + r] = row(weights + r * kSize); });
      operands.consumer_release();
      done += rows;
    }
  }

 private:
  FLYWHEEL_TASK float row(const float* weights) const {
    float sum = 0;
    for (int i = 0; i < kSize; ++i) sum += weights[i] * in[i];
    return sum;
  }
};

/// Each layer turns pairs of values like the coordinates of a point, so that they neither grow nor vanish.
std::vector<float> turns() {
  std::vector<float> matrices(kLayers * kSize * kSize);
  for (int row = 0; row < kLayers * kSize; ++row) {
    const int i = row % kSize, partner = i ^ (1 << row / kSize);
    matrices[row * kSize + i] = 0.8f;
    matrices[row * kSize + partner] = i < partner ? -0.6f : 0.6f;
  }
  return matrices;
}

std::vector<double> plain_loop(const std::vector<float>& matrices, std::vector<double> x) {
  std::vector<double> y(kSize);
  for (int step = 0; step < kPasses * kLayers; ++step, x.swap(y))
    for (int i = 0; i < kSize; ++i) {
      const auto row = matrices.begin() + (step % kLayers * kSize + i) * kSize;
      y[i] = std::inner_product(row, row + kSize, x.begin(), 0.);
    }
  return x;
}

}  // namespace layers

int main() {
  using namespace layers;
  flywheel::Runtime rt = flywheel::start<Strip>();
  const std::vector<float> numbers = turns();
  std::vector<float> x(kSize);
  for (int i = 0; i < kSize; ++i) x[i] = static_cast<float>(1 + i % 7);
  const auto matrices = rt.upload(numbers);

  const auto chain = [&](const std::vector<flywheel::Buffer<float>>& vectors) {
    flywheel::Graph g;
    std::vector<flywheel::TaskRef<>> before, now;
    for (int layer = 0; layer < kLayers; ++layer, before = now, now.clear())
      for (int first = 0; first < kSize; first += kRows)
        now.push_back(g.add(
            Strip{matrices.data() + layer * kSize * kSize, vectors[layer % 2].data(), vectors[(layer + 1) % 2].data(), first},
            after(before)));
    return g;
  };
  const auto run = [&](bool compiled) {
    std::vector<flywheel::Buffer<float>> vectors;
    vectors.push_back(rt.upload(x));
    vectors.push_back(rt.allocate<float>(kSize));
    const flywheel::Graph g = chain(vectors);
    rt.submit(compiled ? rt.load(g, flywheel::compiled) : rt.load(g), flywheel::repeat(kPasses)).wait();
    return vectors[kLayers % 2].read();
  };
  const std::vector<float> compiled = run(true), dynamic = run(false);
  const std::vector<double> wanted = plain_loop(numbers, {x.begin(), x.end()});
  bool right = compiled == dynamic;
  for (int i = 0; i < kSize; ++i) right = right && std::abs(compiled[i] - wanted[i]) < 1e-3;
  std::printf("%d passes of %d tasks on %s: the first value is %g, and %g by a plain loop\n", kPasses, kLayers * kSize / kRows,
              rt.device().c_str(), compiled[0], wanted[0]);
  return right ? 0 : 1;
}
