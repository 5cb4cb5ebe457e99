// Phases: all workers meet, on the device, between one computation and the next. Here two take turns 1,000 times over
// one array, in one submission: a softmax by all workers together, and a step that flattens its outcome.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace phases {

constexpr int kSize = 2'000, kTurns = 1'000, kPieces = 16;
constexpr double kFlatter = 0.999;

/// The greatest value and the sum of exp(value - greatest), mergeable in any order (Milakov, Gimelshein, 2018).
struct Norm {
  double greatest = -1e300, sum = 0;
};
FLYWHEEL_TASK inline Norm merge(Norm a, Norm b) {
  const double greatest = fmax(a.greatest, b.greatest);
  return {greatest, a.sum * exp(a.greatest - greatest) + b.sum * exp(b.greatest - greatest)};
}

struct Softmax {  // a grid task: every worker runs it on a share of x
  double* x;
  Norm* shares;  // one for each worker
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const auto join = [](Norm a, Norm b) { return merge(a, b); };
    const int workers = static_cast<int>(block.workers()), worker = static_cast<int>(block.worker());
    const int first = kSize * worker / workers, count = kSize * (worker + 1) / workers - first;
    Norm mine, all;
    block.for_each(count, [&](int i) { mine = merge(mine, {x[first + i], 1}); });
    mine = block.reduce(mine, join);
    if (block.leader()) shares[worker] = mine;
    if (!block.grid_sync()) return;  // false when the run was cancelled
    block.for_each(workers, [&](int w) { all = merge(all, shares[w]); });
    all = block.reduce(all, join);
    block.for_each(count, [&](int i) { x[first + i] = exp(x[first + i] - all.greatest) / all.sum; });
  }
};

struct Flatten {  // an ordinary task: back to logarithms, a little closer to each other
  double* x;
  int count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(count, [&](int i) { x[i] = kFlatter * log(x[i]); });
  }
};

std::vector<double> softmax_plainly(std::vector<double> x) {
  const double greatest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - greatest);
  for (double& value : x) value /= sum;
  return x;
}

}  // namespace phases

int main() {
  using namespace phases;
  flywheel::Runtime rt = flywheel::start<Softmax, Flatten>();
  std::vector<double> logits(kSize);
  for (int i = 0; i < kSize; ++i) logits[i] = 5 * std::sin(i);
  const auto x = rt.upload(logits);
  const auto shares = rt.allocate<Norm>(rt.workers());
  flywheel::Graph g;
  g.add_grid(Softmax{x.data(), shares.data()});  // a phase of its own
  for (int p = 0; p < kPieces; ++p) g.add(Flatten{x.data() + p * kSize / kPieces, kSize / kPieces});
  flywheel::Run run = rt.submit(rt.load(g), flywheel::repeat(kTurns));
  run.wait();

  for (double& logit : logits) logit *= std::pow(kFlatter, kTurns);  // what 1,000 turns come to
  const std::vector<double> found = softmax_plainly(x.read()), wanted = softmax_plainly(logits);
  double error = 0;
  for (int i = 0; i < kSize; ++i) error = std::max(error, std::fabs(found[i] / wanted[i] - 1));
  std::printf("%u turns of softmax and flatten on %s: relative error %.1e\n", run.iterations(), rt.device().c_str(), error);
  return error < 1e-9 ? 0 : 1;
}
