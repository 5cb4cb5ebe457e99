// Operands: constants that a compiled run fetches ahead of the tasks that use them. When the graph is loaded, each
// worker's share is packed in the order of use; in a run it streams through shared memory, pass after pass, and waits for
// no other task.
//
// A vector goes through a chain of matrices, again and again. Each task multiplies a strip of rows.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cstdio>
#include <vector>

constexpr int kSize = 256, kRows = 32, kLayers = 6, kPasses = 50;  // rows of a strip

struct Strip {
  const float* matrix;  // [kSize][kSize]
  const float* in;
  float* out;
  int first;

  std::uint32_t operand_bytes() const { return kRows * kSize * sizeof(float); }
  template <class Block> FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    block.for_each(kRows * kSize, [&](int i) { reinterpret_cast<float*>(to)[i] = matrix[first * kSize + i]; });
  }

  /// Portable: what dynamic runs do, and what a test holds the other one against.
  template <class Block> FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(kRows, [&](int r) { out[first + r] = row(matrix + (first + r) * kSize); });
  }
  /// In a compiled run: the same rows, from pages that are there already.
  template <class Block, class Operands> FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    int done = 0;
    while (const unsigned char* page = operands.next()) {
      const int of_page = static_cast<int>(flywheel::kPageBytes / (kSize * sizeof(float)));
      const int rows = of_page < kRows - done ? of_page : kRows - done;  // a task's last page may be shorter
      const float* weights = reinterpret_cast<const float*>(page);
      block.for_each(rows, [&](int r) { out[first + done + r] = row(weights + r * kSize); });
      operands.give_back();
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

int main() {
  flywheel::Runtime rt = flywheel::start<Strip>();
  std::vector<float> numbers(kLayers * kSize * kSize), x(kSize, 1.f);
  // Each layer mixes every value with another one.
  for (int layer = 0; layer < kLayers; ++layer)
    for (int i = 0; i < kSize; ++i) {
      const int partner = (i + 1 + layer * 37) % kSize;
      numbers[(layer * kSize + i) * kSize + i] = 0.6f;
      numbers[(layer * kSize + i) * kSize + partner] += i % 2 ? 0.4f : -0.4f;
    }
  const auto matrices = rt.upload(numbers);

  const auto chain = [&](const std::vector<flywheel::Buffer<float>>& vectors) {
    flywheel::Graph g;
    std::vector<flywheel::TaskRef<>> before, now;
    for (int layer = 0; layer < kLayers; ++layer, before = now, now.clear())
      for (int first = 0; first < kSize; first += kRows) {
        now.push_back(g.add(Strip{matrices.data() + layer * kSize * kSize, vectors[layer % 2].data(),
                                  vectors[(layer + 1) % 2].data(), first}));
        for (const auto& task : before) g.edge(task, now.back());
      }
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
  std::printf("%d passes of %d tasks on %s: the first value is %g compiled, %g through the queues\n", kPasses,
              kLayers * kSize / kRows, rt.device().c_str(), compiled[0], dynamic[0]);
  return compiled == dynamic ? 0 : 1;
}
