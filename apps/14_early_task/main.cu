// Early tasks: they begin before the tasks before them have ended, do what they can, and poll for the rest. What they poll
// for comes in stamped words, each a value with the number of its pass, so that the value itself says that it is there.
//
// Heat in a ring, in steps: each cell moves toward its neighbours, and is heated or cooled. A task is a strip of cells
// in one step. It needs its own strip and both neighbours' of the step before, but not to know how much it will heat.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cstdio>
#include <string>
#include <vector>

#include "apps/measure/in_turns.hpp"

namespace early_task {

using flywheel::look_at, flywheel::put_stamped, flywheel::Stamped;

constexpr int kStrip = 256, kSteps = 16, kCheckedPasses = 3;  // a cell for each thread that computes, on a GPU

FLYWHEEL_TASK inline float heat(int cell, int step) {  // from a few rounds of Marsaglia's xorshift, 2003
  std::uint32_t x = static_cast<std::uint32_t>(cell * kSteps + step) + 1;
  for (int round = 0; round < 24; ++round) x ^= x << 13, x ^= x >> 17, x ^= x << 5;
  return static_cast<float>(x % 8) - 3.5f;
}
FLYWHEEL_TASK inline float moved(float left, float cell, float right, float heat) {
  return 0.5f * cell + 0.25f * (left + right) + heat;
}

/// A task's strip of a step, from a row of cells to the next.
template <class Cell>
struct Strip {
  const Cell* from;
  Cell* to;
  int strip, cells, step;
  FLYWHEEL_TASK int cell(int i) const { return strip * kStrip + i; }
  FLYWHEEL_TASK int left(int i) const { return (cell(i) + cells - 1) % cells; }
  FLYWHEEL_TASK int right(int i) const { return (cell(i) + 1) % cells; }
};

struct Step : Strip<float> {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(kStrip,
                   [&](int i) { to[cell(i)] = moved(from[left(i)], from[cell(i)], from[right(i)], heat(cell(i), step)); });
  }
};

struct EarlyStep : Strip<Stamped> {
  static constexpr bool kEarly = true;

  /// Portable: CPU workers begin no task early.
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(kStrip, [&](int i) { put(block, i, look(i), heat(cell(i), step)); });
  }
  /// Each thread has a cell.
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    const int i = block.rank();
    const float hot = heat(cell(i), step);  // needs no other task
    Words words;
    block.spin([&] {  // false if the run has failed: then no result matters
      words = look(i);
      return step == 0 || words.are_of(block.stamp());  // step 0 reads what the pass before has left
    });
    put(block, i, words, hot);
    block.sync();
    if (block.leader()) block.sent();  // all words of this task are on their way
  }

 private:
  struct Words {
    Stamped left, cell, right;
    FLYWHEEL_TASK bool are_of(std::uint32_t stamp) const {
      return left.stamp() == stamp && cell.stamp() == stamp && right.stamp() == stamp;
    }
  };
  FLYWHEEL_TASK Words look(int i) const { return {look_at(from[left(i)]), look_at(from[cell(i)]), look_at(from[right(i)])}; }
  template <class Block>
  FLYWHEEL_TASK void put(Block& block, int i, const Words& words, float hot) const {
    put_stamped(to[cell(i)], moved(words.left.value(), words.cell.value(), words.right.value(), hot), block.stamp());
  }
};

/// Each step has a row of its own, for a stamp tells the pass, not the step. The first reads the last one's.
template <class Task, class Cell>
flywheel::Executable load(flywheel::Runtime& rt, const flywheel::Buffer<Cell>& rows) {
  const int strips = static_cast<int>(rt.workers()), cells = strips * kStrip;
  flywheel::Graph g;
  std::vector<flywheel::TaskRef<>> before, now;
  for (int step = 0; step < kSteps; ++step, before = now, now.clear()) {
    g.stage("step " + std::to_string(step));
    for (int s = 0; s < strips; ++s) {
      const Task task{{rows.data() + (step + kSteps - 1) % kSteps * cells, rows.data() + step * cells, s, cells, step}};
      now.push_back(step ? g.add(task, after(before[(s + strips - 1) % strips], before[s], before[(s + 1) % strips]))
                         : g.add(task));
      g.place(now.back(), static_cast<std::uint32_t>(s));
    }
  }
  return rt.load(g, flywheel::compiled);
}

std::vector<float> plain_loop(std::vector<float> now) {
  const int cells = static_cast<int>(now.size());
  std::vector<float> next(now.size());
  for (int step = 0; step < kCheckedPasses * kSteps; ++step, now.swap(next))
    for (int i = 0; i < cells; ++i)
      next[i] = moved(now[(i + cells - 1) % cells], now[i], now[(i + 1) % cells], heat(i, step % kSteps));
  return now;
}

}  // namespace early_task

int main() {
  using namespace early_task;
  flywheel::Runtime rt = flywheel::start<Step, EarlyStep>();
  const std::size_t cells = rt.workers() * kStrip;  // all cold
  const auto rows = rt.allocate<float>(kSteps * cells);
  const auto words = rt.allocate<Stamped>(kSteps * cells);
  const flywheel::Executable plain = load<Step>(rt, rows), early = load<EarlyStep>(rt, words);
  rt.submit(plain, flywheel::repeat(kCheckedPasses)).wait();
  rt.submit(early, flywheel::repeat(kCheckedPasses)).wait();

  const std::vector<float> wanted = plain_loop(std::vector<float>(cells)), found = rows.read();
  const std::vector<Stamped> stamped = words.read();
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t at = (kSteps - 1) * cells + i;
    if (found[at] != wanted[i] || stamped[at].value() != wanted[i]) return 1;
  }
  measure::print_gain(rt, "early tasks", measure::time_in_turns(rt, plain, early));
  return 0;
}
