// A task returns a value, and a run is given a value: one graph, loaded once, counts primes below three limits.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cstdio>
#include <vector>

namespace primes {

constexpr int kParts = 8;

FLYWHEEL_TASK inline bool is_prime(int n) {
  for (int d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n >= 2;
}

struct CountPrimes {  // in every eighth number below the limit, beginning with `part`
  flywheel::Param<int> limit;
  int part;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    const int numbers = (block.param(limit) - part + kParts - 1) / kParts;
    int found = 0;
    block.for_each(numbers, [&](int i) { found += is_prime(part + i * kParts); });
    return block.reduce(found, [](int a, int b) { return a + b; });  // each thread had some of the numbers
  }
};

int count_plainly(int limit) {
  int found = 0;
  for (int n = 0; n < limit; ++n) found += is_prime(n);
  return found;
}

}  // namespace primes

int main() {
  using namespace primes;
  flywheel::Runtime rt = flywheel::start<CountPrimes>();
  flywheel::Graph g;
  const auto limit = g.param<int>(1'000);  // a run that sets nothing gets 1,000
  std::vector<flywheel::TaskRef<int>> parts;
  for (int part = 0; part < kParts; ++part) parts.push_back(g.add(CountPrimes{limit, part}));
  const flywheel::Executable exec = rt.load(g);

  bool right = true;
  const auto report = [&](int below, flywheel::Run run) {
    int primes = 0;
    for (const auto& part : parts) primes += run.get(part);
    std::printf("primes below %d: %d\n", below, primes);
    right &= primes == count_plainly(below);
  };
  flywheel::Run plain = rt.submit(exec);  // three runs in flight at once
  flywheel::Run more = rt.submit(exec, set(limit, 20'000)), most = rt.submit(exec, set(limit, 100'000));
  report(1'000, plain);
  report(20'000, more);
  report(100'000, most);
  return right ? 0 : 1;
}
