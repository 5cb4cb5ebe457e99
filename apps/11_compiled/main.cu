// A graph that runs again and again, compiled: every task has its worker and its place in advance, and edges are waits on
// counters that nobody resets. Then the same once more with the costs that a trace of the first has measured.
//
// A ring of cells; each pass moves every cell halfway to the mean of its neighbours, in stages of one task a strip.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cstdio>
#include <vector>

namespace ring {

constexpr int kCells = 4096, kStrips = 8, kPasses = 200;

FLYWHEEL_TASK inline float moved(const float* from, int i) {
  const float left = from[(i + kCells - 1) % kCells], right = from[(i + 1) % kCells];
  return 0.5f * from[i] + 0.25f * (left + right);
}

struct Move {
  const float* from;
  float* to;
  int strip;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const int count = kCells / kStrips;
    block.for_each(count, [&](int i) { to[strip * count + i] = moved(from, strip * count + i); });
  }
};

/// There and back: each strip needs its own and its two neighbours of the stage before.
flywheel::Graph make_graph(float* a, float* b) {
  flywheel::Graph g;
  std::vector<flywheel::TaskRef<>> there;
  for (int s = 0; s < kStrips; ++s) there.push_back(g.add(Move{a, b, s}));
  for (int s = 0; s < kStrips; ++s)
    g.add(Move{b, a, s}, after(there[(s + kStrips - 1) % kStrips], there[s], there[(s + 1) % kStrips]));
  return g;
}

}  // namespace ring

int main() {
  using namespace ring;
  flywheel::Options options;
  options.trace_events = 8192;
  flywheel::Runtime rt = flywheel::start<Move>(options);
  std::vector<float> cells(kCells), next(kCells);
  for (int i = 0; i < kCells; ++i) cells[i] = i % 97 * 0.5f;
  const auto a = rt.upload(cells), b = rt.upload(cells);
  const flywheel::Graph g = make_graph(a.data(), b.data());

  const flywheel::Executable first = rt.load(g, flywheel::compiled);
  flywheel::Run run = rt.submit(first, flywheel::repeat(kPasses), flywheel::traced);
  std::printf("%s\n", run.trace().report().c_str());

  const flywheel::Compiled measured{.costs = run.trace().costs()};
  std::printf("%s\n", rt.describe(g, measured).c_str());
  rt.submit(rt.load(g, measured), flywheel::repeat(kPasses)).wait();

  for (int pass = 0; pass < 4 * kPasses; ++pass) {  // two runs, two stages a pass
    for (int i = 0; i < kCells; ++i) next[i] = moved(cells.data(), i);
    cells.swap(next);
  }
  return a.read() == cells ? 0 : 1;
}
