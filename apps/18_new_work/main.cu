// New work each time, without a graph: single tasks, a batch of tasks of one type, and a batch of several types. A loaded
// graph suits work that comes again; this suits work that the program discovers as it goes. The program prices the same
// options both ways, in turns, and prints what leaving out the graph buys.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

namespace new_work {

struct Price {  // of a European call by a binomial tree of `steps` steps (Cox, Ross and Rubinstein, 1979)
  float spot, strike, up;
  int steps;
  template <class Block>
  FLYWHEEL_TASK float operator()(Block&) const {
    return price();
  }
  FLYWHEEL_TASK float price() const {
    constexpr int kMost = 32;
    float values[kMost + 1];
    const float down = 1 / up, chance = (1 - down) / (up - down);
    float at = spot;
    for (int i = 0; i < steps; ++i) at *= down;
    for (int i = 0; i <= steps; ++i, at *= up * up) values[i] = at > strike ? at - strike : 0;
    for (int left = steps; left > 0; --left)
      for (int i = 0; i < left; ++i) values[i] = values[i] * (1 - chance) + values[i + 1] * chance;
    return values[0];
  }
};

struct Count {  // how many steps a price needs for a given accuracy
  float volatility, accuracy;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block&) const {
    return static_cast<int>(volatility / accuracy) % 32 + 1;
  }
};

std::vector<Price> requests(std::size_t count, unsigned seed) {
  std::vector<Price> all(count);
  for (Price& one : all) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes, 1992
    one = {80.f + static_cast<float>(seed >> 27), 100.f, 1.01f + static_cast<float>(seed >> 20 & 63) / 1000, 8};
  }
  return all;
}

bool close(float a, float b) { return std::fabs(a - b) <= 1e-3f * (1 + std::fabs(b)); }

std::size_t by_batch(flywheel::Runtime& rt, const std::vector<Price>& tasks) {
  std::size_t right = 0;
  flywheel::Batch<float> batch = rt.submit(tasks);
  batch.for_each([&](std::size_t i, float value) { right += close(value, tasks[i].price()); });
  return right;
}

std::size_t by_graph(flywheel::Runtime& rt, const std::vector<Price>& tasks) {
  flywheel::Graph g;
  std::vector<flywheel::TaskRef<float>> refs;
  for (const Price& task : tasks) refs.push_back(g.add(task));
  flywheel::Run run = rt.submit(rt.load(g));
  std::size_t right = 0;
  for (std::size_t i = 0; i < refs.size(); ++i) right += close(run.get(refs[i]), tasks[i].price());
  return right;
}

bool show_single(flywheel::Runtime& rt) {
  flywheel::Future<float> price = rt.submit(Price{100.f, 100.f, 1.02f, 16}, flywheel::Priority::high);
  const float value = price.get();
  std::printf("one task: a price of %.3f\n", value);
  return close(value, Price{100.f, 100.f, 1.02f, 16}.price());
}

bool show_mixed(flywheel::Runtime& rt) {
  flywheel::BatchBuilder tasks;
  const auto steps = tasks.add(Count{0.2f, 0.01f});
  const auto price = tasks.add(Price{110.f, 100.f, 1.03f, 12});
  flywheel::MixedBatch batch = rt.submit_batch(tasks);
  const int count = batch.get(steps);
  const float value = batch.get(price);
  std::printf("several types: %d steps, a price of %.3f\n", count, value);
  return count >= 1 && close(value, Price{110.f, 100.f, 1.03f, 12}.price());
}

bool compare(flywheel::Runtime& rt) {
  constexpr int kRounds = 7;
  const std::size_t count = rt.on_gpu() ? 4000 : 400;
  std::vector<double> us[2];
  bool right = true;
  for (unsigned round = 0; round <= kRounds; ++round)
    for (const bool graph : {false, true}) {
      const std::vector<Price> tasks = requests(count, round);
      const auto begin = std::chrono::steady_clock::now();
      right &= (graph ? by_graph(rt, tasks) : by_batch(rt, tasks)) == count;
      const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
      if (round) us[graph].push_back(took.count());
    }
  for (auto& times : us) std::ranges::nth_element(times, times.begin() + kRounds / 2);
  std::printf("%zu new tasks: %.0f us as a batch, %.0f us as a new graph: %.2f times as fast\n", count, us[0][kRounds / 2],
              us[1][kRounds / 2], us[1][kRounds / 2] / us[0][kRounds / 2]);
  return right;
}

int show() {
  flywheel::Options options;
  options.result_bytes = 64u << 10;
  flywheel::Runtime rt = flywheel::start<Price, Count>(options);
  const bool right = show_single(rt) & show_mixed(rt) & compare(rt);
  std::printf("%s on %s\n", right ? "all right" : "WRONG", rt.device().c_str());
  return right ? 0 : 1;
}

}  // namespace new_work

int main() try { return new_work::show(); } catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
