// A graph that runs again and again on the device, with no word from the host, until one of its tasks says stop: the
// heat in a rod whose ends are kept at 0 and at 100 degrees, by Jacobi's method.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace rod {

constexpr int kLength = 34, kPieces = 4;
constexpr float kCloseEnough = 1e-4f;

FLYWHEEL_TASK inline float mean(const float* from, int i) { return (from[i - 1] + from[i + 1]) * 0.5f; }

struct Sweep {  // a quarter of the rod
  const float* from;
  float* to;
  int first, count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(count, [&](int i) { to[first + i] = mean(from, first + i); });
  }
};

struct StopWhenStill {
  const float *now, *before;
  template <class Block>
  FLYWHEEL_TASK float operator()(Block& block) const {
    float change = 0;
    block.for_each(kLength, [&](int i) { change = fmaxf(change, fabsf(now[i] - before[i])); });
    change = block.reduce(change, [](float a, float b) { return fmaxf(a, b); });
    if (block.leader() && change < kCloseEnough) block.stop();
    return change;
  }
};

/// The same by one plain loop; returns the passes it took.
unsigned solve_plainly(std::vector<float>& a, std::vector<float> b) {
  for (unsigned pass = 1;; ++pass) {
    float change = 0;
    for (int i = 1; i < kLength - 1; ++i) b[i] = mean(a.data(), i);
    for (int i = 1; i < kLength - 1; ++i) a[i] = mean(b.data(), i);
    for (int i = 0; i < kLength; ++i) change = std::max(change, std::fabs(a[i] - b[i]));
    if (change < kCloseEnough) return pass;
  }
}

}  // namespace rod

int main() {
  using namespace rod;
  flywheel::Runtime rt = flywheel::start<Sweep, StopWhenStill>();
  std::vector<float> rod(kLength);
  rod.back() = 100;
  const auto a = rt.upload(rod), b = rt.upload(rod);
  flywheel::Graph g;
  const auto check = g.add(StopWhenStill{a.data(), b.data()});
  std::vector<flywheel::TaskRef<>> there;
  const int count = (kLength - 2) / kPieces;
  for (int p = 0; p < kPieces; ++p) there.push_back(g.add(Sweep{a.data(), b.data(), 1 + p * count, count}));
  for (int p = 0; p < kPieces; ++p) {
    const auto back = g.add(Sweep{b.data(), a.data(), 1 + p * count, count}, after(there));
    g.edge(back, check);
  }
  flywheel::Run run = rt.submit(rt.load(g), flywheel::repeat_until_stop(100'000));
  std::printf("%u passes of 9 tasks on %s, one submission; the last pass changed %g degrees\n", run.iterations(),
              rt.device().c_str(), run.get(check));
  const unsigned passes = solve_plainly(rod, rod);
  std::printf("the middle of the rod has %.3f degrees\n", rod[kLength / 2]);
  return passes == run.iterations() && a.read() == rod ? 0 : 1;
}
