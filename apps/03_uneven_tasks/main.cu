// A thousand small tasks of very different length, handed in as one graph: each worker takes the next one when it has
// ended its last, so all of them finish together. Each task is one character of a picture of the Mandelbrot set.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

namespace mandelbrot {

constexpr int kColumns = 50, kRows = 20, kPoints = 16 * 16, kMost = 1'000;
using Number = long long;  // 28 binary places: a GPU and a CPU count the same steps
constexpr Number kOne = Number{1} << 28;

/// Steps until the point leaves the circle of radius 2, at most kMost.
FLYWHEEL_TASK inline int steps_at(Number cx, Number cy) {
  Number x = 0, y = 0;
  for (int step = 0; step < kMost; ++step) {
    const Number xx = x * x / kOne, yy = y * y / kOne;
    if (xx + yy > 4 * kOne) return step;
    y = 2 * x * y / kOne + cy;
    x = xx - yy + cx;
  }
  return kMost;
}
FLYWHEEL_TASK inline int steps_of_point(int cell, int point) {
  const int column = cell % kColumns * 16 + point % 16, row = cell / kColumns * 16 + point / 16;
  return steps_at(column * 3 * kOne / (kColumns * 16) - 2 * kOne, row * 5 * kOne / 2 / (kRows * 16) - 5 * kOne / 4);
}

struct Cell {
  int cell;
  long long* steps_by_worker;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    int mine = 0;
    block.for_each(kPoints, [&](int point) { mine += steps_of_point(cell, point); });
    const int steps = block.reduce(mine, [](int a, int b) { return a + b; });
    if (block.leader()) steps_by_worker[block.worker()] += steps;  // a worker runs one task at a time: no atomic
    return steps;
  }
};

}  // namespace mandelbrot

int main() {
  using namespace mandelbrot;
  flywheel::Runtime rt = flywheel::start<Cell>();
  const auto by_worker = rt.allocate<long long>(rt.workers());
  flywheel::Graph g;
  std::vector<flywheel::TaskRef<int>> cells;
  for (int cell = 0; cell < kColumns * kRows; ++cell) cells.push_back(g.add(Cell{cell, by_worker.data()}));
  flywheel::Run run = rt.submit(rt.load(g));

  bool right = true;
  long long all = 0;
  for (int cell = 0; cell < kColumns * kRows; ++cell) {
    const int steps = run.get(cells[cell]);
    int plainly = 0;
    for (int point = 0; point < kPoints; ++point) plainly += steps_of_point(cell, point);
    right &= steps == plainly;
    all += steps;
    std::putchar(steps > kPoints * kMost * 3 / 4 ? '#' : steps > kPoints * 30 ? '+' : steps > kPoints * 6 ? '.' : ' ');
    if (cell % kColumns == kColumns - 1) std::putchar('\n');
  }
  rt.shutdown();  // every worker has left, and its counters are complete
  const flywheel::Stats stats = rt.stats();
  const std::vector<long long> loads = by_worker.read();
  const long long busiest = *std::max_element(loads.begin(), loads.end());
  std::printf("%llu tasks on %s: the busiest worker took %.2f times its fair share of the steps\n",
              static_cast<unsigned long long>(stats.tasks), stats.device.c_str(), 1.0 * busiest * stats.workers / all);
  return right && stats.tasks == cells.size() && std::accumulate(loads.begin(), loads.end(), 0ll) == all ? 0 : 1;
}
