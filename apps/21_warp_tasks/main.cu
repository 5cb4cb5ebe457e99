// Warp tasks: where a step has several small tasks for each worker, each gets one warp, and a worker's eight warps run as many
// tasks side by side. The same body runs either way: its type says which.
//
// Heat in a ring, in steps, as in 14_early_task; but a task is a strip of 32 cells, and each worker has four of them in a step.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cstdio>
#include <string>
#include <vector>

#include "apps/measure/in_turns.hpp"

namespace warp_tasks {

constexpr int kStrip = 32, kStripsOfWorker = 4, kSteps = 16, kCheckedPasses = 3;

FLYWHEEL_TASK inline float moved(float left, float cell, float right, int step) {
  return 0.5f * cell + 0.25f * (left + right) + static_cast<float>(step % 3) - 1.0f;
}

/// A strip of a step, from a row of cells to the next.
struct Step {
  const float* from;
  float* to;
  int strip, cells, step;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(kStrip, [&](int i) {
      const int cell = strip * kStrip + i;
      to[cell] = moved(from[(cell + cells - 1) % cells], from[cell], from[(cell + 1) % cells], step);
    });
  }
};

struct WarpStep : Step {
  using Grain = flywheel::Warp;
};

/// Each step has a row of its own. The first reads the last one's.
template <class Task>
flywheel::Executable load(flywheel::Runtime& rt, const flywheel::Buffer<float>& rows) {
  const int strips = static_cast<int>(rt.workers()) * kStripsOfWorker, cells = strips * kStrip;
  flywheel::Graph g;
  std::vector<flywheel::TaskRef<>> before, now;
  for (int step = 0; step < kSteps; ++step, before = now, now.clear()) {
    g.stage("step " + std::to_string(step));
    for (int s = 0; s < strips; ++s) {
      const Step task{rows.data() + (step + kSteps - 1) % kSteps * cells, rows.data() + step * cells, s, cells, step};
      const auto waits =
          step ? flywheel::after(before[(s + strips - 1) % strips], before[s], before[(s + 1) % strips]) : flywheel::After{};
      now.push_back(g.add(Task{task}, waits));
    }
  }
  return rt.load(g, flywheel::compiled);
}

std::vector<float> plain_loop(std::vector<float> now) {
  const int cells = static_cast<int>(now.size());
  std::vector<float> next(now.size());
  for (int step = 0; step < kCheckedPasses * kSteps; ++step, now.swap(next))
    for (int i = 0; i < cells; ++i) next[i] = moved(now[(i + cells - 1) % cells], now[i], now[(i + 1) % cells], step % kSteps);
  return now;
}

}  // namespace warp_tasks

int main() {
  using namespace warp_tasks;
  flywheel::Runtime rt = flywheel::start<Step, WarpStep>();
  const std::size_t cells = std::size_t{rt.workers()} * kStripsOfWorker * kStrip;
  const auto of_blocks = rt.allocate<float>(kSteps * cells), of_warps = rt.allocate<float>(kSteps * cells);
  const flywheel::Executable blocks = load<Step>(rt, of_blocks), warps = load<WarpStep>(rt, of_warps);
  rt.submit(blocks, flywheel::repeat(kCheckedPasses)).wait();
  rt.submit(warps, flywheel::repeat(kCheckedPasses)).wait();

  const std::vector<float> wanted = plain_loop(std::vector<float>(cells)), by_blocks = of_blocks.read(),
                           by_warps = of_warps.read();
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t at = (kSteps - 1) * cells + i;
    if (by_blocks[at] != wanted[i] || by_warps[at] != wanted[i]) return 1;
  }
  measure::print_gain(rt, "warp tasks", measure::time_in_turns(rt, blocks, warps));
  return 0;
}
