// A store part: on a GPU the end of a task runs on a warp of its own, while the compute warps are at the next task.
//
// Each task describes a series of numbers: mean, deviation, skewness, kurtosis. Each thread sums up its share of the
// powers, and then one sum of all threads is to be had, and four results of it. Without a store part all threads meet for
// the sum at a barrier. With one, each thread leaves its share in shared memory and goes on to the next series.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cmath>
#include <cstdio>
#include <vector>

#include "apps/measure/in_turns.hpp"

namespace store_part {

constexpr int kValues = 2048, kSeriesOfWorker = 24, kThreads = 256;  // threads that compute, on a GPU

struct alignas(16) Powers {  // sums of x, x^2, x^3 and x^4
  float of[4] = {};
};
static_assert(kThreads * sizeof(Powers) <= flywheel::kHandoffBytes);

struct alignas(16) Moments {
  float mean, deviation, skewness, kurtosis;
};

struct Sum {
  FLYWHEEL_TASK Powers operator()(const Powers& a, const Powers& b) const {
    return {{a.of[0] + b.of[0], a.of[1] + b.of[1], a.of[2] + b.of[2], a.of[3] + b.of[3]}};
  }
};

FLYWHEEL_TASK inline Moments moments_of(const Powers& powers) {
  const float mean = powers.of[0] / kValues, second = powers.of[1] / kValues, third = powers.of[2] / kValues;
  const float variance = second - mean * mean, deviation = sqrtf(variance);
  const float skew = third - 3 * mean * second + 2 * mean * mean * mean;
  const float tails = powers.of[3] / kValues - 4 * mean * third + 6 * mean * mean * second - 3 * mean * mean * mean * mean;
  return {mean, deviation, skew / (variance * deviation), tails / (variance * variance)};
}

struct Describe {
  const float* series;
  Moments* out;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const Powers all = block.reduce(share(block), Sum{});
    if (block.leader()) *out = moments_of(all);
  }

 protected:
  template <class Block>
  FLYWHEEL_TASK Powers share(Block& block) const {
    Powers powers;
    block.for_each(kValues, [&](int i) {
      const float x = series[i];
      powers = Sum{}(powers, {{x, x * x, x * x * x, x * x * x * x}});
    });
    return powers;
  }
};

/// CPU workers have no store warp: there it runs the body that it has from Describe.
struct DescribeInParts : Describe {
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    const Powers mine = share(block);
    block.template producer_acquire<Powers>()[block.rank()] = mine;  // waits for a free place: there are two
    block.producer_commit();
  }
  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {  // 32 threads
    while (const Powers* shares = block.template consumer_wait<Powers>()) {
      Powers powers;
      block.for_each(kThreads, [&](int thread) { powers = Sum{}(powers, shares[thread]); });
      block.consumer_release();
      powers = block.reduce(powers, Sum{});
      if (block.leader()) *out = moments_of(powers);
    }
  }
};

bool are_right(const std::vector<Moments>& found, const std::vector<float>& values) {
  bool right = true;
  for (std::size_t series = 0; series < found.size(); ++series) {
    const auto moment = [&](double about, int power) {
      double sum = 0;
      for (int i = 0; i < kValues; ++i) sum += std::pow(values[series * kValues + i] - about, power);
      return sum / kValues;
    };
    const auto [mean, deviation, skewness, kurtosis] = found[series];
    const double about = moment(0, 1), variance = moment(about, 2);
    right &= std::abs(mean - about) < 1e-4 && std::abs(deviation - std::sqrt(variance)) < 1e-4;
    right &= std::abs(skewness - moment(about, 3) / std::pow(variance, 1.5)) < 1e-4;
    right &= std::abs(kurtosis - moment(about, 4) / std::pow(variance, 2)) < 1e-4;
  }
  return right;
}

template <class Task>
flywheel::Executable load(flywheel::Runtime& rt, const flywheel::Buffer<float>& values, const flywheel::Buffer<Moments>& out) {
  flywheel::Graph g;
  for (std::uint32_t series = 0; series < rt.workers() * kSeriesOfWorker; ++series)
    g.add(Task{Describe{values.data() + series * kValues, out.data() + series}});
  return rt.load(g, flywheel::compiled);
}

}  // namespace store_part

int main() {
  using namespace store_part;
  flywheel::Runtime rt = flywheel::start<Describe, DescribeInParts>();
  std::vector<float> numbers(std::size_t{rt.workers()} * kSeriesOfWorker * kValues);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * i / 7 % 11 % 7) - 3;
  const auto values = rt.upload(numbers);
  const auto plain_out = rt.allocate<Moments>(numbers.size() / kValues), out = rt.allocate<Moments>(numbers.size() / kValues);
  const flywheel::Executable plain = load<Describe>(rt, values, plain_out), parts = load<DescribeInParts>(rt, values, out);
  rt.submit(plain).wait();
  rt.submit(parts).wait();
  if (!are_right(plain_out.read(), numbers) || !are_right(out.read(), numbers)) return 1;
  measure::print_gain(rt, "a store part", measure::time_in_turns(rt, plain, parts));
  return 0;
}
